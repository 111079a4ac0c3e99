"""An interview as the interviewer steers it: lines of text go in, a new state comes out; nothing is read or printed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from kit.bank.mark import mark
from kit.errors import KitError
from kit.interview.record import FollowUpRecord, ItemRecord, PartRecord, Record
from kit.interview.rubric import weights_of
from kit.interview.typed import first_word, points_typed, whole_number

if TYPE_CHECKING:
    from kit.bank.draw import Draw
    from kit.bank.schema import Question

MOST_UNDONE = 100


@dataclass(frozen=True, slots=True)
class Shown:
    """A question as it was drawn for this interview, and how many red flags are listed with it."""

    draw: Draw
    num_red_flags: int

    @property
    def question(self) -> Question:
        return self.draw.question


Showing = Callable[[ItemRecord], Shown]

Command = Literal[
    "next", "back", "go", "list", "view", "answer", "note", "follow_up", "red_flag", "hint", "skip", "grade", "pause",
    "undo", "help", "end", "quit", "point", "overall",
]  # fmt: skip
Notice = Literal[
    "shown", "moved", "first", "last", "changed", "hint", "no_more_hints", "listed", "help", "grade", "edit_answer",
    "edit_note", "paused", "resumed", "nothing_to_undo", "not_taken", "undone", "edit_overall", "overall", "unasked",
    "flags_listed",
]  # fmt: skip
Why = Literal["unknown", "question", "point", "score", "follow_up", "red_flag", "file", "not_code", "answer"]

KEYS: dict[Command, tuple[str, ...]] = {
    "next": ("", "n", "next"), "back": ("p", "back"), "go": ("g", "go"), "list": ("l", "list"), "view": ("v", "view"),
    "answer": ("a", "answer"), "note": ("t", "note"), "follow_up": ("f",), "red_flag": ("x",), "hint": ("h", "hint"),
    "skip": ("s", "skip"), "grade": ("c", "grade"), "pause": ("z", "pause"), "undo": ("u", "undo"),
    "overall": ("o", "overall"), "help": ("?", "help"), "end": ("end",), "quit": ("q", "quit", "exit"),
}  # fmt: skip
COMMANDS = {key: command for command, keys in KEYS.items() for key in keys}


@dataclass(frozen=True, slots=True)
class Desk:
    """What lies before the interviewer: the record so far, and which of its questions is open (`place`, from 0).

    going_on: lines are taken. left: to be resumed. ended: the scorecard is to be written, to `wanted` where it is
    named. `wanted` is also the file that is to be graded.
    """

    record: Record
    place: int = 0
    phase: Literal["going_on", "left", "ended"] = "going_on"
    notice: Notice | None = None
    why: Why | None = None  # a line was not taken
    complaint: str = ""
    wanted: str = ""
    is_paused: bool = False
    is_interrupted: bool = False  # left by Ctrl-C
    is_ending: bool = False  # `end` was typed once, with questions that were not asked
    touched: tuple[Literal["point", "follow_up", "red_flag"], int] | None = None  # what the last line changed, by index
    before: tuple[tuple[Record, int], ...] = ()  # what undo brings back, the latest last

    @property
    def items(self) -> tuple[ItemRecord, ...]:
        return tuple(item for part in self.record.parts for item in part.items)

    @property
    def item(self) -> ItemRecord:
        return self.items[self.place]

    @property
    def part_index(self) -> int:
        return part_of(self.record, self.place)

    @property
    def part(self) -> PartRecord:
        return self.record.parts[self.part_index]


def part_of(record: Record, place: int) -> int:
    for index, part in enumerate(record.parts):
        if place < len(part.items):
            return index
        place -= len(part.items)
    raise IndexError("no such question")


def begin(record: Record, place: int = 0) -> Desk:
    """At a question of an interview, a new one or one that was left."""
    count = sum(len(part.items) for part in record.parts)
    assert count, "a plan has questions"
    return Desk(record, min(max(place, 0), count - 1), notice="shown")


def reply(desk: Desk, line: str, seconds: float, showing: Showing) -> Desk:
    """What the interviewer typed, `seconds` after the line before. `showing` gives a question as it is asked.

    A line that is not taken changes nothing but the clock. While the clock is stopped everything can be done, and it
    stands until `z`, an empty line, or another question.
    """
    desk = pass_time(replace(desk, notice=None, why=None, complaint="", wanted="", touched=None), seconds)
    word, rest = first_word(line)
    sign = unicodedata.normalize("NFKC", word).strip().lower()
    command: Command | None = "point" if sign.isdigit() else COMMANDS.get(sign)
    if command is None:
        return not_taken(desk, "unknown", line.strip())
    if desk.is_paused and (command == "pause" or not sign):
        return replace(desk, is_paused=False, notice="resumed")
    after = ACTIONS[command](desk, sign if command == "point" else rest, rest, showing)
    return after if command == "end" else replace(after, is_ending=False)


def pass_time(desk: Desk, seconds: float) -> Desk:
    """To the open question and its part, unless the clock is stopped."""
    if desk.is_paused or seconds <= 0 or desk.phase != "going_on":
        return desk
    desk = with_item(desk, replace(desk.item, seconds=desk.item.seconds + seconds))
    return with_part(desk, replace(desk.part, seconds_used=desk.part.seconds_used + seconds))


def with_item(desk: Desk, item: ItemRecord) -> Desk:
    first = sum(len(part.items) for part in desk.record.parts[: desk.part_index])
    items = list(desk.part.items)
    items[desk.place - first] = item
    return with_part(desk, replace(desk.part, items=tuple(items)))


def with_part(desk: Desk, part: PartRecord) -> Desk:
    parts = list(desk.record.parts)
    parts[desk.part_index] = part
    return replace(desk, record=replace(desk.record, parts=tuple(parts)))


def change(desk: Desk, notice: Notice = "changed", **fields: Any) -> Desk:
    """The open question with new values; undo brings the old ones back."""
    return replace(with_item(desk, replace(desk.item, **fields)), before=remembered(desk), notice=notice)


def remembered(desk: Desk) -> tuple[tuple[Record, int], ...]:
    """What undo brings back after the next change."""
    return (*desk.before, (desk.record, desk.place))[-MOST_UNDONE:]


def not_taken(desk: Desk, why: Why, complaint: str = "") -> Desk:
    return replace(desk, notice="not_taken", why=why, complaint=complaint)


# --- from one question to another -------------------------------------------------------------------------------------


def move(desk: Desk, place: int) -> Desk:
    return replace(desk, place=place, notice="moved", is_paused=False)


def go_next(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    return move(desk, desk.place + 1) if desk.place + 1 < len(desk.items) else replace(desk, notice="last")


def go_back(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    return move(desk, desk.place - 1) if desk.place else replace(desk, notice="first")


def go_to(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    number = whole_number(argument)
    if number is None or not 1 <= number <= len(desk.items):
        return not_taken(desk, "question", argument)
    return move(desk, number - 1)


# --- what the candidate said ------------------------------------------------------------------------------------------


def take_answer(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    """The answer as it was given: one with a right answer is marked at once, one in words grows line by line."""
    if not argument:
        return replace(desk, notice="edit_answer")
    is_grown = desk.item.kind in ("open", "code")
    return answered(desk, "\n".join(filter(None, [desk.item.answer if is_grown else "", argument])), showing)


def answered(desk: Desk, text: str, showing: Showing) -> Desk:
    """Also for an answer that an editor gave back. Empty text takes the answer away, not the points."""
    text = text.strip()
    if desk.item.kind in ("open", "code") or not text:
        return change(desk, answer=text)
    try:
        given = mark(showing(desk.item).draw, text)
    except KitError as error:
        return not_taken(desk, "answer", "; ".join(filter(None, [error.message, error.hint])))
    weights = weights_of(showing(desk.item).question)
    points = {**scored(desk.item), 0: float(weights[0]) if given.is_right else 0.0}
    return score(desk, points, weights, answer=given.got)


def take_note(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    """One more line of notes."""
    if not argument:
        return replace(desk, notice="edit_note")
    return noted(desk, "\n".join(filter(None, [desk.item.notes, argument])))


def noted(desk: Desk, text: str) -> Desk:
    return change(desk, notes=text.strip())


def take_overall(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    """One more line on the whole interview."""
    if not argument:
        return replace(desk, notice="edit_overall")
    return summed_up(desk, "\n".join(filter(None, [desk.record.overall, argument])))


def summed_up(desk: Desk, text: str) -> Desk:
    record = replace(desk.record, overall=text.strip())
    return replace(desk, record=record, before=remembered(desk), notice="overall")


def give_hint(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    if desk.item.hints >= len(showing(desk.item).question.hints):
        return replace(desk, notice="no_more_hints")
    return change(desk, "hint", hints=desk.item.hints + 1)


def skip(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    """Was asked and not answered."""
    return change(desk, verdict="skipped", score=0.0, points_met=(), points_scores=())


# --- scores ----------------------------------------------------------------------------------------------------------


def scored(item: ItemRecord) -> dict[int, float]:
    """Points that have a score, by their index in the rubric."""
    return {index: points for index, points in enumerate(item.points_scores) if points is not None}


def score_point(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    """`2 y`, `2 n`, `2 1.5` of its weight, `2 -` for not scored."""
    weights = weights_of(showing(desk.item).question)
    number = whole_number(argument)
    if number is None or not 1 <= number <= len(weights):
        return not_taken(desk, "point", argument)
    points = scored(desk.item)
    if rest in ("-", "－"):
        points.pop(number - 1, None)
    else:
        got = points_typed(rest, weights[number - 1])
        if got is None:
            return not_taken(desk, "score", str(weights[number - 1]))
        points[number - 1] = got
    return replace(score(desk, points, weights), touched=("point", number - 1))


def score(desk: Desk, points: Mapping[int, float], weights: tuple[int, ...], **fields: Any) -> Desk:
    """The question's verdict and score from its points."""
    is_closed = desk.item.kind not in ("open", "code")
    # What was not looked at counts as missing, but for the reason of an answer that is right or wrong by itself.
    most = sum(weight for index, weight in enumerate(weights) if index in points or index == 0 or not is_closed)
    verdict = "marked" if points else ""
    if is_closed and 0 in points:
        verdict = "right" if points[0] == weights[0] else "wrong"
    return change(
        desk,
        verdict=verdict,
        score=sum(points.values()) / most if points and most else 0.0,
        points_met=tuple(index for index, got in sorted(points.items()) if got == weights[index]),
        points_scores=tuple(points.get(index) for index in range(len(weights))) if points else (),
        **fields,
    )


