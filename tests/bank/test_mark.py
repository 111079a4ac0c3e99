"""Typed answers against drawn questions."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.bank.draw import draw
from kit.bank.load import load_question
from kit.bank.mark import LETTERS, mark
from kit.errors import KitError

ONE_BUILD = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)


def drawn(build, kind: str, seed: int = 3, change=None):
    return draw(load_question(build.bank, build.question(kind, change=change)), seed)


@pytest.mark.parametrize("seed", range(6))
def test_exactly_one_letter_of_a_choice_is_right(build, seed: int) -> None:
    shown = drawn(build, "choice", seed)
    marks = [mark(shown, letter) for letter in "abc"]
    assert [each.is_right for each in marks] == [index == 0 for index in shown.order]
    assert {each.expected for each in marks} == {LETTERS[shown.order.index(0)]}
    assert [each.got for each in marks] == ["a", "b", "c"]
    assert [each.chosen for each in marks] == [(index,) for index in shown.order]


@pytest.mark.parametrize("typed", ["b", "B", " b ", "b.", "(b)", "b)", "2", "ｂ"])
def test_spellings_of_an_option(build, typed: str) -> None:
    shown = drawn(build, "choice")
    assert mark(shown, typed).chosen == (shown.order[1],)


@pytest.mark.parametrize(
    ("kind", "typed", "message", "hint"),
    [
        ("choice", "", "no answer", "letters a to c, or numbers 1 to 3"),
        ("choice", " , ", "no answer", "letters a to c, or numbers 1 to 3"),
        ("choice", "d", "no option 'd'", "letters a to c, or numbers 1 to 3"),
        ("choice", "0", "no option '0'", "letters a to c, or numbers 1 to 3"),
        ("choice", "4", "no option '4'", "letters a to c, or numbers 1 to 3"),
        ("choice", "-1", "no option '-1'", "letters a to c, or numbers 1 to 3"),
        ("choice", "٢", "no option '٢'", "letters a to c, or numbers 1 to 3"),
        ("choice", "a b", "'a b' names 2 options; exactly one is right", None),
        ("multi", "a,a", "'a' is named twice", None),
        ("multi", "13", "no option '13'", "letters a to c, or numbers 1 to 3"),
        ("order", "abc", "'abc' leaves out d; name every item once, first to last", None),
        ("order", "abca", "'a' is named twice", None),
        ("order", "abcde", "no option 'e'", "letters a to d, or numbers 1 to 4"),
    ],
)
def test_what_is_no_answer_is_refused(build, kind: str, typed: str, message: str, hint: str | None) -> None:
    with pytest.raises(KitError) as refused:
        mark(drawn(build, kind), typed)
    assert (refused.value.message, refused.value.hint) == (message, hint)


@pytest.mark.parametrize(
    "typed", ["a and b", "a 和 b", "a和b", "a、b", "a & b", "a, and b", "a 与 b", "a+b", "A AND B."]
)
def test_letters_may_be_joined_by_words(build, typed: str) -> None:
    shown = drawn(build, "multi")
    assert mark(shown, typed).chosen == shown.order[:2]
    assert mark(drawn(build, "order"), "a then b, then c and d") == mark(drawn(build, "order"), "abcd")


def two_correct(values) -> None:
    values["options"][2]["correct"] = True


def test_a_multi_takes_all_and_only_the_right_options(build) -> None:
    shown = drawn(build, "multi", change=two_correct)
    right = {position for position, index in enumerate(shown.order) if index in (0, 2)}
    for count in (1, 2, 3):
        for positions in combinations(range(3), count):
            got = mark(shown, ", ".join("abc"[position] for position in positions))
            assert got.is_right == (set(positions) == right)
            missed, wrong = len(right - set(positions)), len(set(positions) - right)
            said = [f"{missed} missed"] * bool(missed) + [f"{wrong} wrong"] * bool(wrong)
            assert got.note == ", ".join(said)
    assert mark(shown, "cba").got == "a, b, c"
    assert mark(shown, "1 3").chosen == (shown.order[0], shown.order[2])


def test_only_the_right_order_is_right(build) -> None:
    shown = drawn(build, "order")
    for typed in permutations("abcd"):
        got = mark(shown, "".join(typed))
        placed = sum(shown.order["abcd".index(letter)] == place for place, letter in enumerate(typed))
        assert got.is_right == (placed == 4)
        assert got.note == ("" if placed == 4 else f"{placed} of 4 in their place")
        assert mark(shown, " > ".join(typed)) == got
    assert mark(shown, mark(shown, "abcd").expected).is_right


@given(st.integers(0, 10**6))
@ONE_BUILD
def test_the_expected_answer_is_right_when_it_is_typed(build, seed: int) -> None:
    """Whatever was drawn, what the screen calls right is marked right."""
    for kind, wrong in (("choice", "a"), ("multi", "b"), ("order", "abcd"), ("number", "0.9999")):
        shown = drawn(build, kind, seed)
        expected = mark(shown, wrong).expected.split(" (")[0]
        assert mark(shown, expected).is_right


# --- numbers ------------------------------------------------------------------------------------------------


def memory_question(values) -> None:
    """7.5 billion parameters, stage 1 over 4 ranks: 52.5 GB."""
    values["parameters"] = {"n": {"choices": [4]}}
    values["answer"] = {
        "function": "memory.model_state_bytes",
        "arguments": {"num_params": "7.5 * 10**9", "world_size": "n", "stage": 1},
    }
    values["unit"] = "B"


@pytest.mark.parametrize(
    ("typed", "is_right", "got", "note"),
    [
        ("52.5 GB", True, "52.5 GB (48.89 GiB)", ""),
        ("48.9 GiB", True, "52.51 GB (48.9 GiB)", ""),
        ("5.25e10", True, "52.5 GB (48.89 GiB)", ""),
        ("52500 MB", True, "52.5 GB (48.89 GiB)", ""),
        ("53.02 GB", True, "53.02 GB (49.38 GiB)", ""),
        ("53.04 GB", False, "53.04 GB (49.4 GiB)", ""),
        ("51.98 GB", True, "51.98 GB (48.41 GiB)", ""),
        ("51.96 GB", False, "51.96 GB (48.39 GiB)", ""),
        ("52.5 GiB", False, "56.37 GB (52.5 GiB)", "right in GB, and you wrote GiB"),
        ("48.9 GB", False, "48.9 GB (45.54 GiB)", "right in GiB, and you wrote GB"),
        ("52.5 MB", False, "52.5 MB (50.07 MiB)", "right in GB, and you wrote MB"),
        ("420 GB", False, "420 GB (391.2 GiB)", "8 times too large: bits for bytes"),
        ("6.5625 GB", False, "6.562 GB (6.112 GiB)", "8 times too small: divided by 8 as if bytes were bits"),
        ("120 GB", False, "120 GB (111.8 GiB)", ""),
        ("-52.5 GB", False, "-52.5 GB (-48.89 GiB)", ""),
        ("0 B", False, "0 B", ""),
    ],
)
def test_bytes_within_one_percent(build, typed: str, is_right: bool, got: str, note: str) -> None:
    marked = mark(drawn(build, "number", change=memory_question), typed)
    assert (marked.is_right, marked.got, marked.note) == (is_right, got, note)
    assert marked.expected == "52.5 GB (48.89 GiB)"
    assert marked.chosen == ()


def bubble(values) -> None:
    values["parameters"] = {"p": {"choices": [4]}, "m": {"choices": [5]}}


@pytest.mark.parametrize(
    ("typed", "is_right", "note"),
    [
        ("3/8", True, ""),
        ("0.375", True, ""),
        ("37.5%", True, ""),
        ("0.375%", False, "right in fraction, and you wrote %"),
        ("3/5", False, ""),
        ("0.38", False, ""),
    ],
)
def test_fractions(build, typed: str, is_right: bool, note: str) -> None:
    marked = mark(drawn(build, "number", change=bubble), typed)
    assert (marked.is_right, marked.note, marked.expected) == (is_right, note, "0.375 (37.5%)")


def test_tolerance_is_the_question_s_own(build) -> None:
    def change(values):
        bubble(values)
        values["tolerance"] = 0.02

    assert mark(drawn(build, "number", change=change), "0.38").is_right


def test_an_exact_question_takes_rounded_floats_and_nothing_else(build) -> None:
    def change(values):
        bubble(values)
        values["parameters"]["m"] = {"choices": [8]}
        values["tolerance"] = 0

    shown = drawn(build, "number", change=change)
    assert mark(shown, "3/11").is_right
    assert mark(shown, "0.272727272727").is_right
    assert not mark(shown, "0.2727").is_right


def test_a_zero_has_to_be_met(build) -> None:
    def change(values):
        bubble(values)
        values["parameters"]["p"] = {"choices": [1]}

    shown = drawn(build, "number", change=change)
    assert mark(shown, "0%").is_right
    assert not mark(shown, "0.001").is_right


def test_an_answer_in_the_question_s_own_unit(build) -> None:
    def change(values):
        memory_question(values)
        values["unit"] = "GiB"

    shown = drawn(build, "number", change=change)
    assert mark(shown, "48.9").is_right
    assert mark(shown, "52.5 GB").is_right
    wrong = mark(shown, "52.5")
    assert (wrong.is_right, wrong.expected, wrong.got) == (False, "48.89 GiB", "52.5 GiB")
    assert wrong.note == "right in GB, and you wrote GiB"


def test_code_is_not_marked_from_a_line(build) -> None:
    with pytest.raises(KitError) as refused:
        mark(drawn(build, "code"), "a")
    assert refused.value.message == "topic/code is of kind code, which is not marked from a typed line"
