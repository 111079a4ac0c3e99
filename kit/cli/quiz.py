"""`quiz`: chooses the questions, and hands over to the screen."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kit.bank.layout import find_bank
from kit.bank.load import Header, headers, load_question
from kit.cli.language import chosen_language
from kit.errors import KitError
from kit.practice.quiz import KINDS, begin
from kit.practice.selection import Selection, selected, selection, shuffled_ids

if TYPE_CHECKING:
    from kit.progress.store import Store

SEEDS = 10**6
COUNT = 10


@dataclass(frozen=True, slots=True)
class QuizOptions:
    """As they were typed. `count` None: ten, or all that is due and new where that was asked for."""

    topics: Sequence[str] = ()
    kinds: Sequence[str] = ()
    levels: Sequence[str] = ()
    count: int | None = None
    lang: str | None = None
    seed: int | None = None
    is_due: bool = False
    num_new: int = 0
    is_bookmarked: bool = False
    is_cram: bool = False
    asks_confidence: bool = False
    is_saved: bool = True

    @property
    def is_scheduled(self) -> bool:
        return self.is_due or self.num_new > 0

    def check(self) -> None:
        if self.is_cram and self.is_scheduled:
            option = "--due" if self.is_due else "--new"
            raise KitError(f"--cram asks whatever is due and moves no date, so it goes without {option}")


def run_quiz(directory: Path | None, options: QuizOptions) -> None:
    options.check()
    language = chosen_language(options.lang)
    bank = find_bank(directory)
    everything = headers(bank)
    found = selected(everything, quiz_selection(selection(bank, options.topics, options.kinds, options.levels)))
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed

    from kit.bank.draw import Draw, draw
    from kit.cli.progress import open_progress
    from kit.cli.record import Recorder
    from kit.screen.page import Page
    from kit.screen.quiz import play, show_nothing_to_ask, show_saving, show_score

    def drawn(question_id: str) -> Draw:
        return draw(load_question(bank, question_id), seed)

    page = Page(language)
    needs_store = options.is_saved or options.is_scheduled or options.is_bookmarked
    with open_progress(language, is_reading=not options.is_saved) if needs_store else contextlib.nullcontext() as store:
        plan = planned(options, everything, found, store, seed)
        if not plan:
            show_nothing_to_ask(page, "due" if options.is_due else "new" if options.num_new else "bookmarked")
            return
        keeps = options.is_saved and store is not None
        bookmarks = frozenset(store.bookmarks()) if keeps and store is not None else None
        recorder = None
        if keeps and store is not None:
            recorder = Recorder(store, "cram" if options.is_cram else "quiz", partial(show_saving, page))
        quiz = begin(plan, asks_confidence=options.asks_confidence, bookmarks=bookmarks)
        try:
            quiz = play(page, quiz, drawn, recorder)
        except KeyboardInterrupt:
            if recorder is not None:
                recorder.require_written()
            raise
        is_repeatable = not (options.is_scheduled or options.is_bookmarked)
        show_score(page, quiz, seed if is_repeatable else None)
        if recorder is not None:
            recorder.require_written()


def planned(
    options: QuizOptions, everything: Sequence[Header], found: Sequence[Header], store: Store | None, seed: int
) -> tuple[str, ...]:
    """Ids of `found`: what is due, the longest overdue first, then what is new; or any of them, as the seed decides."""
    if options.is_bookmarked and store is not None:
        marked = set(store.bookmarks())
        found = [header for header in found if header.id in marked]
    if not options.is_scheduled or store is None:
        return shuffled_ids(found, options.count or COUNT, seed)
    from kit.practice.study import study_order
    from kit.progress.schedule import end_of_day

    ids = {header.id for header in found}
    due = store.due(end_of_day(datetime.now(timezone.utc))) if options.is_due else []
    known = {review.question_id for review in store.reviews() if review.is_answer}
    new = [name for name in study_order(everything, seed) if name in ids and name not in known]
    plan = [name for name in due if name in ids] + new[: options.num_new]
    return tuple(plan[: options.count])


def quiz_selection(wanted: Selection) -> Selection:
    """Only kinds that a quiz asks. Raises KitError where another was named."""
    for kind in wanted.kinds:
        if kind not in KINDS:
            hint = "`shardkit start ID` begins a code question" if kind == "code" else None
            raise KitError(f"a quiz asks {', '.join(KINDS)}, not {kind}", hint=hint)
    return Selection(wanted.topics, wanted.kinds or KINDS, wanted.levels)
