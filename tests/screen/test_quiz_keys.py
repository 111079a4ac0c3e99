"""What a quiz shows when an answer is taken back, a question bookmarked, or confidence asked for."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest

from kit.practice.quiz import Quiz, begin, present, reply
from kit.screen.quiz import play, points_of, show_nothing_to_ask, show_score, show_way_on
from kit.screen.words import Language
from tests.screen.pages import page, text_of
from tests.screen.test_quiz import drawn, right

CHOICE = ("topic/choice", "topic/number")


def played(
    monkeypatch: pytest.MonkeyPatch,
    lines: Sequence[str],
    language: Language = "en",
    plan: Sequence[str] = CHOICE,
    **options: Any,
) -> tuple[Quiz, str, list[tuple[Quiz, Quiz]]]:
    """The last state, all that was shown, and every change that was told."""
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    out = page(language)
    monkeypatch.setattr("sys.stdout", out.file)
    changes: list[tuple[Quiz, Quiz]] = []

    def watch(before: Quiz, after: Quiz) -> None:
        num_told = sum(len(new.outcomes) > len(old.outcomes) for old, new in changes)
        assert text_of(out).count("the explanation") == num_told  # of the answers before this change, and no more
        changes.append((before, after))

    quiz = play(out, begin(plan, **options), drawn, watch)
    show_score(out, quiz, None)
    return quiz, text_of(out), changes


def test_every_change_is_told_before_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    quiz, _, changes = played(monkeypatch, [right("topic/choice"), "u", "s", "12 GB"])
    counts = [len(after.outcomes) - len(before.outcomes) for before, after in changes]
    assert [count for count in counts if count] == [1, -1, 1, 1]
    assert changes[-1][1].outcomes == quiz.outcomes
    assert [after.asked.question.id for before, after in changes if before.phase == "choosing" and after.asked] == [
        *CHOICE,
        "topic/number",
    ]


def test_a_question_whose_answer_was_taken_back_is_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown, _ = played(monkeypatch, ["s", "u", right("topic/choice"), "s"])
    assert shown.count("Question 1 of 2") == 2 and "1 of 2 right, 1 skipped\n" in shown
    assert "> u\n" in shown


def test_nothing_to_undo_and_bookmarks_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    quiz, shown, _ = played(monkeypatch, ["u", "bookmark", "bookmark", "bookmark", "s", "b", "s"])
    for line in (
        "> u\nThere is nothing to undo.\n",
        "> bookmark\nBookmarked.\n",
        "> bookmark\nNo longer bookmarked.\n",
    ):
        assert line in shown
    assert quiz.bookmarks == set(CHOICE)
    _, shown, _ = played(monkeypatch, ["bookmark"], bookmarks=None)
    assert "With --no-save no bookmark is kept." in shown


def test_confidence_is_asked_before_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    quiz, shown, _ = played(
        monkeypatch, [right("topic/choice"), "very", "80", "12 GB", "u", "12 GB", ""], asks_confidence=True
    )
    assert [outcome.confidence for outcome in quiz.outcomes] == [0.8, None]
    ask = "How sure are you, in percent? Enter: no answer\n"
    assert shown.count(ask) == 4  # once again after what was no number, and after the answer that was taken back
    assert "> very That is no answer, and does not count: a whole number from 0 to 100 " in " ".join(shown.split())
    assert shown.index(ask) < shown.index("Right\n")


def test_the_keys_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["u", "bookmark", right("topic/choice"), "?", "50", "u", "q"]
    _, shown, _ = played(monkeypatch, lines, "zh", asks_confidence=True)
    for text in (
        "没有可以撤销的作答。",
        "已收藏。",
        "有多大把握（百分比）？回车：不填",
        "不计分：请输入 0 到 100 的整数",
    ):
        assert text in shown, text
    for english in ("Bookmarked", "undo", "sure"):
        assert english not in shown, english


def test_a_quiz_that_no_seed_repeats_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown, _ = played(monkeypatch, ["s", "s"])
    assert "--seed" not in shown


def test_nothing_to_ask_is_said() -> None:
    for language, texts in {
        "en": ("Nothing is due today. Something new: --new 5", "All of these were answered before.", "None of these"),
        "zh": ("今天没有到期的题目", "这些题目都已经做过", "这些题目都没有收藏"),
    }.items():
        for wanted, text in zip(("due", "new", "bookmarked"), texts, strict=True):
            out = page(language)  # type: ignore[arg-type]
            show_nothing_to_ask(out, wanted)  # type: ignore[arg-type]
            assert text in text_of(out)


def test_back_at_an_answer_in_words_it_is_shown_with_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = "e editor, ? hint, s skip, q quit, u undo, b bookmark"
    for language, said in (("en", "Back to your answer:"), ("zh", "回到你的回答：")):
        for asks_confidence, lines in (
            (False, ["one", "", "u"]),
            (True, ["one", "", "u"]),
            (True, ["one", "", "9", "u"]),
        ):
            quiz, shown, _ = played(
                monkeypatch, [*lines, "two"], language, ("topic/open",), asks_confidence=asks_confidence  # type: ignore[arg-type]
            )  # fmt: skip
            after = shown.split("> u\n")[1].split("> two")[0]
            assert after.startswith(f"{said}\n  one\n"), after
            assert language == "zh" or keys in " ".join(after.split())
            assert quiz.last.written == ("one", "two")


def test_an_answer_in_words_that_is_taken_back_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for end in (["", "y", "y", "y", "y"], ["s"]):
        quiz, shown, _ = played(monkeypatch, ["one", *end, "u", "two"], plan=("topic/open", "topic/choice"))
        again = shown.split("> u\n")[1]
        assert "Question 1 of 2" in again and "Back to your answer:\n  one\n" in again
        assert quiz.outcomes[0].written == ("one", "two")


def test_keys_are_named_where_they_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def keys(plan: str, lines: Sequence[str] = (), language: Language = "en", **options: Any) -> str:
        _, shown, _ = played(monkeypatch, lines, language, (plan, "topic/number"), **options)
        return " ".join(shown.split())

    assert keys("topic/choice").endswith(
        "One letter; ? hint, s skip, q quit, bookmark (the word) to mark it > No question was answered."
    )
    assert "A number; ? hint, s skip, q quit, b bookmark " in keys("topic/number")
    assert "A number; ? hint, s skip, q quit, u undo, b bookmark " in keys("topic/choice", ["s"])
    assert "bookmark" not in keys("topic/choice", ["s"], bookmarks=None)
    assert "y yes, n no, u undo, q quit" in keys("topic/open", ["words", ""])
    assert "u 撤销，b 收藏" in keys("topic/choice", ["s"], "zh")


@pytest.mark.parametrize(("line", "said"), [("b", "Bookmarked."), ("bookmark", "Bookmarked.")])
def test_what_is_waited_for_is_shown_again_after_a_bookmark(
    monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    for lines, wanted, asks in (
        (["words", ""], "Did your answer say it? y yes, n no, u undo, q quit", False),
        (["words", ""], "How sure are you, in percent? Enter: no answer", True),
    ):
        _, shown, _ = played(monkeypatch, [*lines, line], plan=("topic/open",), asks_confidence=asks)
        assert f"> {line}\n{said}\n{wanted}\n" in shown


def test_the_line_after_a_verdict_says_what_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = next(letter for letter in "abc" if letter != right("topic/choice"))
    for language, ends in (
        (
            "en",
            {
                wrong: f"Wrong; right is {right('topic/choice')}. Enter",
                right("topic/choice"): "Right: ",
                "s": "Skipped. ",
            },
        ),
        (
            "zh",
            {
                wrong: f"错误；正确答案是 {right('topic/choice')}。回车",
                right("topic/choice"): "正确：",
                "s": "已跳过。",
            },
        ),
    ):
        for line, said in ends.items():
            out = page(language)  # type: ignore[arg-type]
            show_way_on(out, reply(present(begin(CHOICE), drawn(CHOICE[0])), line))
            assert text_of(out).startswith(said)


def test_one_point_is_one_point() -> None:
    out = page()
    assert (points_of(out, 0, 1), points_of(out, 1, 2)) == ("0 of 1 point", "1 of 2 points")
