"""A mock interview as a candidate goes through it: lines go in, a new state comes out; nothing is read or printed.

First the mock: every question of every part, without a word on what was right. Then the debrief: answers in words are
marked by whoever gave them, point by point, and answers to follow-ups are held beside ours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from kit.bank.draw import Draw
from kit.bank.mark import mark_points, read_yes_or_no
from kit.errors import KitError
from kit.interview.record import FollowUpRecord, ItemRecord, PartRecord, Record
from kit.practice import quiz as questions
from kit.practice.quiz import Quiz

Phase = Literal["choosing", "asking", "coding", "following", "marking", "comparing", "left", "over"]
Notice = Literal[
    "paused", "resumed", "hint", "no_more_hints", "not_taken", "nothing", "edit", "grade", "graded", "start",
    "not_graded", "debrief", "line_gone", "nothing_to_undo", "keeps_none", "skipped", "next_part", "unchanged",
]  # fmt: skip

PAUSE, PART, LEAVE = ("p", "pause"), ("part",), ("q", "quit", "exit")
GRADE, START, DONE, SKIP = ("g", "grade"), ("w", "write"), ("d", "done"), ("s", "skip")
MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Mock:
    """`place`: the question that is on, from 0, over all parts.

    choosing: the question at `place` is to be drawn and given to `present`. asking: `quiz` takes its answer. coding:
    a file is written elsewhere, and graded when asked for. following: the follow-up at `follow_up` is asked, and
    `written` grows. marking: whether the answer in words makes the next point; comparing: whether that to the follow-up
    holds. left: to be resumed. over: nothing more is taken.
    """

    record: Record
    place: int = 0
    phase: Phase = "choosing"
    is_debrief: bool = False
    is_paused: bool = False
    is_interrupted: bool = False  # left by Ctrl-C
    draw: Draw | None = None
    quiz: Quiz | None = None
    follow_up: int = 0
    written: tuple[str, ...] = ()
    are_met: tuple[bool, ...] = ()
    notice: Notice | None = None
    complaint: str = ""
    wanted: str = ""  # the file to be graded; empty is the one that was written
    num_late: int = 0  # questions that the last line left unasked, since the time of their part was used up

    @property
    def items(self) -> tuple[ItemRecord, ...]:
        return tuple(item for part in self.record.parts for item in part.items)

    @property
    def item(self) -> ItemRecord:
        return self.items[self.place]

    @property
    def part_index(self) -> int:
        place = self.place
        for index, part in enumerate(self.record.parts):
            if place < len(part.items):
                return index
            place -= len(part.items)
        return len(self.record.parts) - 1

    @property
    def part(self) -> PartRecord:
        return self.record.parts[self.part_index]

    @property
    def seconds_left(self) -> float:
        """Of the part; below 0 where it is over its time."""
        return self.part.minutes * MINUTE_S - self.part.seconds_used

    @property
    def number_in_part(self) -> int:
        return self.place - sum(len(part.items) for part in self.record.parts[: self.part_index])


def begin(record: Record, place: int = 0, *, is_debrief: bool = False) -> Mock:
    """From the start, or where an interview was left: what was answered is not asked again, what was begun goes on."""
    mock = Mock(record, place, is_debrief=is_debrief)
    if not is_debrief and open_follow_up(mock.item) is not None:
        return mock
    return go_on(mock, 0 if is_debrief else place)


def open_follow_up(item: ItemRecord) -> FollowUpRecord | None:
    """That which was asked last and is not answered."""
    return item.follow_ups[-1] if item.follow_ups and item.follow_ups[-1].state == "asked" else None


def go_on(mock: Mock, place: int) -> Mock:
    """To the first question from `place` that is still open, then to the debrief, then to the end."""
    items = mock.items
    if not mock.is_debrief:
        while place < len(items):
            here = replace(mock, place=place)
            if here.seconds_left <= 0 and here.item.verdict == "" and not here.item.answer:
                place += 1  # the part's time is used up
                mock = replace(mock, num_late=mock.num_late + 1)
            elif here.item.verdict == "":
                return cleared(replace(here, phase="choosing"))
            else:
                place += 1
        return go_on(replace(mock, is_debrief=True), 0)
    while place < len(items):
        if needs_debrief(items[place]):
            return cleared(replace(mock, place=place, phase="choosing", notice=mock.notice or "debrief"))
        place += 1
    return cleared(replace(mock, place=len(items) - 1, phase="over"))


def needs_debrief(item: ItemRecord) -> bool:
    return item.verdict == "unmarked" or any(
        each.state == "answered" and each.score is None for each in item.follow_ups
    )


def cleared(mock: Mock) -> Mock:
    return replace(mock, draw=None, quiz=None, written=(), are_met=(), complaint="", wanted="")


def present(mock: Mock, draw: Draw) -> Mock:
    """The question at `place` is asked; in the debrief, what is open of it."""
    assert mock.phase == "choosing" and draw.question.id == mock.item.question_id
    mock = replace(mock, draw=draw, notice=None)
    if mock.is_debrief:
        are_met = tuple(bool(points) for points in mock.item.points_scores if points is not None)
        return replace(mock, phase="marking" if mock.item.verdict == "unmarked" else "comparing", are_met=are_met)
    begun = open_follow_up(mock.item)
    if begun is not None:
        return replace(mock, phase="following", follow_up=begun.index, written=lines_of(begun.answer))
    if mock.item.kind == "code":
        return replace(mock, phase="coding")
    asked = questions.present(questions.begin((draw.question.id,), bookmarks=None), draw)
    kept = lines_of(mock.item.answer) if mock.item.kind == "open" else ()
    return replace(mock, phase="asking", quiz=replace(asked, written=kept, num_hints=mock.item.hints))


def lines_of(text: str) -> tuple[str, ...]:
    return tuple(text.rstrip().split("\n")) if text.strip() else ()


def pass_time(mock: Mock, seconds: float) -> Mock:
    """The time since the last line belongs to the question that is on; a pause and the debrief belong to none."""
    if mock.is_paused or mock.is_debrief or mock.phase in ("left", "over"):
        return mock
    item = replace(mock.item, seconds=mock.item.seconds + seconds)
    return with_item(mock, item, seconds)


def with_item(mock: Mock, item: ItemRecord, seconds: float = 0.0) -> Mock:
    part = mock.part
    items = tuple(item if index == mock.number_in_part else each for index, each in enumerate(part.items))
    part = replace(part, items=items, seconds_used=part.seconds_used + seconds)
    parts = tuple(part if index == mock.part_index else each for index, each in enumerate(mock.record.parts))
    return replace(mock, record=replace(mock.record, parts=parts))


def change(mock: Mock, **fields: Any) -> Mock:
    return with_item(mock, replace(mock.item, **fields))


def leave(mock: Mock, *, is_interrupted: bool = False) -> Mock:
    return replace(mock, phase="left", is_paused=False, is_interrupted=is_interrupted)


def reply(mock: Mock, line: str) -> Mock:
    """What was typed: a command, an answer, a line of one, or yes and no in the debrief."""
    text = unicodedata.normalize("NFKC", line).strip()
    word = text.lower()
    mock = replace(mock, notice=None, complaint="", num_late=0)
    if word in LEAVE:
        return leave(mock)
    if mock.is_paused:
        mock = replace(mock, is_paused=False, notice="resumed")
        if not word or word in PAUSE:
            return mock
    if mock.phase in ("marking", "comparing"):
        return debrief(mock, text)
    if word in PAUSE:
        return replace(mock, is_paused=True, notice="paused")
    if word in PART:
        return next_part(mock)
    if mock.phase == "coding":
        return coding(mock, text, word)
    if mock.phase == "following":
        return following(mock, line, word)
    assert mock.quiz is not None
    return after(mock, questions.reply(mock.quiz, line))


def next_part(mock: Mock) -> Mock:
    """What is left of this part is not asked; an answer in words that was begun is kept."""
    if mock.item.verdict == "":
        is_begun = mock.item.kind == "open" and mock.item.answer
        verdict = "unmarked" if is_begun else verdict_of(mock.item) if mock.item.grade is not None else "skipped"
        mock = change(mock, verdict=verdict)
    left_out = replace(mock, notice="next_part")
    return go_on(left_out, sum(len(part.items) for part in mock.record.parts[: mock.part_index + 1]))


def edited(mock: Mock, text: str) -> Mock:
    """An answer in words as an editor gave it back; one that was left as it is, is not handed in."""
    written = mock.written if mock.phase == "following" or mock.quiz is None else mock.quiz.written
    if written and lines_of(text) == written:
        return replace(mock, notice="unchanged")
    if mock.phase == "following":
        return followed(replace(mock, written=lines_of(text), notice=None))
    assert mock.quiz is not None
    return after(replace(mock, notice=None), questions.edited(mock.quiz, text))


def after(mock: Mock, quiz: Quiz) -> Mock:
    """What the question's own state machine came to; a verdict is written down and not told."""
    mock = replace(mock, quiz=quiz)
    if quiz.phase == "marking":
        mock = change(mock, answer="\n".join(quiz.written), verdict="unmarked", hints=quiz.num_hints)
        return ask_follow_up(mock)
    if quiz.outcomes:
        outcome = quiz.last
        given = outcome.mark.got if outcome.mark is not None else ""
        mock = change(mock, answer=given, verdict=outcome.verdict, score=outcome.score, hints=outcome.num_hints)
        if outcome.verdict == "skipped":
            mock = replace(mock, notice="skipped")
        return ask_follow_up(mock)
    mock = change(mock, hints=quiz.num_hints)
    if mock.item.kind == "open":
        mock = change(mock, answer="\n".join(quiz.written))
    assert quiz.notice != "bookmarked" and quiz.notice != "unbookmarked", "a mock keeps no bookmarks"
    return replace(mock, notice=quiz.notice, complaint=quiz.complaint)


