"""A timeline in characters: which column of the screen shows what. No more is claimed than a column can show.

A column stands for a stretch of time and shows what fills most of it; where a column is shared by several spans of one
kind, it shows the kind and names none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kit.world.timeline import Span, Timeline

WAIT, NOTHING = "wait", ""
_EVEN = 1e-6  # of a unit: how far from a whole number of units a moment may be and still be called one
_MOST_PARTS = 6


@dataclass(frozen=True, slots=True)
class Scale:
    """num_columns columns of per_column_s seconds each, from start_s on."""

    start_s: float
    per_column_s: float
    num_columns: int

    @property
    def end_s(self) -> float:
        return self.start_s + self.num_columns * self.per_column_s


@dataclass(frozen=True, slots=True)
class Box:
    """`width` columns that show one thing. span: which, None where several share a column, or for nothing."""

    width: int
    kind: str
    span: Span | None = None


def scale(timeline: Timeline, width: int) -> Scale:
    """At most `width` columns. Where every compute lasts whole units of time, a unit takes whole columns, so that equal
    spans look equal.

    Stages of 1 and 2 s, a makespan of 33 s and 72 columns: 66 columns of half a second.
    """
    unit_s = _unit_s(timeline)
    if unit_s:
        units = math.ceil(timeline.makespan_s / unit_s - _EVEN)
        per_unit = width // units
        if per_unit:
            return Scale(timeline.start_s, unit_s / per_unit, units * per_unit)
    return Scale(timeline.start_s, timeline.makespan_s / width, width)


def _unit_s(timeline: Timeline) -> float:
    """The longest time of which every edge of a compute is a multiple, 0 where none is found."""
    spans = [span for span in timeline.spans if span.lane == "compute" and span.duration_s > 0]
    if not spans:
        return 0.0
    shortest_s = min(span.duration_s for span in spans)
    edges = {edge for span in spans for edge in (span.start_s, span.end_s)}
    for parts in range(1, _MOST_PARTS + 1):
        unit_s = shortest_s / parts
        if all(_is_whole((edge - timeline.start_s) / unit_s) for edge in edges):
            return unit_s
    return 0.0


def _is_whole(number: float) -> bool:
    return abs(number - round(number)) < _EVEN * max(1.0, abs(number))


def program_row(timeline: Timeline, rank: int, columns: Scale) -> list[Box]:
    """Compute and waits of a rank. A column is compute from half of it on, and else wait or nothing, what there is
    more of."""
    computes = _coverage(timeline.of(rank, "compute"), columns, lambda span: span.what)
    waits = _coverage(timeline.of(rank, "wait"), columns, lambda _: WAIT)
    cells: list[tuple[str, Span | None]] = []
    for compute, wait in zip(computes, waits, strict=True):
        empty_s = columns.per_column_s - compute.seconds - wait.seconds
        is_wait = wait.seconds > 0 and wait.seconds >= empty_s
        cells.append(compute.winner(columns.per_column_s) or ((WAIT, None) if is_wait else (NOTHING, None)))
    return _boxes(cells)


def wire_row(timeline: Timeline, rank: int, columns: Scale) -> list[Box]:
    """Operations of a rank on the wire; of those in flight together the one that fills most of a column."""
    cells = _coverage(timeline.of(rank, "communication"), columns, lambda span: span.what)
    return _boxes([cell.winner(columns.per_column_s) or (NOTHING, None) for cell in cells])


class _Cell:
    """What lies in one column: seconds of each kind, and of each span."""

    __slots__ = ("_by_kind", "_spans")

    def __init__(self) -> None:
        self._by_kind: dict[str, float] = {}
        self._spans: list[tuple[float, str, Span]] = []

    def add(self, seconds: float, kind: str, span: Span) -> None:
        self._by_kind[kind] = self._by_kind.get(kind, 0.0) + seconds
        self._spans.append((seconds, kind, span))

    @property
    def seconds(self) -> float:
        return sum(self._by_kind.values())

    def winner(self, column_s: float) -> tuple[str, Span | None] | None:
        """The kind that fills most, if all of them fill half of the column, and its span if that one fills half."""
        half = 0.5 * column_s * (1 - _EVEN)
        if self.seconds < half:
            return None
        kind = max(self._by_kind, key=lambda one: self._by_kind[one])
        seconds, _, span = max((one for one in self._spans if one[1] == kind), key=lambda one: one[0])
        return kind, span if seconds >= half else None


def _coverage(spans: Iterable[Span], columns: Scale, kind: Callable[[Span], str]) -> list[_Cell]:
    cells = [_Cell() for _ in range(columns.num_columns)]
    if not columns.per_column_s > 0:
        return cells
    for span in spans:
        first = max(math.floor((span.start_s - columns.start_s) / columns.per_column_s + _EVEN), 0)
        last = min(math.ceil((span.end_s - columns.start_s) / columns.per_column_s - _EVEN), columns.num_columns)
        for column in range(first, last):
            begin_s = columns.start_s + column * columns.per_column_s
            seconds = min(span.end_s, begin_s + columns.per_column_s) - max(span.start_s, begin_s)
            if seconds > 0:
                cells[column].add(seconds, kind(span), span)
    return cells


def _boxes(cells: Sequence[tuple[str, Span | None]]) -> list[Box]:
    """Neighbours that show the same become one box."""
    boxes: list[Box] = []
    for kind, span in cells:
        last = boxes[-1] if boxes else None
        if last is not None and last.kind == kind and last.span is span:
            boxes[-1] = Box(last.width + 1, kind, span)
        else:
            boxes.append(Box(1, kind, span))
    return boxes


def num_unseen(timeline: Timeline, ranks: Iterable[int], columns: Scale, shown: Iterable[Box]) -> int:
    """How many spans of these ranks (compute and communication) take time and are in no box of their own."""
    seen = {id(box.span) for box in shown if box.span is not None}
    return sum(
        1
        for rank in ranks
        for lane in ("compute", "communication")
        for span in timeline.of(rank, lane)
        if span.duration_s > 0 and id(span) not in seen
    )


def letters(kinds: Iterable[str]) -> dict[str, str]:
    """A letter for each word of a compute: F, B, I and W are themselves, another word takes its first free letter."""
    found: dict[str, str] = {}
    taken = {"F", "B", "I", "W"}
    for kind in sorted(set(kinds) - {NOTHING, WAIT}):
        if kind in ("F", "B", "I", "W"):
            found[kind] = kind
            continue
        free = (letter for letter in kind.upper() if letter.isascii() and letter.isalpha() and letter not in taken)
        found[kind] = next(free, "#")
        taken.add(found[kind])
    return found


def ranks_shown(timeline: Timeline, most: int) -> list[int]:
    """All ranks, or `most` of them: the first, the last, the extremes of idle time and exposed communication, and
    others evenly between."""
    size = timeline.world_size
    if size <= most:
        return list(range(size))
    every = range(size)
    chosen = {
        0,
        size - 1,
        min(every, key=timeline.idle_s),
        max(every, key=timeline.idle_s),
        max(every, key=timeline.exposed_s),
    }
    for step in range(most):
        if len(chosen) < most:
            chosen.add(round(step * (size - 1) / (most - 1)))
    for rank in every:
        if len(chosen) < most:
            chosen.add(rank)
    return sorted(chosen)


def stretches(ranks: Sequence[int]) -> str:
    """`[1, 2, 3, 7]` -> `1-3, 7`."""
    parts: list[tuple[int, int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], rank)
        else:
            parts.append((rank, rank))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
