"""A mock interview's state machine, line by line; the clock is a number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.bank.draw import draw
from kit.bank.load import load_question
from kit.interview.candidate import Mock, begin, edited, graded, leave, pass_time, present, reply
from kit.interview.record import Record, from_json, to_json
from tests.interview.made import BANK, untouched

RING, STEPS, BYTES, DESIGN, SHARE = range(5)
PASSED = {"verdict": "passed", "score": 4, "max_score": 4, "solution": "share.py"}
HALF = {"verdict": "wrong", "score": 2, "max_score": 4, "solution": "share.py"}


def started() -> Record:
    return replace(untouched(), role="candidate")


def presented(mock: Mock) -> Mock:
    if mock.phase != "choosing":
        return mock
    item = mock.item
    return present(mock, draw(load_question(BANK, item.question_id), item.seed))


def typed(mock: Mock, *lines: str, seconds: float = 0.0) -> Mock:
    for line in lines:
        mock = presented(reply(pass_time(mock, seconds), line))
    return mock


def at(place: int) -> Mock:
    """At that question, those before it skipped."""
    mock = presented(begin(started()))
    while mock.place < place:
        mock = typed(mock, "s")
    return mock


def again(mock: Mock) -> Mock:
    """What another process makes of it, from JSON."""
    record = from_json(to_json(mock.record))
    assert record == mock.record
    return presented(begin(record, mock.place, is_debrief=mock.is_debrief))


def letter(place: int, *, right: bool) -> str:
    shown = at(place).draw
    assert shown is not None and shown.question.kind == "choice"
    return next(
        "abc"[position] for position, index in enumerate(shown.order) if shown.question.options[index].correct == right
    )


# --- one question ----------------------------------------------------------------------------------------------------


def test_a_verdict_is_written_down_and_not_told() -> None:
    mock = typed(at(RING), "?", letter(RING, right=True))
    item = mock.items[RING]
    assert (item.verdict, item.score, item.hints, item.answer) == ("right", 1.0, 1, letter(RING, right=True))
    assert mock.phase == "following" and mock.notice is None and mock.complaint == ""


def test_the_follow_up_depends_on_the_answer() -> None:
    right, wrong = (typed(at(RING), letter(RING, right=is_right)) for is_right in (True, False))
    assert (right.phase, right.follow_up) == ("following", 1)
    assert (wrong.phase, wrong.follow_up) == ("following", 0)
    assert typed(at(RING), "s").place == STEPS  # nothing was said that could be followed up


def test_what_is_no_answer_costs_nothing() -> None:
    for place, line, notice in ((RING, "x", "not_taken"), (RING, "", "nothing"), (BYTES, "many", "not_taken"),
                                (BYTES, "b", "keeps_none"), (RING, "u", "nothing_to_undo"),
                                (SHARE, "x", "not_taken"), (SHARE, "", "nothing")):  # fmt: skip
        mock = typed(at(place), line)
        assert (mock.place, mock.item.verdict, mock.notice) == (place, "", notice), (place, line)


def test_a_number_is_marked_with_its_unit() -> None:
    assert typed(at(BYTES), "12 GB").items[BYTES].verdict == "right"
    assert typed(at(BYTES), "12 GiB").items[BYTES].verdict == "wrong"


def test_an_answer_in_words_grows_line_by_line_and_is_kept_as_it_grows() -> None:
    mock = typed(at(DESIGN), "Shard", "the state")
    assert mock.item.answer == "Shard\nthe state" and mock.item.verdict == ""
    mock = typed(mock, "u")
    assert mock.item.answer == "Shard" and mock.notice == "line_gone"
    mock = typed(mock, "")
    assert mock.item.verdict == "unmarked" and mock.phase == "following"
    mock = typed(mock, "inside", "the node")
    assert mock.item.follow_ups[0].answer == "inside\nthe node" and mock.item.follow_ups[0].state == "asked"
    mock = typed(mock, "u", "")
    assert mock.items[DESIGN].follow_ups[0].answer == "inside" and mock.items[DESIGN].follow_ups[0].state == "answered"


def test_an_editor_gives_a_whole_answer() -> None:
    mock = typed(at(DESIGN), "e")
    assert mock.notice == "edit"
    mock = edited(mock, "one\n\ntwo\n")
    assert mock.items[DESIGN].answer == "one\n\ntwo" and mock.phase == "following"
    assert edited(typed(mock, "e"), "three\n").items[DESIGN].follow_ups[0].answer == "three"
    assert edited(typed(at(DESIGN), "e"), " \n").notice == "nothing"


def test_an_editor_that_changes_nothing_hands_nothing_in() -> None:
    mock = edited(typed(at(DESIGN), "one", "e"), "one\n")
    assert (mock.notice, mock.item.verdict, mock.phase) == ("unchanged", "", "asking")
    mock = edited(typed(at(DESIGN), "one", "", "a follow-up", "e"), "a follow-up\n")
    assert (mock.notice, mock.phase) == ("unchanged", "following")
    assert typed(mock, "").items[DESIGN].follow_ups[0].answer == "a follow-up"


# --- time ------------------------------------------------------------------------------------------------------------


def test_time_goes_to_the_question_and_its_part_until_a_pause() -> None:
    mock = typed(at(RING), "?", seconds=10)
    mock = typed(mock, "p", seconds=20)
    assert mock.is_paused and mock.seconds_left == 600 - 30
    mock = typed(mock, "", seconds=5000)
    assert not mock.is_paused and mock.notice == "resumed" and mock.seconds_left == 570
    mock = typed(mock, "s", seconds=5)
    assert [item.seconds for item in mock.items] == [35, 0, 0, 0, 0]
    assert [part.seconds_used for part in mock.record.parts] == [35, 0, 0, 0]


def test_an_answer_ends_a_pause_and_is_taken() -> None:
    mock = typed(typed(at(RING), "p"), letter(RING, right=True), seconds=5000)
    assert mock.items[RING].verdict == "right" and not mock.is_paused
    assert mock.items[RING].seconds == 0
    assert typed(at(RING), "p", "p").notice == "resumed"


def test_what_is_skipped_is_called_skipped() -> None:
    def notice(mock: Mock, line: str) -> str | None:
        return reply(mock, line).notice

    assert notice(at(RING), "s") == notice(at(SHARE), "s") == "skipped"
    assert notice(typed(at(RING), letter(RING, right=True)), "s") == "skipped"
    assert notice(at(RING), "part") == "next_part"
    assert notice(at(RING), letter(RING, right=True)) is None


def test_a_paused_interview_can_be_left() -> None:
    assert typed(at(RING), "p", "q").phase == "left"


def test_a_part_whose_time_is_up_asks_nothing_more_of_it_and_no_follow_up() -> None:
    mock = typed(at(RING), letter(RING, right=True), seconds=601)
    assert mock.place == BYTES and mock.items[STEPS].verdict == "" and mock.items[RING].verdict == "right"
    assert mock.items[RING].follow_ups == ()


def test_questions_that_no_time_is_left_for_are_counted() -> None:
    late = reply(pass_time(at(RING), 601), letter(RING, right=True))
    assert late.num_late == 1
    assert reply(presented(late), "many").num_late == 0
    assert reply(at(RING), letter(RING, right=True)).num_late == 0


def test_the_answer_that_is_being_given_is_still_taken_when_time_is_up() -> None:
    mock = typed(at(DESIGN), "late", seconds=5000)
    assert mock.phase == "asking" and mock.seconds_left < 0
    assert typed(mock, "").items[DESIGN].verdict == "unmarked"


def test_the_next_part_may_be_taken_early() -> None:
    mock = typed(at(RING), "part")
    assert mock.place == BYTES
    assert [item.verdict for item in mock.items] == ["skipped", "", "", "", ""]
    mock = typed(at(DESIGN), "half an answer", "part")
    assert mock.items[DESIGN].verdict == "unmarked" and mock.place == SHARE


# --- code ------------------------------------------------------------------------------------------------------------


def test_a_file_may_be_graded_again_and_the_best_grade_counts() -> None:
    mock = typed(at(SHARE), "d")
    assert mock.notice == "not_graded" and mock.place == SHARE
    mock = typed(mock, "g  my file.py ")
    assert (mock.notice, mock.wanted) == ("grade", "my file.py")
    assert typed(mock, "g").wanted == ""
    assert typed(mock, "w").notice == "start"
    mock = graded(mock, HALF)
    assert (mock.item.score, mock.item.verdict) == (0.5, "")
    mock = graded(mock, PASSED)
    assert mock.item.score == 1.0
    worse = graded(mock, HALF)
    assert worse.item.score == 1.0 and worse.item.grade == PASSED
    assert typed(worse, "d").items[SHARE].verdict == "right"
    assert typed(graded(at(SHARE), HALF), "d").items[SHARE].verdict == "wrong"


def test_code_has_a_follow_up_too() -> None:
    right, wrong = (typed(graded(at(SHARE), grade), "d") for grade in (PASSED, HALF))
    assert right.draw is not None
    assert (right.phase, right.follow_up) == ("following", len(right.draw.question.follow_ups) - 1)
    assert (wrong.phase, wrong.follow_up) == ("following", 0)
    mock = again(typed(right, "each has", "its own"))
    assert mock.phase == "following" and mock.written == ("each has", "its own")
    mock = typed(mock, "")
    assert (mock.phase, mock.is_debrief) == ("comparing", True)
    assert typed(mock, "y").items[SHARE].follow_ups[0].score == 1.0


@pytest.mark.parametrize("line", ["s", "part"])
def test_what_was_graded_is_never_skipped(line: str) -> None:
    assert typed(graded(at(SHARE), HALF), line).items[SHARE].verdict == "wrong"
    assert typed(at(SHARE), line).items[SHARE].verdict == "skipped"


# --- the debrief -----------------------------------------------------------------------------------------------------


def answered() -> Mock:
    """All skipped but the answer in words and its follow-up; in the debrief."""
    mock = typed(at(DESIGN), "Shard it", "", "inside the node", "", "s")
    assert mock.is_debrief and mock.phase == "marking" and mock.place == DESIGN
    return mock


def test_answers_in_words_are_marked_at_the_end_point_by_point() -> None:
    mock = typed(answered(), "y", "是", "n", "u", "n", "n")
    item = mock.items[DESIGN]
    assert (item.verdict, item.score, item.points_met) == ("marked", 5 / 8, (0, 1))
    assert item.points_scores == (3.0, 2.0, 0.0, 0.0)
    assert mock.phase == "comparing"
    mock = typed(mock, "maybe")
    assert mock.phase == "comparing" and mock.notice == "not_taken"
    mock = typed(mock, "y")
    assert mock.phase == "over" and mock.items[DESIGN].follow_ups[0].score == 1.0


def test_without_an_answer_in_words_there_is_no_debrief() -> None:
    mock = typed(at(SHARE), "s")
    assert mock.phase == "over" and {item.verdict for item in mock.items} == {"skipped"}


def test_the_debrief_takes_no_time_of_a_part() -> None:
    before = answered()
    after = typed(before, "y", seconds=1000)
    assert [part.seconds_used for part in after.record.parts] == [part.seconds_used for part in before.record.parts]


# --- left, or killed -------------------------------------------------------------------------------------------------

LINES = (
    "?", letter(RING, right=False), "n - 1", "times", "", "c b a", "all of it", "", "12 GB", "u", "first", "",
    "Compute", "the state", "", "Shard it", "slowly", "", "s", "y", "n", "y", "n", "y", "y", "y", "n",
)  # fmt: skip


def test_an_interview_that_is_killed_after_any_line_goes_on_as_if_it_was_not() -> None:
    whole = presented(begin(started()))
    killed = whole
    phases = set()
    for line in LINES:
        whole = typed(whole, line, seconds=3)
        killed = typed(again(killed), line, seconds=3)
        assert killed.record == whole.record, line
        phases.add(whole.phase)
    assert phases >= {"asking", "following", "coding", "marking", "comparing", "over"}
    assert (killed.phase, killed.place) == (whole.phase, whole.place) == ("over", SHARE)
    assert [item.verdict for item in whole.items] == ["wrong", "wrong", "right", "marked", "skipped"]
    assert [each.answer for item in whole.items for each in item.follow_ups] == [
        "n - 1\ntimes", "all of it", "first", "Shard it\nslowly",
    ]  # fmt: skip


def test_leaving_keeps_the_place() -> None:
    mock = typed(at(BYTES), "?", "q")
    assert mock.phase == "left"
    back = again(mock)
    assert (back.place, back.phase, back.item.hints) == (BYTES, "asking", 1)
    assert leave(back).phase == "left"