# --- follow-ups ------------------------------------------------------------------------------------------------------


def ask_follow_up(mock: Mock) -> Mock:
    """Where time is left. After a wrong answer, or none, the first, which goes back to the matter; else the last, which
    goes on from it."""
    assert mock.draw is not None
    count = len(mock.draw.question.follow_ups)
    if not count or mock.seconds_left <= 0 or mock.item.verdict == "skipped":
        return go_on(mock, mock.place + 1)
    index = 0 if mock.item.verdict == "wrong" else count - 1
    mock = change(mock, follow_ups=(FollowUpRecord(index, "asked"),))
    return replace(mock, phase="following", follow_up=index, written=(), quiz=None)


def following(mock: Mock, line: str, word: str) -> Mock:
    if word in SKIP:
        return go_on(replace(mock, notice="skipped"), mock.place + 1)
    if word in ("?", "hint"):
        return replace(mock, notice="no_more_hints")
    if word in questions.EDIT:
        return replace(mock, notice="edit")
    if word in ("u", "undo"):
        gone: Notice = "line_gone" if mock.written else "nothing_to_undo"
        return keep_written(replace(mock, written=mock.written[:-1], notice=gone))
    if line.strip():
        return keep_written(replace(mock, written=(*mock.written, line)))
    return followed(mock)


