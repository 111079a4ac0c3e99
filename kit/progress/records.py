"""What is kept: reviews, cards, bookmarks and interviews, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any, Literal

Verdict = Literal["right", "wrong", "skipped", "marked"]
Rating = Literal["again", "hard", "good", "easy"]
Mode = Literal["quiz", "cram", "hunt", "predict", "interview", "grade"]

VERDICTS: tuple[Verdict, ...] = ("right", "wrong", "skipped", "marked")
RATINGS: tuple[Rating, ...] = ("again", "hard", "good", "easy")
MODES: tuple[Mode, ...] = ("quiz", "cram", "hunt", "predict", "interview", "grade")

MOST = 2**63  # SQLite holds whole numbers below
EARLIEST = datetime(1970, 1, 1, tzinfo=timezone.utc)  # of times that a clock may have said; reckoning with days around
LATEST = datetime(2200, 1, 1, tzinfo=timezone.utc)  # them, in any zone, stays within the calendar


@dataclass(frozen=True, slots=True)
class Review:
    """One question answered once.

    `asked_at` is aware of its zone. `score` and `confidence` (None: not asked for) lie from 0 to 1. A review without a
    rating, as of a skipped question, moves no date, nor does one of mode "cram". Raises ValueError for what cannot be.
    """

    id: str
    question_id: str
    kind: str
    topic: str
    level: int
    asked_at: datetime
    verdict: Verdict
    score: float
    rating: Rating | None
    num_hints: int
    seconds: float
    confidence: float | None
    seed: int | None
    mode: Mode

    def __post_init__(self) -> None:
        require(self.id != "" and self.question_id != "", "an id is empty", self.id, self.question_id)
        require_aware("asked_at", self.asked_at)
        require(self.verdict in VERDICTS, f"verdict: expected one of {', '.join(VERDICTS)}", self.verdict)
        require(self.mode in MODES, f"mode: expected one of {', '.join(MODES)}", self.mode)
        require(self.rating is None or self.rating in RATINGS, f"rating: expected {', '.join(RATINGS)}", self.rating)
        require(0 <= self.score <= 1, "score: expected 0 to 1", self.score)
        require(self.confidence is None or 0 <= self.confidence <= 1, "confidence: expected 0 to 1", self.confidence)
        require(0 <= self.num_hints < MOST, "num_hints: expected 0 or more", self.num_hints)
        require(0 <= self.level < MOST, "level: expected 0 or more", self.level)
        require(self.seed is None or abs(self.seed) < MOST, "seed: expected at most 63 bits", self.seed)
        require(0 <= self.seconds < float("inf"), "seconds: expected 0 or more", self.seconds)

    @property
    def is_answer(self) -> bool:
        return self.verdict != "skipped"

    @property
    def moves_the_date(self) -> bool:
        return self.rating is not None and self.mode != "cram"


@dataclass(frozen=True, slots=True)
class Card:
    """When a question is due. `stability`: days after which 90% still know it. `difficulty`: from 1 to 10."""

    question_id: str
    due: datetime
    stability: float
    difficulty: float
    state: str
    last_review: datetime
    num_reviews: int


@dataclass(frozen=True, slots=True)
class Bookmark:
    """The last change; one that was taken away is kept as well, so that merging does not bring it back."""

    question_id: str
    is_on: bool
    changed_at: datetime

    def __post_init__(self) -> None:
        require(self.question_id != "", "an id is empty", self.question_id)
        require_aware("changed_at", self.changed_at)


@dataclass(frozen=True, slots=True)
class InterviewRecord:
    """`plan` and `state` hold what JSON holds. `finished` is None while it goes on."""

    id: str
    plan: Mapping[str, Any]
    state: Mapping[str, Any]
    started: datetime
    updated: datetime
    finished: datetime | None = None

    def __post_init__(self) -> None:
        require(self.id != "", "an id is empty", self.id)
        for name in ("started", "updated", "finished"):
            moment = getattr(self, name)
            if moment is not None:
                require_aware(name, moment)


def new_id() -> str:
    import uuid  # slow to import, and the first question is on the screen before one is needed

    return str(uuid.uuid4())


def require(is_so: bool, what: str, *got: object) -> None:
    if not is_so:
        raise ValueError(f"{what}, got {', '.join(map(repr, got))}")


def require_aware(name: str, moment: datetime) -> None:
    require(moment.utcoffset() is not None, f"{name}: expected a time with its zone", moment)


def to_text(moment: datetime) -> str:
    """`2026-01-31T09:30:00.000000+00:00`: such texts sort as their times do."""
    return moment.astimezone(timezone.utc).isoformat(timespec="microseconds")


def from_text(text: str) -> datetime:
    """Raises ValueError for a text without a zone, or that is no time."""
    moment = datetime.fromisoformat(text)
    require_aware("time", moment)
    return moment.astimezone(timezone.utc)


def clamped(moment: datetime) -> datetime:
    return min(max(moment, EARLIEST), LATEST)


def names_of(record: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))
