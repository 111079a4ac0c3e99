"""What became of an interview, as plain values with a JSON round trip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from kit.errors import KitError

Role = Literal["candidate", "interviewer"]


@dataclass(frozen=True, slots=True)
class Question:
    """What a plan asks: which question, and the seed of its draw."""

    id: str
    seed: int


@dataclass(frozen=True, slots=True)
class PlanPart:
    name: str
    minutes: float
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """`seed` is that which the plan was made with."""

    seed: int
    parts: tuple[PlanPart, ...]


@dataclass(frozen=True, slots=True)
class FollowUpRecord:
    """`index` in the question's follow-ups; `score` 0 to 1, None where it was asked and not scored.

    `answer`: what a candidate wrote.
    """

    index: int
    state: Literal["asked", "answered"]
    score: float | None = None
    answer: str = ""


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """One question. `verdict` is empty until it was asked; `score` is 0 to 1.

    points_met: indices in the rubric; points_scores: what each point of it got, None where it was not scored, and empty
    where none was. grade: what `grade --json` says. red_flags: indices of those that an interviewer saw.
    """

    question_id: str
    kind: str
    seed: int
    answer: str = ""
    verdict: str = ""
    score: float = 0.0
    points_met: tuple[int, ...] = ()
    points_scores: tuple[float | None, ...] = ()
    hints: int = 0
    seconds: float = 0.0
    notes: str = ""
    follow_ups: tuple[FollowUpRecord, ...] = ()
    grade: dict[str, Any] | None = None
    red_flags: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PartRecord:
    name: str
    minutes: float
    seconds_used: float
    items: tuple[ItemRecord, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """`candidate` is a name or empty; `finished` is None while it goes on; times are aware of their zone.

    overall: what the interviewer says of the whole, line by line.
    """

    id: str
    role: Role
    plan: Plan
    candidate: str
    started: datetime
    parts: tuple[PartRecord, ...]
    finished: datetime | None = None
    overall: str = ""


def to_json(record: Record | Plan) -> dict[str, Any]:
    from pydantic import TypeAdapter

    values: dict[str, Any] = TypeAdapter(type(record)).dump_python(record, mode="json")
    return values


def from_json(values: Mapping[str, Any]) -> Record:
    """Raises KitError for what is no record."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Record).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise KitError(f"this is no record of an interview: {where}: {first['msg']}") from None