def keep_written(mock: Mock) -> Mock:
    return change(mock, follow_ups=(FollowUpRecord(mock.follow_up, "asked", None, "\n".join(mock.written)),))


def followed(mock: Mock) -> Mock:
    if not mock.written:
        return replace(mock, notice="nothing")
    mock = replace(mock, notice=None)
    answer = FollowUpRecord(mock.follow_up, "answered", None, "\n".join(mock.written))
    return go_on(change(mock, follow_ups=(answer,)), mock.place + 1)


# --- code ------------------------------------------------------------------------------------------------------------


def coding(mock: Mock, text: str, word: str) -> Mock:
    """`w` writes the starter, `g FILE` grades a file (without one, what was written), `d` is done, `s` skips."""
    command, _, path = text.partition(" ")
    if command.lower() in START and not path:
        return replace(mock, notice="start")
    if command.lower() in GRADE:
        return replace(mock, notice="grade", wanted=path.strip())
    if word == "?":
        return code_hint(mock)
    if word in SKIP:
        if mock.item.grade is None:
            return go_on(replace(change(mock, verdict="skipped"), notice="skipped"), mock.place + 1)
        return ask_follow_up(change(mock, verdict=verdict_of(mock.item)))
    if word in DONE:
        if mock.item.grade is None:
            return replace(mock, notice="not_graded")
        return ask_follow_up(change(mock, verdict=verdict_of(mock.item)))
    return replace(mock, notice="nothing" if not text else "not_taken")


