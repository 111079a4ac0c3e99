"""A whole quiz on the screen, its input given line by line."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from kit.bank.draw import Draw, draw
from kit.practice.quiz import Quiz, begin
from kit.screen.quiz import play, show_score
from kit.screen.words import Language
from tests.practice.questions import choice, multi, number
from tests.screen.pages import page, text_of

QUESTIONS = {question.id: question for question in (choice(), multi(), number())}


def drawn(question_id: str) -> Draw:
    return draw(QUESTIONS[question_id], 1)


def played(
    monkeypatch: pytest.MonkeyPatch, lines: Sequence[str], language: Language = "en", **options: bool
) -> tuple[Quiz, str]:
    """The last state, and all that was shown."""
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    out = page(language, **options)
    monkeypatch.setattr("sys.stdout", out.file)
    quiz = play(out, begin(tuple(QUESTIONS)), drawn)
    show_score(out, quiz, 1)
    return quiz, text_of(out)


def right(question_id: str) -> str:
    shown = drawn(question_id)
    options = QUESTIONS[question_id].options  # type: ignore[union-attr]
    return "".join("abcdef"[place] for place, index in enumerate(shown.order) if options[index].correct)


def test_a_quiz_from_a_pipe_needs_an_answer_a_question_and_nothing_between(monkeypatch: pytest.MonkeyPatch) -> None:
    quiz, shown = played(monkeypatch, [right("topic/choice"), right("topic/multi"), "12 GB"])
    assert quiz.phase == "over" and quiz.score().right == 3
    assert "3 of 3 right\n" in shown
    assert "The same questions again: --seed 1" in shown
    for text in ("Question 3 of 3", "Right. reason 0", "the explanation", "1. why so", "because", "A paper, section 1"):
        assert text in shown


def test_answers_from_a_pipe_are_repeated_for_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["zzz", "s"])
    assert "> zzz\nThat is no answer, and does not count: no option 'z'" in shown


def test_the_end_of_the_input_shows_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    quiz, shown = played(monkeypatch, [right("topic/choice")])
    assert quiz.score().not_asked == 2
    assert shown.endswith("1 of 1 right, 2 not asked\nThe same questions again: --seed 1\n")
    _, shown = played(monkeypatch, [])
    assert shown.endswith("No question was answered.\n")


def test_hints_are_shown_one_by_one_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["?", "?", "?", "s", "q"])
    assert shown.index("Hint 1 of 2\n  first hint") < shown.index("Hint 2 of 2\n  second hint")
    assert shown.index("second hint") < shown.index("There are no more hints.") < shown.index("Skipped")
    assert "0 of 1 right, 1 skipped, 2 not asked, hints used: 2" in shown


def test_a_wrong_number_says_what_was_mistaken(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["s", "s", "12 GiB"])
    assert "Your answer: 12.88 GB (12 GiB)" in shown
    assert "Right answer: 12 GB (11.18 GiB) (accepted within 1%)" in shown
    assert "right in GB, and you wrote GiB" in shown


def test_a_skipped_question_is_answered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["s", "s", "s"])
    assert shown.count("the explanation") == 3
    assert "Right answer: 12 GB" in shown


def test_all_of_it_is_chinese_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["？", "9", right("topic/choice"), "s", "q"], "zh")
    for text in (
        "第 1/3 题",
        "提示 1/2",
        "这不是有效的答案，不计分：可以用字母 a 到 c，或数字 1 到 3",
        "正确",
        "解析",
        "面试官可能追问",
        "答对 1/2 题，跳过 1 题，未作答 1 题，用了 1 条提示",
        "重做同样的题目：--seed 1",
    ):
        assert text in shown, text
    for english in ("Question", "Hint", "Right", "Wrong", "Explanation", "Sources", "skip"):
        assert english not in shown, english


def test_without_unicode_everything_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = played(monkeypatch, ["?", "a", "a b", "3/8 TB"], has_unicode=False)
    assert shown.isascii()
