"""Writes down what becomes of a quiz, at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from kit.errors import KitError
from kit.practice.quiz import Outcome, Quiz

if TYPE_CHECKING:
    from kit.bank.load import Header
    from kit.progress.records import Mode
    from kit.progress.store import Store


RETRY_S = 1.0  # how long the next try waits for another process, after one that waited in vain


class Recorder:
    """Called with the quiz before and after each step. An answer is in the file before its verdict is on the screen.

    Where it cannot be written it waits in memory for the next answer, and `warn` is told why; with None, once all is
    written after all. An answer in words whose points were not looked at has no score, and is not kept.
    """

    def __init__(self, store: Store, mode: Mode, warn: Callable[[str | None], None]) -> None:
        self.store = store
        self.mode: Mode = mode
        self.warn = warn
        self.asked_at, self.started_s = datetime.now(timezone.utc), time.monotonic()
        self.review_ids: list[str | None] = []  # of each outcome
        self.waiting: list[Callable[[], None]] = []  # writes, the oldest first
        self.why = ""  # the last of them failed

    def __call__(self, before: Quiz, after: Quiz) -> None:
        count = len(self.waiting)
        if len(after.outcomes) > len(before.outcomes):
            self.review_ids.append(self.add(after.last))
        elif len(after.outcomes) < len(before.outcomes):
            review_id = self.review_ids.pop()
            if review_id is not None:
                self.waiting.append(partial(self.store.undo_review, review_id))
        if after.phase == "asking" and after.asked is not before.asked:
            self.asked_at, self.started_s = datetime.now(timezone.utc), time.monotonic()
        if after.bookmarks is not None and before.bookmarks is not None:
            now = datetime.now(timezone.utc)
            for question_id in after.bookmarks ^ before.bookmarks:
                self.waiting.append(partial(self.store.bookmark, question_id, question_id in after.bookmarks, now))
        if len(self.waiting) > count:
            self.write()

    def write(self) -> None:
        """All that waits, in the order in which it came."""
        was_failing = bool(self.why)
        try:
            if was_failing:
                self.store.wait_at_most(RETRY_S)
            while self.waiting:
                self.waiting[0]()
                del self.waiting[0]
            self.why = ""
        except KitError as error:
            self.why = error.message
            self.warn(self.why)
        if was_failing and not self.why:
            self.warn(None)

    def require_written(self) -> None:
        """The last try. Raises KitError with how much is lost."""
        if self.waiting:
            self.write()
        if self.waiting:
            count = len(self.waiting)
            what = "1 answer or bookmark" if count == 1 else f"{count} answers or bookmarks"
            raise KitError(f"{what} could not be saved: {self.why}", hint="what was saved before is kept")

    def add(self, outcome: Outcome) -> str | None:
        from kit.progress.rating import rate
        from kit.progress.records import Review, new_id

        if outcome.verdict == "unmarked":
            return None
        question = outcome.draw.question
        review = Review(
            id=new_id(),
            question_id=question.id,
            kind=question.kind,
            topic=question.topic,
            level=question.level,
            asked_at=self.asked_at,
            verdict=outcome.verdict,
            score=outcome.score,
            rating=rate(outcome.verdict, outcome.score, outcome.num_hints, outcome.confidence),
            num_hints=outcome.num_hints,
            seconds=time.monotonic() - self.started_s,
            confidence=outcome.confidence,
            seed=outcome.draw.seed,
            mode=self.mode,
        )
        self.waiting.append(partial(self.store.add_review, review))
        return review.id


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Started when something is asked."""

    asked_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    started_s: float = field(default_factory=time.monotonic)


def keep_guesses(
    store: Store, header: Header, since: Stopwatch, *, mode: Mode, seed: int, score: float | None, num_hints: int = 0
) -> None:
    """Guesses about a code question, scored from 0 to 1; None: none was made.

    They move no date: the next time another mistake is shown, or another size is run.
    """
    from kit.progress.records import Review, new_id

    store.add_review(
        Review(
            id=new_id(),
            question_id=header.id,
            kind=header.kind,
            topic=header.topic,
            level=header.level,
            asked_at=since.asked_at,
            verdict="skipped" if score is None else "marked",
            score=score or 0.0,
            rating=None,
            num_hints=num_hints,
            seconds=time.monotonic() - since.started_s,
            confidence=None,
            seed=seed,
            mode=mode,
        )
    )
