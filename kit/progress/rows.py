"""Rows of the progress file as records and back; what no kit has written there is refused."""

from __future__ import annotations

import json
import types
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any, Union, get_args, get_origin, get_type_hints

from kit.progress.records import (
    EARLIEST,
    LATEST,
    Bookmark,
    Card,
    InterviewRecord,
    Review,
    clamped,
    from_text,
    names_of,
    to_text,
)

REVIEW_COLUMNS = names_of(Review)
CARD_COLUMNS = names_of(Card)
BOOKMARK_COLUMNS = names_of(Bookmark)
INTERVIEW_COLUMNS = names_of(InterviewRecord)


class Unreadable(Exception):
    """A row that holds what was never written: another type, a time that is none, a verdict that nobody knows."""


def review_row(review: Review) -> tuple[object, ...]:
    return tuple(to_text(review.asked_at) if name == "asked_at" else getattr(review, name) for name in REVIEW_COLUMNS)


def review_of(row: Sequence[Any]) -> Review:
    """Raises Unreadable."""
    values = dict(zip(REVIEW_COLUMNS, row, strict=True))
    for name, wanted in REVIEW_TYPES:
        if type(values[name]) not in wanted:
            raise Unreadable(f"{name}: {values[name]!r}")
    values["asked_at"] = moment_of(values["asked_at"])
    try:
        return Review(**values)
    except ValueError as error:
        raise Unreadable(str(error)) from None


def types_of(record: type, stored: dict[type, type]) -> list[tuple[str, tuple[type, ...]]]:
    """(column, types that its cells may have)"""
    found = []
    for name, hint in get_type_hints(record).items():
        options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        plain = [option if isinstance(option, type) else str for option in options]  # a Literal is of texts
        found.append((name, tuple(stored.get(option, option) for option in plain)))
    return found


REVIEW_TYPES = types_of(Review, {datetime: str})
CARD_TYPES = types_of(Card, {datetime: str})


def card_row(card: Card) -> tuple[object, ...]:
    return (card.question_id, to_text(card.due), card.stability, card.difficulty, card.state,
            to_text(card.last_review), card.num_reviews)  # fmt: skip


def card_of(row: Sequence[Any]) -> Card:
    """Raises Unreadable."""
    values = dict(zip(CARD_COLUMNS, row, strict=True))
    for name, wanted in CARD_TYPES:
        if type(values[name]) not in wanted:
            raise Unreadable(f"{name}: {values[name]!r}")
    if not 0 < values["stability"] < float("inf") or not 0 < values["difficulty"] < float("inf"):
        raise Unreadable("stability or difficulty")
    return Card(**{**values, "due": moment_of(values["due"]), "last_review": moment_of(values["last_review"])})


def bookmark_row(mark: Bookmark) -> tuple[object, ...]:
    return (mark.question_id, int(mark.is_on), to_text(mark.changed_at))


def bookmark_of(row: Sequence[Any]) -> Bookmark:
    """Raises Unreadable."""
    question_id, is_on, changed_at = row
    if type(question_id) is not str or not question_id or is_on not in (0, 1):
        raise Unreadable(f"{question_id!r}, {is_on!r}")
    return Bookmark(question_id, bool(is_on), moment_of(changed_at))


def undone_of(row: Sequence[Any]) -> str:
    """Raises Unreadable."""
    if type(row[0]) is not str:
        raise Unreadable(repr(row[0]))
    return str(row[0])


def interview_row(record: InterviewRecord) -> tuple[object, ...]:
    return (record.id, json_text(record.plan), json_text(record.state), to_text(record.started),
            to_text(record.updated), record.finished and to_text(record.finished))  # fmt: skip


def interview_of(row: Sequence[Any]) -> InterviewRecord:
    """Raises Unreadable."""
    record_id, plan, state, started, updated, finished = row
    if type(record_id) is not str or not record_id:
        raise Unreadable(repr(record_id))
    return InterviewRecord(
        record_id,
        mapping_of(plan),
        mapping_of(state),
        moment_of(started),
        moment_of(updated),
        None if finished is None else moment_of(finished),
    )


def json_text(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def mapping_of(cell: object) -> dict[str, Any]:
    try:
        value = json.loads(cell) if type(cell) is str else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Unreadable(f"no object of JSON: {str(cell)[:80]!r}")
    return value


def moment_of(cell: object) -> datetime:
    """A time that nothing stumbles over: one before EARLIEST or after LATEST counts as that. Raises Unreadable."""
    try:
        if type(cell) is not str:
            raise Unreadable(f"no time: {cell!r}")
        return clamped(from_text(cell))
    except OverflowError:  # of the year 1 or 9999, and its zone leads out of the calendar
        return EARLIEST if datetime.fromisoformat(str(cell)).replace(tzinfo=timezone.utc) < EARLIEST else LATEST
    except ValueError:
        raise Unreadable(f"no time: {cell!r}") from None
