"""Interviews that were left or killed: which of them is meant, and what else is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kit.errors import KitError
from kit.interview.record import Record, from_json

if TYPE_CHECKING:
    from kit.progress.records import InterviewRecord
    from kit.progress.store import Store

ID_LENGTH = 8  # of its first characters, which name one that has no name


def open_ones(store: Store, role: str = "") -> list[InterviewRecord]:
    """Those that have no end, of that role or of both; the one that somebody last did something in first."""
    found = [each for each in store.interviews() if each.finished is None and role in ("", each.state.get("role"))]
    return sorted(found, key=lambda each: each.updated, reverse=True)


def chosen(found: Sequence[InterviewRecord], name: str) -> InterviewRecord:
    """The latest, or the latest of that candidate (or whose id begins so). Raises KitError where there is none."""
    wanted = " ".join(name.split()).casefold()
    for each in found:
        if not wanted or wanted == handle(from_json(each.state["record"])).casefold() or each.id.startswith(wanted):
            return each
    if not found:
        raise KitError("no interview was left", hint="shardkit interview begins one")
    names = ", ".join(dict.fromkeys(handle(from_json(each.state["record"])) for each in found))
    raise KitError(f"no interview of {name!r} was left", hint=f"there are those of {names}")


def handle(record: Record) -> str:
    """By which `--name` finds it: the candidate's name, else how its id begins."""
    return " ".join(record.candidate.split()) or record.id[:ID_LENGTH]
