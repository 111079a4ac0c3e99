"""A quiz as a state machine: questions and lines of text go in, a new state comes out; nothing is read or printed."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kit.bank.draw import Draw
from kit.bank.mark import Mark, mark, mark_points, read_yes_or_no
from kit.bank.refusal import Reason, Refused, reason_of
from kit.errors import KitError

KINDS = ("choice", "multi", "number", "order", "predict", "open")

Phase = Literal["choosing", "asking", "weighing", "marking", "told", "over"]
Verdict = Literal["right", "wrong", "marked", "unmarked", "skipped"]
Command = Literal["hint", "skip", "undo", "bookmark", "quit", "next"]
Notice = Literal[
    "hint",
    "no_more_hints",
    "not_taken",
    "nothing",
    "edit",
    "nothing_to_undo",
    "line_gone",
    "bookmarked",
    "unbookmarked",
    "keeps_none",
]
Turn = Literal["back", "leaving"]  # of an answer in words: it goes on, or its writer is about to leave it

COMMANDS: dict[str, Command] = {
    "?": "hint",
    "hint": "hint",
    "s": "skip",
    "skip": "skip",
    "u": "undo",
    "undo": "undo",
    "b": "bookmark",
    "bookmark": "bookmark",
    "q": "quit",
    "quit": "quit",
    "exit": "quit",
    "": "next",
    "n": "next",
    "next": "next",
}

EDIT = ("e", "edit")  # a line of its own in an answer in words: on with it in an editor


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question; `mark` is None where it was skipped, or its points were not looked at.

    An answer in words is "marked", by points and by its writer, or "unmarked" where the input ended before.
    """

    draw: Draw
    verdict: Verdict
    num_hints: int
    mark: Mark | None = None
    confidence: float | None = None  # 0 to 1, said before the verdict; None where it was not asked for, or not said
    written: tuple[str, ...] = ()  # the answer in words, for the writer who takes it back

    @property
    def score(self) -> float:
        """0 to 1; of an answer in words the points out of all points."""
        if self.verdict == "marked" and self.mark is not None:
            return int(self.mark.got) / int(self.mark.expected)
        return float(self.verdict == "right")


@dataclass(frozen=True, slots=True)
class Score:
    """Questions that became what their verdicts say; points are of the marked ones, out of `most_points`."""

    right: int
    wrong: int
    marked: int
    unmarked: int
    skipped: int
    not_asked: int
    num_hints: int
    points: int
    most_points: int

    @property
    def answered(self) -> int:
        return self.right + self.wrong


@dataclass(frozen=True, slots=True)
class Quiz:
    """`plan` holds the ids to be asked.

    choosing: `wanted` is to be drawn and given to `present`. asking: `asked` waits for an answer or a command; an
    answer in words grows in `written`. weighing: it was answered, and how sure the learner is comes next. marking: its
    writer says of one point after the other whether it is made. told: the last outcome is on the screen. over: nothing
    more is taken.
    """

    plan: tuple[str, ...]
    phase: Phase
    outcomes: tuple[Outcome, ...] = ()
    asked: Draw | None = None
    num_hints: int = 0
    notice: Notice | None = None  # what the last line brought, where it was no answer
    turn: Turn | None = None
    written: tuple[str, ...] = ()
    are_met: tuple[bool, ...] = ()
    complaint: str = ""  # why a line was not taken, in English; such a line never counts
    reason: Reason | None = None  # the same, for a screen in another language
    asks_confidence: bool = False
    given: Mark | None = None  # the answer that is being weighed; None for one in words
    confidence: float | None = None
    bookmarks: frozenset[str] | None = frozenset()  # ids of questions; None where none are kept

    @property
    def number(self) -> int:
        """Of the question on the screen, from 1."""
        return len(self.outcomes) + (self.phase in ("choosing", "asking", "weighing", "marking"))

    @property
    def wanted(self) -> str:
        return self.plan[len(self.outcomes)]

    @property
    def last(self) -> Outcome:
        return self.outcomes[-1]

    @property
    def is_last(self) -> bool:
        return len(self.outcomes) == len(self.plan)

    def score(self) -> Score:
        verdicts: tuple[Verdict, ...] = ("right", "wrong", "marked", "unmarked", "skipped")
        counts = {name: sum(outcome.verdict == name for outcome in self.outcomes) for name in verdicts}
        marks = [outcome.mark for outcome in self.outcomes if outcome.verdict == "marked" and outcome.mark]
        return Score(
            **counts,
            points=sum(int(each.got) for each in marks),
            most_points=sum(int(each.expected) for each in marks),
            not_asked=len(self.plan) - len(self.outcomes),
            num_hints=sum(outcome.num_hints for outcome in self.outcomes) + (self.num_hints if self.asked else 0),
        )