def code_hint(mock: Mock) -> Mock:
    assert mock.draw is not None
    if mock.item.hints == len(mock.draw.question.hints):
        return replace(mock, notice="no_more_hints")
    return replace(change(mock, hints=mock.item.hints + 1), notice="hint")


def graded(mock: Mock, found: Mapping[str, Any]) -> Mock:
    """A grade as JSON; the best one counts, and the file may be graded again."""
    share = found["score"] / found["max_score"] if found.get("max_score") else 0.0
    mock = replace(mock, notice="graded")
    if mock.item.grade is not None and mock.item.score > share:
        return mock
    return change(mock, grade=dict(found), score=share, answer=str(found["solution"]))


def verdict_of(item: ItemRecord) -> str:
    return "right" if item.grade is not None and item.grade.get("verdict") == "passed" else "wrong"


# --- the debrief -----------------------------------------------------------------------------------------------------


def debrief(mock: Mock, text: str) -> Mock:
    """Yes or no to the next point, or to the follow-up; `u` takes the last point back."""
    if text.lower() in ("u", "undo") and mock.phase == "marking":
        gone: Notice | None = None if mock.are_met else "nothing_to_undo"
        return replace(keep_points(mock, mock.are_met[:-1]), notice=gone)
    try:
        yes = read_yes_or_no(text)
    except KitError as error:
        return replace(mock, notice="not_taken", complaint=error.message)
    if mock.phase == "comparing":
        kept = tuple(
            replace(each, score=float(yes)) if each.state == "answered" and each.score is None else each
            for each in mock.item.follow_ups
        )
        return go_on(change(mock, follow_ups=kept), mock.place)
    assert mock.draw is not None and mock.draw.question.kind == "open"
    question = mock.draw.question
    are_met = (*mock.are_met, yes)
    mock = keep_points(mock, are_met)
    if len(are_met) < len(question.rubric):
        return mock
    given = mark_points(question, are_met)
    met = tuple(index for index, is_met in enumerate(are_met) if is_met)
    mock = change(mock, verdict="marked", score=int(given.got) / int(given.expected), points_met=met)
    if needs_debrief(mock.item):
        return replace(mock, phase="comparing", are_met=())
    return go_on(mock, mock.place + 1)


def keep_points(mock: Mock, are_met: tuple[bool, ...]) -> Mock:
    assert mock.draw is not None and mock.draw.question.kind == "open"
    weights = [point.weight for point in mock.draw.question.rubric]
    got = [float(weight) if is_met else 0.0 for weight, is_met in zip(weights, are_met, strict=False)]
    left = [None] * (len(weights) - len(got))
    return change(replace(mock, are_met=are_met), points_scores=(*got, *left))