def ask_follow_up(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    """`1` was asked; `1 y`, `1 n` or `1 0.5` also how well it was answered; `1 -` was not asked after all."""
    number_text, how = first_word(argument)
    number = whole_number(number_text)
    if number is None or not 1 <= number <= len(showing(desk.item).question.follow_ups):
        return not_taken(desk, "follow_up", number_text)
    others = tuple(each for each in desk.item.follow_ups if each.index != number - 1)
    if how in ("-", "－"):
        return replace(change(desk, follow_ups=others), touched=("follow_up", number - 1))
    got = points_typed(how, 1) if how else None
    if how and got is None:
        return not_taken(desk, "score", "1")
    asked = FollowUpRecord(number - 1, "answered" if how else "asked", got)
    after = change(desk, follow_ups=tuple(sorted((*others, asked), key=lambda each: each.index)))
    return replace(after, touched=("follow_up", number - 1))


def see_red_flag(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    """Marks one that the candidate showed, or takes the mark away; without a number all are listed."""
    number = whole_number(argument)
    if not argument and showing(desk.item).num_red_flags:
        return replace(desk, notice="flags_listed")
    if number is None or not 1 <= number <= showing(desk.item).num_red_flags:
        return not_taken(desk, "red_flag", argument)
    after = change(desk, red_flags=tuple(sorted({*desk.item.red_flags} ^ {number - 1})))
    return replace(after, touched=("red_flag", number - 1))


# --- the rest --------------------------------------------------------------------------------------------------------


def grade(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    if desk.item.kind != "code":
        return not_taken(desk, "not_code")
    return replace(desk, notice="grade", wanted=argument) if argument else not_taken(desk, "file")


def graded(desk: Desk, found: Mapping[str, Any], proofs: Mapping[str, float], showing: Showing) -> Desk:
    """`found` is what a grade says as JSON, `proofs` its points for each proof; they become the question's points."""
    question = showing(desk.item).question
    assert question.kind == "code"
    points = {index: float(proofs.get(proof, 0)) for index, proof in enumerate(question.points)}
    return score(desk, points, weights_of(question), grade=dict(found), answer=str(found["solution"]))


def pause(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    return replace(desk, is_paused=True, notice="paused")


def undo(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    """The last change is taken back, on its own question. The clock goes on."""
    if not desk.before:
        return replace(desk, notice="nothing_to_undo")
    record, place = desk.before[-1]
    old = [item for part in record.parts for item in part.items][place]
    desk = replace(desk, record=replace(desk.record, overall=record.overall))
    desk = replace(desk, place=place, before=desk.before[:-1])
    return replace(with_item(desk, replace(old, seconds=desk.item.seconds)), notice="undone")


def end(desk: Desk, argument: str, rest: str, showing: Showing) -> Desk:
    """Where questions are left it has to be said twice, since nothing is taken after it."""
    if not desk.is_ending and any(item.verdict == "" for item in desk.items):
        return replace(desk, is_ending=True, notice="unasked", wanted=argument)
    return replace(desk, phase="ended", wanted=argument)


def leave(desk: Desk, argument: str = "", rest: str = "", showing: Showing | None = None) -> Desk:
    """Also at the end of the input, and by Ctrl-C."""
    return replace(desk, phase="left")


def say(notice: Notice) -> Callable[[Desk, str, str, Showing], Desk]:
    return lambda desk, argument, rest, showing: replace(desk, notice=notice)


ACTIONS: dict[Command, Callable[[Desk, str, str, Showing], Desk]] = {
    "next": go_next,
    "back": go_back,
    "go": go_to,
    "list": say("listed"),
    "view": say("shown"),
    "answer": take_answer,
    "note": take_note,
    "follow_up": ask_follow_up,
    "red_flag": see_red_flag,
    "hint": give_hint,
    "skip": skip,
    "grade": grade,
    "pause": pause,
    "undo": undo,
    "overall": take_overall,
    "help": say("help"),
    "end": end,
    "quit": leave,
    "point": score_point,
}