def begin(
    plan: Sequence[str], *, asks_confidence: bool = False, bookmarks: frozenset[str] | None = frozenset()
) -> Quiz:
    phase: Phase = "choosing" if plan else "over"
    return Quiz(tuple(plan), phase, asks_confidence=asks_confidence, bookmarks=bookmarks)


def present(quiz: Quiz, draw: Draw) -> Quiz:
    """The drawn question `quiz.wanted` is asked."""
    assert quiz.phase == "choosing" and draw.question.id == quiz.wanted
    return ask(quiz, draw, 0)


def ask(quiz: Quiz, draw: Draw, num_hints: int, written: tuple[str, ...] = ()) -> Quiz:
    return replace(
        quiz,
        phase="asking",
        asked=draw,
        num_hints=num_hints,
        notice=None,
        complaint="",
        reason=None,
        turn="back" if written else None,
        written=written,
        are_met=(),
        given=None,
        confidence=None,
    )


def reply(quiz: Quiz, line: str) -> Quiz:
    """What the learner typed: a command, or while asking an answer. What is neither leaves a complaint, no outcome."""
    text = unicodedata.normalize("NFKC", line).strip()  # an input method for Chinese may type ？ and Ａ
    command = COMMANDS.get(text.lower())
    was_leaving = quiz.turn == "leaving"
    quiz = replace(quiz, notice=None, complaint="", reason=None, turn=None)
    if command == "bookmark" and not (text in ("b", "B") and is_answered_by_letter(quiz)):
        return bookmark(quiz)
    if command == "undo":
        return undo(quiz)
    if quiz.phase == "asking":
        assert quiz.asked is not None
        if quiz.asked.question.kind != "open":
            return asked(quiz, command, text)
        return replace(quiz, phase="over") if command == "quit" and was_leaving else writing(quiz, command, line)
    if quiz.phase == "weighing":
        return weighing(quiz, command, text)
    if quiz.phase == "marking":
        return marking(quiz, command, text)
    if quiz.phase == "told":
        return told(quiz, command)
    return quiz


def is_answered_by_letter(quiz: Quiz) -> bool:
    """Where `b` is an answer; `bookmark` is a command everywhere."""
    return quiz.phase == "asking" and quiz.asked is not None and bool(quiz.asked.order)


def end(quiz: Quiz) -> Quiz:
    """No more input: a question without an answer counts as not asked, and one in words goes to its marking first."""
    if quiz.phase == "weighing" and quiz.given is not None:
        quiz = tell_mark(quiz, quiz.given)
    if quiz.phase in ("asking", "weighing") and quiz.written:
        return replace(quiz, phase="marking", notice=None, turn=None)
    if quiz.phase == "marking":
        quiz = tell(quiz, "unmarked", None)
    return replace(quiz, phase="over")


def go_on(quiz: Quiz) -> Quiz:
    """From a question that was told to the next one, or to the end."""
    assert quiz.phase == "told"
    return replace(quiz, phase="over" if quiz.is_last else "choosing", asked=None)


def asked(quiz: Quiz, command: Command | None, text: str) -> Quiz:
    assert quiz.asked is not None
    if command == "quit":
        return end(quiz)
    if command == "skip":
        return tell(quiz, "skipped", None)
    if command == "hint":
        return hint(quiz)
    if not text:
        return replace(quiz, notice="nothing")
    try:
        given = mark(quiz.asked, text)
    except KitError as error:
        return not_taken(quiz, error)
    return answered(quiz, given)


def not_taken(quiz: Quiz, error: KitError) -> Quiz:
    complaint = "; ".join(filter(None, [error.message, error.hint]))
    return replace(quiz, notice="not_taken", complaint=complaint, reason=reason_of(error))


def answered(quiz: Quiz, given: Mark | None) -> Quiz:
    """From an answer to its verdict, or with None to the points of one in words; before either it may be weighed."""
    if quiz.asks_confidence and quiz.phase == "asking":
        return replace(quiz, phase="weighing", given=given)
    return replace(quiz, phase="marking") if given is None else tell_mark(quiz, given)


def weighing(quiz: Quiz, command: Command | None, text: str) -> Quiz:
    """How sure the learner is, in percent; an empty line says nothing of it."""
    if command == "quit":
        return end(quiz)
    if command != "next":
        try:
            quiz = replace(quiz, confidence=read_confidence(text))
        except KitError as error:
            return not_taken(quiz, error)
    return answered(quiz, quiz.given)


