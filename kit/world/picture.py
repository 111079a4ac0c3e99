"""What the drawings of a timeline have in common: rows for spans that overlap, and an axis with round numbers."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

_UNITS = (("s", 0), ("ms", -3), ("us", -6), ("ns", -9))
_STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Axis:
    """Marks of time. ticks: (seconds, that number in `unit` as text), in order."""

    unit: str
    ticks: tuple[tuple[float, str], ...]


def axis(start_s: float, end_s: float, most: int) -> Axis:
    """At most `most` (at least 2) marks from start_s to end_s, a round step apart, in the unit that suits the length.

    `axis(0, 0.033, 5)` -> 0, 10, 20, 30 ms.
    """
    length = end_s - start_s
    if not length > 0:
        return Axis("s", ((start_s, "0"),) if start_s == 0 else ())
    unit, power = next(((name, power) for name, power in _UNITS if length >= 0.999999 * 10.0**power), _UNITS[-1])
    exponent = math.floor(math.log10(length / most)) - 1
    while True:
        for mantissa in _STEPS:
            step = float(Decimal(mantissa).scaleb(exponent))
            first, last = math.ceil(start_s / step - 1e-6), math.floor(end_s / step + 1e-6)
            if last - first + 1 <= most:
                values = (Decimal(mantissa * count).scaleb(exponent) for count in range(first, last + 1))
                return Axis(unit, tuple((float(value), _plain(value.scaleb(-power))) for value in values))
        exponent += 1


def _plain(value: Decimal) -> str:
    """Without an exponent and without zeros at the end: 2.50 -> `2.5`, 1E+1 -> `10`."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rows(stretches: Sequence[tuple[int, int]]) -> list[int]:
    """For each (start, end), in order of start, the lowest row in which it overlaps no other.

    `[(0, 4), (1, 2), (2, 3), (4, 5)]` -> `[0, 1, 1, 0]`. Those that only touch may share a row.
    """
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    placed = []
    for start, end in stretches:
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        row = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, row))
        placed.append(row)
    return placed
