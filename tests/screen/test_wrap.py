"""Lines that fit, in Latin and in Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from kit.screen.wrap import NOT_AT_THE_END, NOT_AT_THE_START, break_offsets, padded, wrap

WORDS = st.text(st.sampled_from("ab -/(),.%模型梯度，。（）、“”1 "), max_size=80)


def lines(text: str, width: int) -> list[str]:
    return [line.plain for line in wrap(Text(text), width)]


def test_words_stay_whole() -> None:
    assert lines("the mean of the means", 8) == ["the mean", "of the", "means"]


def test_chinese_breaks_between_characters_but_not_before_its_punctuation() -> None:
    assert lines("梯度先求和，再平均。", 10) == ["梯度先求", "和，再平", "均。"]
    for width in range(8, 24):
        for line in lines("梯度先求和，再平均（见第三节）。", width):
            assert line[0] not in NOT_AT_THE_START, (width, line)
            assert line[-1] not in NOT_AT_THE_END, (width, line)


def test_terms_inside_chinese_stay_whole() -> None:
    assert lines("用 all-reduce 同步梯度", 12) == ["用", "all-reduce", "同步梯度"]


def test_a_word_longer_than_the_line_is_cut() -> None:
    assert lines("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert lines("x abcdefghij y", 4) == ["x", "abcd", "efgh", "ij y"]


def test_wide_characters_count_as_two() -> None:
    assert lines("模型模型", 5) == ["模型", "模型"]
    assert lines("模", 1) == ["模"]
    assert cell_len(padded("模型", 6)) == 6


def test_newlines_and_empty_lines_stay() -> None:
    assert lines("a\n\nb", 10) == ["a", "", "b"]
    assert lines("", 10) == [""]


def test_styles_survive_the_cut() -> None:
    text = Text.assemble(("one two ", "bold"), ("three", "red"))
    first, second = wrap(text, 8)
    assert [(span.start, span.end, span.style) for span in first.spans] == [(0, 7, "bold")]
    assert [(span.start, span.end, span.style) for span in second.spans] == [(0, 5, "red")]


@given(WORDS, st.integers(2, 30))
def test_no_line_is_too_wide_and_nothing_is_lost(text: str, width: int) -> None:
    shown = lines(text, width)
    assert all(cell_len(line) <= width for line in shown)
    assert "".join(shown).replace(" ", "") == text.replace(" ", "")


@given(WORDS, st.integers(16, 40))
def test_offsets_are_inside_the_text_and_increase(text: str, width: int) -> None:
    offsets = break_offsets(text, width)
    assert offsets == sorted(set(offsets))
    assert all(0 < offset < len(text) for offset in offsets)


@pytest.mark.parametrize("width", [12, 20, 33])
def test_spaces_at_the_end_of_a_line_take_no_room(width: int) -> None:
    assert lines("a" * width + "   " + "b" * width, width) == ["a" * width, "b" * width]
