"""The interviewer's side of `interview`: what is saved, how files are graded, where the scorecard goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.bank.layout import Bank
from kit.bank.load import load_header, load_question
from kit.cli.language import Language
from kit.cli.torch_there import require_torch
from kit.errors import KitError
from kit.interview.record import ItemRecord, PartRecord, Plan, Record, to_json

if TYPE_CHECKING:
    from kit.bank.draw import Draw
    from kit.interview.interviewer import Desk
    from kit.progress.records import InterviewRecord
    from kit.progress.store import Store
    from kit.screen.page import Page

SUFFIXES = (".md", ".html")


@dataclass(frozen=True, slots=True)
class Left:
    """An interview that was left or killed, and the question that was open."""

    record: Record
    place: int


def new_record(bank: Bank, plan: Plan, candidate: str) -> Record:
    """Nothing asked yet. Raises KitError for a question that the bank does not have."""
    from kit.progress.records import new_id

    parts = tuple(
        PartRecord(
            part.name,
            part.minutes,
            0.0,
            tuple(ItemRecord(asked.id, load_header(bank, asked.id).kind, asked.seed) for asked in part.questions),
        )
        for part in plan.parts
    )
    return Record(new_id(), "interviewer", plan, candidate, datetime.now(timezone.utc), parts)


def saved(desk: Desk) -> InterviewRecord:
    from kit.progress.records import InterviewRecord

    record = desk.record
    state = {"role": record.role, "place": desk.place, "record": to_json(record)}
    now = datetime.now(timezone.utc)
    return InterviewRecord(record.id, to_json(record.plan), state, record.started, now, record.finished)


@dataclass(slots=True)
class Saves:
    """One window's saves of an interview: the first takes it over, and a later window is not written over."""

    store: Store | None
    last: datetime | None = None

    def __call__(self, record: InterviewRecord) -> None:
        if self.store is not None:
            self.store.save_interview(record, over=self.last)
            self.last = record.updated


def hold_interview(
    page: Page,
    bank: Bank,
    store: Store | None,
    begun: Left,
    scorecard: Path | None,
    command: str,
    show_beginning: Callable[[], None],
) -> Record:
    """Leads through the interview and writes its scorecard; without a store nothing is kept of one that is left.

    command: how one that was left goes on. show_beginning: called when all is well. Raises KitError for a scorecard
    that cannot be written.
    """
    from kit.grading.report import require_writable
    from kit.interview.interviewer import begin
    from kit.screen import interviewer as screen

    card = card_path(scorecard, begun.record)
    saves = Saves(store)
    room = screen.Room(
        draw=Draws(bank),
        red_flags=Flags(bank, page.language),
        clock_s=time.monotonic,
        save=lambda desk: saves(saved(desk)),
        grade=lambda question_id, path: grade_inside(page, bank, question_id, path),
        require_card=lambda path: require_card(Path(path)) if path else require_writable(card),
    )
    for part in begun.record.parts:
        for item in part.items:  # a question that cannot be read is said now, and not in front of the candidate
            room.showing(item)
    show_beginning()
    desk = screen.hold(page, begin(begun.record, begun.place), room)
    if desk.phase == "left":
        screen.show_left(page, command if store is not None else "")
        if desk.is_interrupted:
            raise KeyboardInterrupt
        return desk.record
    desk = replace(desk, record=replace(desk.record, finished=datetime.now(timezone.utc)))
    path = Path(desk.wanted) if desk.wanted else card
    write_card(path, desk.record, bank, page.language)
    room.save(desk)
    screen.show_end(page, desk, room, str(path))
    return desk.record


@dataclass(slots=True)
class Draws:
    """Each question is read and drawn once."""

    bank: Bank
    known: dict[tuple[str, int], Draw] = field(default_factory=dict)

    def __call__(self, item: ItemRecord) -> Draw:
        from kit.bank.draw import draw

        key = item.question_id, item.seed
        if key not in self.known:
            self.known[key] = draw(load_question(self.bank, item.question_id), item.seed)
        return self.known[key]


@dataclass(slots=True)
class Flags:
    """Each question's are made once."""

    bank: Bank
    language: Language
    known: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)

    def __call__(self, draw: Draw) -> tuple[str, ...]:
        from kit.interview.rubric import red_flags

        key = draw.question.id, draw.seed
        if key not in self.known:
            self.known[key] = red_flags(draw, self.bank, self.language)
        return self.known[key]


# --- candidates' files -----------------------------------------------------------------------------------------------


def grade_inside(page: Page, bank: Bank, question_id: str, path: str) -> tuple[Mapping[str, Any], Mapping[str, float]]:
    """The grade as JSON, shown on the page, and its points by proof. torch is imported now and not before.

    Raises KitError for whatever keeps the file from being graded; then nothing is scored.
    """
    require_torch("grading runs the file on several ranks", "the points can be scored by hand")
    from kit.grading.preflight import prepare
    from kit.screen.grade import show_grade

    file = Path(path).expanduser()
    assignment = prepare(question_id, file, bank)
    result = assignment.not_started()
    if result is None:
        from kit.grading.grader import run_checks

        try:
            result = run_checks(assignment)
        except KeyboardInterrupt:
            raise KitError("the grade was stopped; nothing is scored") from None
    show_grade(page, result, with_next=False)  # what it names, hints for instance, would be counted nowhere
    if result.verdict == "kit_error":
        raise KitError("the file could not be graded, and nothing is scored", hint="c FILE tries it again")
    found = {**result.to_json(), "solution": file.name}
    # Without right values a grade is worth nothing, whatever else holds.
    return found, {row.proof: float(row.points) if result.score else 0.0 for row in result.rows()}


# --- the scorecard ---------------------------------------------------------------------------------------------------


def require_card(path: Path) -> None:
    """Raises KitError now, and not after the interview, where the scorecard could not be written.

    One that is there already may be another candidate's, and is not replaced.
    """
    from kit.grading.report import require_writable

    if path.suffix not in SUFFIXES:
        raise KitError(f"a scorecard is a .md or .html file, not {path.name!r}", hint="end scorecard.html")
    require_writable(path)
    if path.exists():
        raise KitError(f"{path} is there already", hint="name another file, or take it away")


def write_card(path: Path, record: Record, bank: Bank, language: Language) -> None:
    from kit.grading.report import write
    from kit.interview.scorecard import html, markdown

    make = html if path.suffix == ".html" else markdown
    write(path, make(record, bank, language))


def card_path(wanted: Path | None, record: Record) -> Path:
    """`wanted`, or else `scorecard-2026-12-02-1f3a9c0e.md` in the working directory. KitError where it cannot be."""
    from kit.grading.report import require_writable

    if wanted is not None:
        require_card(wanted)
        return wanted
    path = Path(f"scorecard-{record.started.astimezone():%Y-%m-%d}-{record.id[:8]}.md")
    try:
        require_writable(path)
    except KitError as problem:
        raise KitError(problem.message, hint="--scorecard FILE names another place for the scorecard") from None
    return path
