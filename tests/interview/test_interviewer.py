"""The interviewer's state machine, line by line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.bank.draw import draw
from kit.bank.load import load_question
from kit.interview.interviewer import Desk, Shown, answered, begin, graded, noted, reply
from kit.interview.record import FollowUpRecord, ItemRecord, from_json, to_json
from kit.interview.rubric import red_flags
from tests.interview.made import BANK, untouched

RING, STEPS, BYTES, DESIGN, SHARE = range(5)


def showing(item: ItemRecord) -> Shown:
    drawn = draw(load_question(BANK, item.question_id), item.seed)
    return Shown(drawn, len(red_flags(drawn, BANK, "en")))


def at(place: int, *lines: str, seconds: float = 0.0) -> Desk:
    """The state after these lines at a question."""
    return typed(begin(untouched(), place), *lines, seconds=seconds)


def typed(desk: Desk, *lines: str, seconds: float = 0.0) -> Desk:
    for line in lines:
        desk = reply(desk, line, seconds, showing)
    return desk


# --- back and forth --------------------------------------------------------------------------------------------------


def test_one_goes_forth_and_back_and_to_any_question() -> None:
    places = [at(RING, *lines).place for lines in ([""], ["n", "p"], ["g 4"], ["g ５"], ["n", "n", "back"])]
    assert places == [1, 0, 3, 4, 1]
    assert at(RING, "g 4").part.name == "design"


def test_the_ends_are_ends() -> None:
    assert (at(RING, "p").place, at(RING, "p").notice) == (RING, "first")
    assert (at(SHARE, "").place, at(SHARE, "").notice) == (SHARE, "last")


@pytest.mark.parametrize("line", ["g", "g 0", "g 6", "g x", "g -1"])
def test_there_is_no_other_question(line: str) -> None:
    desk = at(STEPS, line)
    assert (desk.place, desk.notice, desk.why) == (STEPS, "not_taken", "question")


# --- points ----------------------------------------------------------------------------------------------------------


def test_points_of_an_answer_in_words_are_scored_one_by_one() -> None:
    item = at(DESIGN, "1 y", "2 1.5", "3 n").item
    assert item.points_scores == (3.0, 1.5, 0.0, None) and item.points_met == (0,)
    assert (item.verdict, item.score) == ("marked", 4.5 / 8)


def test_a_point_may_be_scored_anew_and_not_at_all() -> None:
    assert at(DESIGN, "1 y", "1 1").item.points_scores == (1.0, None, None, None)
    item = at(DESIGN, "1 y", "1 -").item
    assert (item.points_scores, item.verdict, item.score) == ((), "", 0.0)


@pytest.mark.parametrize(
    ("line", "why"),
    [("5 y", "point"), ("0 y", "point"), ("1 4", "score"), ("1 -1", "score"), ("1", "score"), ("1 nan", "score"),
     ("1 1/0", "score"), ("1 1e999999999", "score"), ("1 maybe", "score")],
)  # fmt: skip
def test_what_is_no_score_changes_nothing(line: str, why: str) -> None:
    desk = at(DESIGN, line)
    assert (desk.notice, desk.why) == ("not_taken", why) and desk.item == untouched().parts[2].items[0]


@pytest.mark.parametrize("line", ["1 y", "１　是", "1 3", "1 3/1", "1 YES"])
def test_a_whole_point_may_be_written_in_many_ways(line: str) -> None:
    assert at(DESIGN, line).item.points_scores[0] == 3.0


def test_an_answer_with_a_right_one_is_marked_at_once() -> None:
    right, wrong = at(RING, "a b").item, at(RING, "a a").item  # with this seed b is right
    assert (right.verdict, right.score, right.answer, right.points_scores) == ("right", 1.0, "b", (2.0, None))
    assert (wrong.verdict, wrong.score, wrong.points_scores) == ("wrong", 0.0, (0.0, None))
    assert at(BYTES, "a 12 GB").item.verdict == "right" and at(BYTES, "a 8 GB").item.verdict == "wrong"


def test_the_reason_counts_once_it_is_scored() -> None:
    assert at(RING, "a b", "2 n").item.score == pytest.approx(2 / 3)
    assert at(RING, "a a", "2 y").item.score == pytest.approx(1 / 3)
    assert at(RING, "2 y", "a a").item.points_scores == (0.0, 1.0)
    assert at(RING, "1 1").item.verdict == "wrong"


def test_a_reason_without_an_answer_is_no_whole_answer() -> None:
    assert at(RING, "2 y").item.score == pytest.approx(1 / 3)
    assert at(RING, "2 y").item.verdict == "marked"


def test_what_is_no_answer_is_not_taken() -> None:
    desk = at(RING, "a zz")
    assert (desk.notice, desk.why, desk.item.answer) == (
        "not_taken",
        "answer",
        "",
    ) and "no option 'z'" in desk.complaint


def test_an_answer_in_words_is_kept_as_it_was_said() -> None:
    assert at(DESIGN, "a  <b>Shard</b> it. ").item.answer == "<b>Shard</b> it."
    desk = answered(at(DESIGN, "a"), "one\n\ntwo\n", showing)
    assert at(DESIGN, "a").notice == "edit_answer" and desk.item.answer == "one\n\ntwo" and desk.item.verdict == ""


# --- notes, follow-ups, flags, hints ---------------------------------------------------------------------------------


def test_notes_grow_line_by_line_and_are_edited_whole() -> None:
    desk = at(DESIGN, "t slow  start", "note 1 y is no score here")
    assert desk.item.notes == "slow  start\n1 y is no score here" and desk.item.points_scores == ()
    assert typed(desk, "t").notice == "edit_note" and noted(desk, " new\n").item.notes == "new"


def test_follow_ups_are_asked_and_scored() -> None:
    assert at(RING, "f 2").item.follow_ups == (FollowUpRecord(1, "asked"),)
    item = at(RING, "f 2", "f 1 y", "f 2 0.5").item
    assert item.follow_ups == (FollowUpRecord(0, "answered", 1.0), FollowUpRecord(1, "answered", 0.5))
    assert at(RING, "f 2", "f 2 -").item.follow_ups == ()
    assert [at(RING, line).why for line in ("f", "f 3", "f 1 2")] == ["follow_up", "follow_up", "score"]


def test_a_red_flag_is_seen_and_not() -> None:
    assert at(RING, "x 2", "x 1").item.red_flags == (0, 1)
    assert at(RING, "x 2", "x 2").item.red_flags == ()
    assert at(RING, "x 3").why == "red_flag" and at(RING, "x no").why == "red_flag"
    assert at(RING, "x").notice == "flags_listed"


def test_hints_are_counted_until_there_are_none() -> None:
    desk = at(RING, "h", "h")
    assert (desk.item.hints, desk.notice) == (2, "hint")
    assert typed(desk, "h").notice == "no_more_hints" and typed(desk, "h").item.hints == 2


def test_a_skipped_question_was_asked() -> None:
    item = at(RING, "a b", "s").item
    assert (item.verdict, item.score, item.points_scores) == ("skipped", 0.0, ())


# --- files -----------------------------------------------------------------------------------------------------------


def test_only_a_code_question_grades_a_file() -> None:
    desk = at(SHARE, "c my file.py")
    assert (desk.notice, desk.wanted) == ("grade", "my file.py")
    assert at(RING, "c share.py").why == "not_code" and at(SHARE, "c").why == "file"


def test_a_grade_gives_the_points_and_they_may_be_changed() -> None:
    found = {"solution": "share.py", "verdict": "wrong", "score": 3, "max_score": 4, "seed": 5, "checks": []}
    desk = graded(at(SHARE), found, {"values": 3, "memory": 0, "traffic": 0}, showing)
    item = desk.item
    assert (item.verdict, item.score, item.points_scores, item.answer) == ("marked", 0.75, (3.0, 0.0), "share.py")
    assert item.grade == found
    assert typed(desk, "2 y").item.score == 1.0


# --- the clock -------------------------------------------------------------------------------------------------------


def test_time_goes_to_the_question_that_was_open_and_to_its_part() -> None:
    desk = reply(begin(untouched()), "n", 30.0, showing)
    desk = reply(desk, "g 4", 12.0, showing)
    desk = reply(desk, "t x", 5.0, showing)
    assert [item.seconds for item in desk.items] == [30.0, 12.0, 0.0, 5.0, 0.0]
    assert [part.seconds_used for part in desk.record.parts] == [42.0, 0.0, 5.0, 0.0]


def test_a_stopped_clock_stands_until_it_is_started() -> None:
    desk = reply(begin(untouched()), "z", 10.0, showing)
    assert desk.is_paused and desk.notice == "paused"
    desk = reply(desk, "", 500.0, showing)
    assert (desk.place, desk.is_paused, desk.item.seconds, desk.notice) == (0, False, 10.0, "resumed")
    desk = reply(reply(desk, "z", 1.0, showing), "t a note", 500.0, showing)
    assert (desk.is_paused, desk.item.seconds, desk.item.notes) == (True, 11.0, "a note")
    desk = reply(desk, "1 y", 500.0, showing)
    assert (desk.is_paused, desk.item.seconds, desk.item.points_scores) == (True, 11.0, (2.0, None))
    assert not reply(desk, "z", 500.0, showing).is_paused


@pytest.mark.parametrize("line", ["n", "g 2"])
def test_another_question_starts_the_clock(line: str) -> None:
    desk = typed(at(RING, "z"), line, seconds=60.0)
    assert (desk.place, desk.is_paused, desk.items[RING].seconds) == (1, False, 0.0)


def test_a_line_that_is_not_taken_does_not_start_the_clock() -> None:
    desk = typed(at(RING, "z"), "what", seconds=60.0)
    assert desk.is_paused and desk.item.seconds == 0.0 and desk.why == "unknown"


# --- undo, end, resume -----------------------------------------------------------------------------------------------


def test_undo_takes_changes_back_where_they_were_made() -> None:
    desk = at(RING, "t one", "g 4", "1 y", "n", "t three")
    desk = typed(desk, "u", "u")
    assert (desk.place, desk.notice) == (DESIGN, "undone") and desk.items[DESIGN] == untouched().parts[2].items[0]
    assert desk.items[RING].notes == "one"
    assert typed(desk, "u").items[RING].notes == "" and typed(desk, "u", "u").notice == "nothing_to_undo"


def test_undo_gives_no_time_back_and_takes_no_other_change() -> None:
    desk = at(RING, "t one", "t two", "u", seconds=10.0)
    assert (desk.item.notes, desk.item.seconds, desk.part.seconds_used) == ("one", 30.0, 30.0)


def test_an_end_with_questions_left_is_said_twice() -> None:
    desk = at(RING, "end my card.html")
    assert (desk.phase, desk.notice, desk.wanted) == ("going_on", "unasked", "my card.html")
    desk = typed(desk, "end my card.html")
    assert (desk.phase, desk.wanted) == ("ended", "my card.html")
    assert at(RING, "end", "t a note", "end").phase == "going_on"
    asked = at(RING, *(line for _ in untouched().plan.parts for line in ("s", "n")), "s", "end")
    assert {item.verdict for item in asked.items} == {"skipped"} and (asked.phase, asked.wanted) == ("ended", "")
    assert at(RING, "q").phase == "left" and at(RING, "exit").phase == "left"


def test_an_answer_in_words_grows_line_by_line() -> None:
    assert at(DESIGN, "a shard", "a the state").item.answer == "shard\nthe state"
    assert at(RING, "a a", "a b").item.answer == "b"


def test_what_is_said_of_the_whole_is_kept_and_taken_back() -> None:
    desk = at(RING, "o strong", "t a note", "o hire")
    assert desk.record.overall == "strong\nhire"
    assert from_json(to_json(desk.record)).overall == "strong\nhire"
    desk = typed(desk, "u")
    assert (desk.record.overall, desk.item.notes) == ("strong", "a note")
    assert at(RING, "o").notice == "edit_overall"


def test_all_of_it_comes_through_json() -> None:
    desk = at(RING, "a b", "2 n", "f 1", "f 2 y", "x 1", "h", "t <x>\u4e2d", "g 4", "1 1.5", seconds=0.1)
    assert from_json(to_json(desk.record)) == desk.record
    assert begin(from_json(to_json(desk.record)), desk.place).item == desk.item


def test_a_place_that_is_not_there_is_the_nearest() -> None:
    assert begin(untouched(), 99).place == SHARE and begin(untouched(), -1).place == RING
    assert replace(begin(untouched()), place=SHARE).part.name == "coding"