def read_confidence(text: str) -> float:
    """`70` or `70%` as 0.7. Raises KitError for what is no whole number from 0 to 100."""
    digits = text.removesuffix("%").strip()
    if digits.isascii() and digits.isdigit() and len(digits) <= 3 and int(digits) <= 100:
        return int(digits) / 100
    raise Refused("confidence", "a whole number from 0 to 100")


def bookmark(quiz: Quiz) -> Quiz:
    """Marks the question on the screen, or takes its mark away."""
    shown = quiz.asked or (quiz.last.draw if quiz.outcomes else None)
    if shown is None or quiz.phase in ("choosing", "over"):
        return quiz
    if quiz.bookmarks is None:
        return replace(quiz, notice="keeps_none")
    bookmarks = quiz.bookmarks ^ {shown.question.id}
    return replace(quiz, bookmarks=bookmarks, notice="bookmarked" if shown.question.id in bookmarks else "unbookmarked")


def undo(quiz: Quiz) -> Quiz:
    """One step back: a point, the end of an answer, a written line, and else the last outcome, whose question is asked
    again."""
    if quiz.phase == "marking" and quiz.are_met:
        return replace(quiz, are_met=quiz.are_met[:-1])
    if quiz.phase in ("weighing", "marking"):
        return replace(quiz, phase="asking", given=None, confidence=None, turn="back" if quiz.written else None)
    if quiz.phase == "asking" and quiz.written:
        return replace(quiz, written=quiz.written[:-1], notice="line_gone")
    if quiz.phase not in ("asking", "told"):
        return quiz
    if not quiz.outcomes:
        return replace(quiz, notice="nothing_to_undo")
    last = quiz.last
    return ask(replace(quiz, outcomes=quiz.outcomes[:-1]), last.draw, last.num_hints, last.written)


def writing(quiz: Quiz, command: Command | None, line: str) -> Quiz:
    """A line of an answer in words. An empty one ends it; commands are taken while nothing else is on their line.

    To leave what was begun takes the command twice.
    """
    if command == "quit":
        return replace(quiz, turn="leaving") if quiz.written else replace(quiz, phase="over")
    if command == "skip":
        return tell(quiz, "skipped", None)
    if command == "hint":
        return hint(quiz)
    if line.strip().lower() in EDIT:
        return replace(quiz, notice="edit")
    if line.strip():
        return replace(quiz, written=(*quiz.written, line))
    return answered(quiz, None) if quiz.written else replace(quiz, notice="nothing")


def edited(quiz: Quiz, text: str) -> Quiz:
    """An answer in words as an editor gave it back; none where it holds no word, and then it is still asked for."""
    lines = tuple(text.rstrip().split("\n")) if text.strip() else ()
    quiz = replace(quiz, written=lines, notice=None)
    return answered(quiz, None) if lines else replace(quiz, notice="nothing")


def marking(quiz: Quiz, command: Command | None, text: str) -> Quiz:
    """Whether the answer makes the next point of the rubric."""
    assert quiz.asked is not None
    question = quiz.asked.question
    assert question.kind == "open"
    if command == "quit":
        return end(quiz)
    try:
        quiz = replace(quiz, are_met=(*quiz.are_met, read_yes_or_no(text)))
    except KitError as error:
        return not_taken(quiz, error)
    if len(quiz.are_met) < len(question.rubric):
        return quiz
    return tell(quiz, "marked", mark_points(question, quiz.are_met))


def hint(quiz: Quiz) -> Quiz:
    assert quiz.asked is not None
    if quiz.num_hints == len(quiz.asked.question.hints):
        return replace(quiz, notice="no_more_hints")
    return replace(quiz, notice="hint", num_hints=quiz.num_hints + 1)


def tell(quiz: Quiz, verdict: Verdict, given: Mark | None) -> Quiz:
    assert quiz.asked is not None
    outcome = Outcome(quiz.asked, verdict, quiz.num_hints, given, quiz.confidence, quiz.written)
    return replace(quiz, phase="told", outcomes=(*quiz.outcomes, outcome), asked=None, num_hints=0, written=())


def tell_mark(quiz: Quiz, given: Mark) -> Quiz:
    return tell(quiz, "right" if given.is_right else "wrong", given)


def told(quiz: Quiz, command: Command | None) -> Quiz:
    if command == "quit":
        return end(quiz)
    if command == "next":
        return go_on(quiz)
    return replace(quiz, notice="not_taken")
