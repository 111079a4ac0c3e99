"""The quiz as a state machine: what each line of input leads to."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.bank.draw import draw
from kit.practice.quiz import Quiz, begin, end, go_on, present, reply
from tests.practice.questions import choice, multi, number, open_ended, order, predict

PLAN = ("topic/choice", "topic/multi", "topic/number")
QUESTIONS = {question.id: question for question in (choice(), multi(), number(), order(), predict(), open_ended())}


def asking(plan: tuple[str, ...] = PLAN, seed: int = 1, **options: Any) -> Quiz:
    quiz = begin(plan, **options)
    return present(quiz, draw(QUESTIONS[quiz.wanted], seed))


def next_question(quiz: Quiz, seed: int = 1) -> Quiz:
    quiz = reply(quiz, "")
    return present(quiz, draw(QUESTIONS[quiz.wanted], seed))


def right_letters(quiz: Quiz) -> str:
    assert quiz.asked is not None
    options = quiz.asked.question.options
    return "".join("abcdef"[place] for place, index in enumerate(quiz.asked.order) if options[index].correct)


def wrong_letter(quiz: Quiz) -> str:
    assert quiz.asked is not None
    return next(
        "abcdef"[p] for p, index in enumerate(quiz.asked.order) if not quiz.asked.question.options[index].correct
    )


def test_a_whole_quiz_is_scored() -> None:
    quiz = asking()
    quiz = reply(quiz, right_letters(quiz))
    assert (quiz.phase, quiz.last.verdict) == ("told", "right")
    quiz = next_question(quiz)
    quiz = reply(quiz, wrong_letter(quiz))
    assert quiz.last.verdict == "wrong"
    quiz = next_question(quiz)
    quiz = reply(quiz, "12 GB")
    assert quiz.last.verdict == "right" and quiz.is_last
    quiz = reply(quiz, "")
    score = quiz.score()
    assert quiz.phase == "over"
    assert (score.right, score.wrong, score.skipped, score.not_asked, score.answered) == (2, 1, 0, 0, 3)


def test_a_quiz_without_questions_is_over() -> None:
    assert begin(()).phase == "over"


@pytest.mark.parametrize("seed", range(6))
def test_answers_follow_the_shuffled_positions(seed: int) -> None:
    quiz = asking(seed=seed)
    assert reply(quiz, right_letters(quiz)).last.verdict == "right"
    position = "abc".index(right_letters(quiz)) + 1
    assert reply(quiz, str(position)).last.verdict == "right"
    assert reply(quiz, wrong_letter(quiz)).last.verdict == "wrong"


@pytest.mark.parametrize("line", ["x", "d", "4", "a b", "0", "-1", "hello", "a" * 5000, "\x1b[A", "é", "中", "1.5"])
def test_what_is_no_answer_is_asked_again_and_never_counts(line: str) -> None:
    quiz = asking()
    again = reply(quiz, line)
    assert (again.phase, again.notice, again.outcomes) == ("asking", "not_taken", ())
    assert again.complaint
    assert again.asked is quiz.asked
    assert reply(again, right_letters(again)).last.verdict == "right"


@pytest.mark.parametrize("line", ["", "   ", "\t", "\u3000"])
def test_an_empty_line_says_nothing_against_the_learner(line: str) -> None:
    again = reply(asking(), line)
    assert (again.phase, again.notice, again.complaint) == ("asking", "nothing", "")


def test_hints_come_one_at_a_time_until_there_are_none() -> None:
    quiz = reply(asking(), "?")
    assert (quiz.notice, quiz.num_hints) == ("hint", 1)
    quiz = reply(quiz, "HINT")
    assert (quiz.notice, quiz.num_hints) == ("hint", 2)
    quiz = reply(quiz, "?")
    assert (quiz.notice, quiz.num_hints) == ("no_more_hints", 2)
    quiz = reply(quiz, right_letters(quiz))
    assert quiz.last.num_hints == 2 and quiz.score().num_hints == 2


def test_hints_begin_anew_with_each_question() -> None:
    quiz = reply(reply(asking(), "?"), "s")
    quiz = next_question(quiz)
    assert quiz.num_hints == 0
    quiz = reply(quiz, "?")
    assert quiz.score().num_hints == 2


def test_full_width_signs_of_an_input_method_count() -> None:
    assert reply(asking(), "？").notice == "hint"
    quiz = asking()
    full_width = chr(ord(right_letters(quiz)) - ord("a") + ord("ａ"))
    assert reply(quiz, full_width).last.verdict == "right"
    two = next_question(reply(asking(), "s"))
    typed = "、".join(right_letters(two).upper())
    assert reply(two, f" {typed} ").last.verdict == "right"


def test_skipping_is_neither_right_nor_wrong() -> None:
    quiz = reply(asking(), "S")
    assert (quiz.last.verdict, quiz.last.mark) == ("skipped", None)
    assert quiz.score().answered == 0 and quiz.score().skipped == 1


@pytest.mark.parametrize("line", ["q", "Q", "quit", "exit"])
def test_quitting_leaves_the_question_unasked(line: str) -> None:
    quiz = reply(asking(), line)
    assert quiz.phase == "over" and quiz.score().not_asked == 3
    told = reply(asking(), "s")
    assert reply(told, line).phase == "over" and reply(told, line).score().not_asked == 2


def test_the_end_of_the_input_ends_the_quiz_in_every_phase() -> None:
    for quiz in (begin(PLAN), asking(), reply(asking(), "s")):
        assert end(quiz).phase == "over"
    assert reply(end(asking()), "a") == end(asking())


def test_an_answer_after_the_answer_changes_nothing() -> None:
    told = reply(asking(), "s")
    again = reply(told, "a")
    assert (again.phase, again.notice, again.outcomes) == ("told", "not_taken", told.outcomes)
    assert go_on(told).phase == "choosing"


def test_states_are_values() -> None:
    quiz = asking()
    before = dataclasses.replace(quiz)
    reply(quiz, "s")
    assert quiz == before


def test_only_the_wanted_question_can_be_presented() -> None:
    with pytest.raises(AssertionError):
        present(begin(PLAN), draw(multi(), 1))


@given(
    st.lists(
        st.one_of(
            st.text(max_size=12),
            st.sampled_from(["a", "b", "a c", "?", "s", "", "12 GB", "1", "b a d c", "y", "n", "u", "b", "70%"]),
        ),
        max_size=30,
    ),
    st.booleans(),
)
def test_any_input_keeps_the_books(lines: list[str], asks_confidence: bool) -> None:
    quiz = asking((*QUESTIONS, *QUESTIONS), asks_confidence=asks_confidence)
    for line in lines:
        if quiz.phase == "choosing":
            quiz = present(quiz, draw(QUESTIONS[quiz.wanted], 1))
        before = quiz
        quiz = reply(quiz, line)
        assert len(quiz.outcomes) - len(before.outcomes) in (-1, 0, 1)
        shorter = min(len(quiz.outcomes), len(before.outcomes))
        assert quiz.outcomes[:shorter] == before.outcomes[:shorter]
    if len(lines) % 2:
        quiz = end(end(quiz))
    score = quiz.score()
    told = score.right + score.wrong + score.marked + score.unmarked + score.skipped
    assert told + score.not_asked == len(quiz.plan)
    assert score.most_points == 10 * score.marked and score.points <= score.most_points
    assert score.not_asked == len(quiz.plan) - len(quiz.outcomes)


# --- taking back, bookmarks and confidence ------------------------------------------------------------------


def test_an_answer_is_taken_back_and_the_same_question_asked_again() -> None:
    quiz = reply(asking(), "?")
    draw_before = quiz.asked
    told = reply(quiz, wrong_letter(quiz))
    again = reply(told, "u")
    assert (again.phase, again.outcomes, again.asked, again.num_hints) == ("asking", (), draw_before, 1)
    assert again.number == 1 and reply(again, right_letters(again)).last.verdict == "right"


def test_the_question_before_comes_back_while_the_next_one_is_asked() -> None:
    first = reply(asking(), "s")
    second = next_question(first)
    back = reply(second, "UNDO")
    assert back.asked is not None and back.asked.question.id == PLAN[0] and back.outcomes == ()
    assert present(go_on(reply(back, "s")), draw(multi(), 1)).asked == second.asked


def test_where_nothing_was_answered_nothing_is_taken_back() -> None:
    quiz = reply(asking(), "u")
    assert (quiz.phase, quiz.notice, quiz.outcomes) == ("asking", "nothing_to_undo", ())


def test_in_words_one_step_after_the_other_is_taken_back() -> None:
    quiz = asking(("topic/open",))
    for line in ("one", "two"):
        quiz = reply(quiz, line)
    quiz = reply(quiz, "u")
    assert (quiz.written, quiz.notice) == (("one",), "line_gone")
    quiz = reply(reply(reply(quiz, ""), "y"), "n")
    assert (quiz.phase, quiz.are_met) == ("marking", (True, False))
    quiz = reply(quiz, "u")
    assert (quiz.phase, quiz.are_met) == ("marking", (True,))
    quiz = reply(reply(quiz, "u"), "u")
    assert (quiz.phase, quiz.written) == ("asking", ("one",))


@pytest.mark.parametrize("slug", ["choice", "multi", "predict", "order"])
def test_b_is_an_answer_where_letters_answer_and_the_word_always_a_command(slug: str) -> None:
    quiz = asking((f"topic/{slug}",))
    assert reply(quiz, "b").notice != "bookmarked" and reply(quiz, "b").bookmarks == frozenset()
    marked = reply(quiz, "bookmark")
    assert (marked.phase, marked.notice, marked.bookmarks) == ("asking", "bookmarked", {f"topic/{slug}"})
    told = reply(quiz, "s")
    marked = reply(told, "B")
    assert (marked.phase, marked.bookmarks) == ("told", {f"topic/{slug}"})
    assert (reply(marked, "b").notice, reply(marked, "b").bookmarks) == ("unbookmarked", frozenset())


@pytest.mark.parametrize("slug", ["number", "open"])
def test_b_bookmarks_where_no_letter_answers(slug: str) -> None:
    marked = reply(asking((f"topic/{slug}",), bookmarks=frozenset({"topic/other"})), "b")
    assert (marked.phase, marked.bookmarks) == ("asking", {f"topic/{slug}", "topic/other"})


def test_without_a_place_for_bookmarks_none_is_said_to_be_kept() -> None:
    quiz = reply(asking(bookmarks=None), "bookmark")
    assert (quiz.notice, quiz.bookmarks) == ("keeps_none", None)


@pytest.mark.parametrize(("line", "confidence"), [("70", 0.7), ("70%", 0.7), ("１００", 1.0), ("0", 0.0), ("", None)])
def test_confidence_is_said_before_the_verdict(line: str, confidence: float | None) -> None:
    quiz = asking(asks_confidence=True)
    quiz = reply(quiz, right_letters(quiz))
    assert (quiz.phase, quiz.outcomes, quiz.number) == ("weighing", (), 1)
    quiz = reply(quiz, line)
    assert (quiz.phase, quiz.last.verdict, quiz.last.confidence) == ("told", "right", confidence)
    quiz = next_question(quiz)
    assert quiz.confidence is None and reply(quiz, "s").last.confidence is None


@pytest.mark.parametrize("line", ["101", "-1", "0.7", "sure", "7 0", "½", "٥", "?", "s", "1" * 5000])
def test_what_is_no_confidence_is_asked_again(line: str) -> None:
    quiz = asking(asks_confidence=True)
    quiz = reply(reply(quiz, right_letters(quiz)), line)
    assert (quiz.phase, quiz.notice, quiz.outcomes) == ("weighing", "not_taken", ())
    assert quiz.complaint == "a whole number from 0 to 100"


def test_an_answer_counts_although_its_confidence_was_never_said() -> None:
    quiz = asking(asks_confidence=True)
    quiz = reply(quiz, right_letters(quiz))
    for ended in (end(quiz), reply(quiz, "q")):
        assert (ended.phase, ended.last.verdict, ended.last.confidence) == ("over", "right", None)
    assert reply(quiz, "u").phase == "asking" and reply(quiz, "u").given is None


def test_confidence_in_words_is_said_before_the_points() -> None:
    quiz = reply(reply(asking(("topic/open",), asks_confidence=True), "my answer"), "")
    assert quiz.phase == "weighing" and end(quiz).phase == "marking"
    quiz = reply(quiz, "60")
    assert quiz.phase == "marking"
    for line in "ynyn":
        quiz = reply(quiz, line)
    assert (quiz.last.verdict, quiz.last.confidence, quiz.last.score) == ("marked", 0.6, 0.4)


def test_scores_are_shares() -> None:
    quiz = asking()
    assert reply(quiz, right_letters(quiz)).last.score == 1.0
    assert reply(quiz, wrong_letter(quiz)).last.score == 0.0 == reply(quiz, "s").last.score


# --- an answer in words is not lost -------------------------------------------------------------------------


def test_leaving_a_written_answer_takes_the_command_twice() -> None:
    quiz = reply(asking(("topic/open",)), "one")
    once = reply(quiz, "q")
    assert (once.phase, once.turn, once.written) == ("asking", "leaving", ("one",))
    assert reply(once, "quit").phase == "over" and reply(once, "q").outcomes == ()
    assert reply(once, "").phase == "marking" == end(once).phase
    on = reply(once, "two")
    assert (on.turn, on.written) == (None, ("one", "two")) and reply(on, "q").turn == "leaving"
    assert reply(reply(once, "?"), "q").phase == "asking"
    assert reply(asking(("topic/open",)), "q").phase == "over"


@pytest.mark.parametrize("asks_confidence", [True, False])
def test_back_from_the_points_or_the_confidence_to_the_answer(asks_confidence: bool) -> None:
    quiz = reply(reply(asking(("topic/open",), asks_confidence=asks_confidence), "one"), "")
    back = reply(quiz, "u")
    assert (back.phase, back.turn, back.written) == ("asking", "back", ("one",))
    assert reply(back, "?").turn is None
    choice_back = reply(reply(asking(asks_confidence=True), "a"), "u")
    assert (choice_back.phase, choice_back.turn) == ("asking", None)


@pytest.mark.parametrize("lines", [["", "y", "y", "n", "n"], ["s"]])
def test_an_answer_in_words_that_is_taken_back_keeps_its_words(lines: list[str]) -> None:
    quiz = reply(asking(("topic/open", "topic/choice")), "one")
    for line in lines:
        quiz = reply(quiz, line)
    assert quiz.last.written == ("one",)
    back = reply(quiz, "u")
    assert (back.phase, back.turn, back.written, back.outcomes) == ("asking", "back", ("one",), ())
    assert present(go_on(quiz), draw(choice(), 1)).written == ()
