"""`interview`: makes or reads the plan, and hands over to the candidate's or the interviewer's side."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.bank.layout import Bank, find_bank
from kit.bank.load import headers
from kit.cli.language import Language, chosen_language
from kit.cli.left import chosen, handle, open_ones
from kit.cli.progress import open_progress
from kit.errors import KitError
from kit.interview.plan import SEEDS, from_yaml, left_out, make_plan, other_levels, to_yaml
from kit.interview.record import ItemRecord, Plan, Record, from_json, to_json
from kit.practice.selection import selection

if TYPE_CHECKING:
    from kit.cli.interviewer import Draws, Saves
    from kit.interview.candidate import Mock
    from kit.progress.records import InterviewRecord
    from kit.progress.store import Store
    from kit.screen.page import Page

ROLES = ("candidate", "interviewer")
MINUTES = 60.0


@dataclass(frozen=True, slots=True)
class InterviewOptions:
    """As they were typed."""

    bank: Path | None
    minutes: float | None
    topics: Sequence[str]
    levels: Sequence[str]
    role: str
    candidate: str
    plan: Path | None
    write_plan: Path | None
    seed: int | None
    is_shared: bool
    is_resumed: bool
    scorecard: Path | None
    is_saved: bool
    lang: str | None

    @property
    def is_planned(self) -> bool:
        """Whether a plan is to be made."""
        return bool(self.minutes is not None or self.topics or self.levels or self.seed is not None)

    def check(self) -> None:
        if self.role not in ROLES:
            raise KitError(f"no role {self.role!r}; there are {', '.join(ROLES)}")
        if self.plan is not None and self.is_planned:
            raise KitError("a plan says its minutes, topics, levels and seeds itself", hint="--plan FILE alone")
        if self.is_resumed and (self.is_planned or self.plan is not None or self.write_plan is not None):
            raise KitError(
                "--resume goes on with what was left, so it takes no plan", hint="shardkit interview --resume"
            )
        if self.is_resumed and self.is_shared:
            raise KitError("--share follows what goes on by itself", hint="--share without --resume")
        if self.is_resumed and not self.is_saved:
            raise KitError("--resume needs what was saved, so it goes without --no-save")


def interview(options: InterviewOptions) -> None:
    options.check()
    language = chosen_language(options.lang)
    bank = find_bank(options.bank)
    if options.write_plan is not None:
        write_plan(bank, options.write_plan, planned(bank, options), options, language)
        return
    if options.is_shared:
        from kit.cli.share import follow, leaf_through

        if options.plan is None and not options.is_planned:
            follow(bank, language, options.candidate)
        else:
            leaf_through(bank, language, planned(bank, options))
        return
    with open_progress(language) if options.is_saved else contextlib.nullcontext() as store:
        if options.role == "interviewer":
            lead(bank, store, options, language)
        else:
            sit(bank, store, options, language)


def planned(bank: Bank, options: InterviewOptions) -> Plan:
    """From the file, or made anew. Raises KitError for what makes no plan."""
    everything = headers(bank)
    if options.plan is not None:
        try:
            text = options.plan.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            raise KitError(f"{options.plan}: cannot be read: {reason}") from None
        return from_yaml(text, str(options.plan), everything)
    wanted = selection(bank, options.topics, (), options.levels)
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed
    minutes = MINUTES if options.minutes is None else options.minutes
    return make_plan(everything, minutes, wanted.levels, wanted.topics, seed)


def say_departures(page: Page, bank: Bank, plan: Plan, options: InterviewOptions) -> None:
    """Of a plan that was made for these options: what it could not have."""
    from kit.screen.candidate import show_departures

    if options.plan is None and not options.is_resumed:
        others = {}
        if options.levels:  # else there is no need to read the bank again
            levels = selection(bank, options.topics, (), options.levels).levels
            others = other_levels(plan, headers(bank), levels)
        show_departures(page, left_out(plan), others)


def write_plan(bank: Bank, path: Path, plan: Plan, options: InterviewOptions, language: Language) -> None:
    from kit.grading.report import require_writable, write
    from kit.screen.candidate import show_plan
    from kit.screen.page import Page

    if str(path) == "-":
        print(to_yaml(plan), end="")
        return
    require_writable(path)
    if path.is_file():  # candidates may be held to it
        raise KitError(f"{path} is there already", hint="name another file, or take it away")
    write(path, to_yaml(plan))
    page = Page(language)
    show_plan(page, plan)
    say_departures(page, bank, plan, options)
    page.unbroken(page.say("mock_plan_written", path=path), style="dim")


def say_resumed(page: Page, record: Record, place: int, found: Sequence[InterviewRecord]) -> None:
    """Whose interview goes on, and which others could."""
    from kit.screen.candidate import show_resumed

    others = [from_json(each.state["record"]) for each in found if each.id != record.id]
    show_resumed(page, record, place, [(handle(each), each.started) for each in others])


def again(options: InterviewOptions, record: Record) -> str:
    """The command that goes on with an interview that was left."""
    words = ["shardkit", "interview", "--resume"]
    words += ["--name", " ".join(record.candidate.split())] if record.candidate.split() else []
    words += ["--role", options.role] if options.role != ROLES[0] else []
    words += ["--bank", str(options.bank)] if options.bank is not None else []
    return " ".join(map(shlex.quote, words))


def require_unchanged(draws: Draws, record: Record) -> None:
    """Raises KitError for a question that cannot be read, or that no longer is what was answered."""
    from kit.interview.rubric import weights_of

    for part in record.parts:
        for item in part.items:
            question = draws(item).question
            if (
                question.kind != item.kind
                or (item.points_scores and len(item.points_scores) != len(weights_of(question)))
                or any(each.index >= len(question.follow_ups) for each in item.follow_ups)
            ):
                raise KitError(
                    f"{item.question_id} has changed since this interview was begun",
                    hint="put the question back as it was, or begin another interview",
                )


# --- the interviewer -------------------------------------------------------------------------------------------------


def lead(bank: Bank, store: Store | None, options: InterviewOptions, language: Language) -> None:
    from kit.cli.interviewer import Draws, Left, hold_interview, new_record
    from kit.screen.candidate import show_plan
    from kit.screen.page import Page

    page = Page(language)
    if options.is_resumed:
        assert store is not None
        found = open_ones(store, "interviewer")
        one = chosen(found, options.candidate)
        begun = Left(from_json(one.state["record"]), int(one.state["place"]))
    else:
        found = []
        begun = Left(new_record(bank, planned(bank, options), options.candidate), 0)
    require_unchanged(Draws(bank), begun.record)

    def show_beginning() -> None:
        if options.is_resumed:
            say_resumed(page, begun.record, begun.place, found)
        else:
            show_plan(page, begun.record.plan, is_led=True, is_kept=store is not None)
            say_departures(page, bank, begun.record.plan, options)

    hold_interview(page, bank, store, begun, options.scorecard, again(options, begun.record), show_beginning)


# --- the candidate ---------------------------------------------------------------------------------------------------


def sit(bank: Bank, store: Store | None, options: InterviewOptions, language: Language) -> None:
    from kit.cli.interviewer import Draws, Saves, card_path, new_record, write_card
    from kit.interview.candidate import begin
    from kit.screen import candidate as screen
    from kit.screen.page import Page

    page = Page(language)
    if options.is_resumed:
        assert store is not None
        found = open_ones(store, "candidate")
        mock = resumed_mock(chosen(found, options.candidate))
    else:
        found = []
        record = new_record(bank, planned(bank, options), options.candidate)
        mock = begin(replace(record, role="candidate"))
    path = card_path(options.scorecard, mock.record)
    draws = Draws(bank)
    require_unchanged(draws, mock.record)
    if options.is_resumed:
        say_resumed(page, mock.record, mock.place, found)
    screen.show_plan(page, mock.record.plan, is_kept=store is not None)
    say_departures(page, bank, mock.record.plan, options)
    folder = Path()  # where the command was started
    keeper = Keeper(bank, store, Saves(store))
    room = screen.Room(
        draw=draws,
        clock_s=time.monotonic,
        save=keeper.save,
        start=lambda question_id: start_in(bank, question_id, folder),
        grade=lambda question_id, path: grade_in(page, bank, question_id, path or str(starter_in(question_id, folder))),
    )
    mock = screen.hold(page, mock, room)
    if mock.phase == "left":
        screen.show_left(page, again(options, mock.record) if store is not None else "")
        if mock.is_interrupted:
            raise KeyboardInterrupt
        return
    mock = replace(mock, record=replace(mock.record, finished=datetime.now(timezone.utc)))
    write_card(path, mock.record, bank, language)
    keeper.save(mock)
    screen.show_end(page, mock, str(path))


def resumed_mock(found: InterviewRecord) -> Mock:
    from kit.interview.candidate import begin

    state = found.state
    return begin(from_json(state["record"]), int(state["place"]), is_debrief=bool(state["is_debrief"]))


@dataclass(slots=True)
class Keeper:
    """Writes down every change at once, and each question that got its verdict as a review, once."""

    bank: Bank
    store: Store | None
    saves: Saves
    told: set[str] | None = None  # ids of reviews

    def save(self, mock: Mock) -> None:
        if self.store is None:
            return
        self.saves(saved(mock))
        if self.told is None:  # an earlier session may have been killed between the two
            self.told = {review.id for review in self.store.reviews()}
        for item in mock.items:
            review_id = id_of_review(mock.record, item.question_id)
            if item.verdict in ("right", "wrong", "marked", "skipped") and review_id not in self.told:
                self.add_review(item, review_id)
                self.told.add(review_id)

    def add_review(self, item: ItemRecord, review_id: str) -> None:
        from kit.bank.load import load_header
        from kit.progress.rating import rate
        from kit.progress.records import Review

        assert self.store is not None
        header = load_header(self.bank, item.question_id)
        verdict: Any = item.verdict
        review = Review(
            id=review_id,
            question_id=item.question_id,
            kind=header.kind,
            topic=header.topic,
            level=header.level,
            asked_at=datetime.now(timezone.utc),
            verdict=verdict,
            score=item.score,
            rating=rate(verdict, item.score, item.hints, None),
            num_hints=item.hints,
            seconds=item.seconds,
            confidence=None,
            seed=item.seed,
            mode="interview",
        )
        with contextlib.suppress(ValueError):  # the same interview goes on in another window, which was first
            self.store.add_review(review)


def id_of_review(record: Record, question_id: str) -> str:
    """The same whenever it is asked for, so that no answer counts twice."""
    import uuid

    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"shardkit:{record.id}/{question_id}"))


def saved(mock: Mock) -> InterviewRecord:
    from kit.progress.records import InterviewRecord

    record = mock.record
    state = {"role": record.role, "place": mock.place, "is_debrief": mock.is_debrief, "record": to_json(record)}
    now = datetime.now(timezone.utc)
    return InterviewRecord(record.id, to_json(record.plan), state, record.started, now, record.finished)


def starter_in(question_id: str, folder: Path) -> Path:
    return folder / f"{question_id.rsplit('/', 1)[-1]}.py"


def start_in(bank: Bank, question_id: str, folder: Path) -> tuple[str, bool]:
    """Writes the starter where nothing is yet; what is there already is gone on with. Also: whether it was written."""
    from kit.cli.start import starter_text, write_new

    target = starter_in(question_id, folder)
    text = starter_text(bank, question_id)
    try:
        write_new(target, text)
    except FileExistsError:
        return str(target), False
    except OSError as error:
        raise KitError(f"{error.filename or target}: {error.strerror}") from None
    return str(target), True


def grade_in(page: Page, bank: Bank, question_id: str, path: str) -> Mapping[str, Any]:
    from kit.cli.interviewer import grade_inside

    return grade_inside(page, bank, question_id, path)[0]
