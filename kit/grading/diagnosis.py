"""What a failed check knows: where, both values, and the mistake that explains them when there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

Number = float | int | complex | bool


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a check failed, in parts that a screen can lay out.

    headline is one sentence without rank and world size. problem: "values", "shape", "dtype", "names",
    "type" or "claim" (a sentence of the check's own). path is the worst tensor's place in the tree;
    expected and got are an excerpt of it along its last dimension, from index on. signature names the one
    mistake that explains every wrong tensor; where several do, it is empty and candidates holds them all.
    ratio is got / expected where that is one number for all that is wrong, whatever explains it.
    """

    headline: str
    problem: str = "claim"
    what: str = ""
    where: str = ""
    rank: int | None = None
    world_size: int | None = None
    path: str = ""
    expected_kind: str = ""
    got_kind: str = ""
    index: tuple[int, ...] = ()
    expected: tuple[Number, ...] = ()
    got: tuple[Number, ...] = ()
    max_relative_error: float | None = None
    num_wrong: int = 0
    num_compared: int = 0
    signature: str = ""
    candidates: tuple[str, ...] = ()
    ratio: float | None = None

    @property
    def place(self) -> str:
        """`world_size=3, rank 2, after step 1`; empty when nothing is known."""
        parts = [f"world_size={self.world_size}"] if self.world_size is not None else []
        parts += [f"rank {self.rank}"] if self.rank is not None else []
        parts += [self.where] if self.where else []
        return ", ".join(parts)

    @property
    def subject(self) -> str:
        """`gradient layers.0.weight`, `output[1]`."""
        return named(self.what, self.path)

    @property
    def error_text(self) -> str:
        """`largest error 1 x its largest magnitude`, or nothing where an error cannot be measured."""
        if self.max_relative_error is None:
            return ""
        if math.isinf(self.max_relative_error):
            return "not finite" if any(self.expected) else "expected zero"
        return f"largest error {self.max_relative_error:.2g} x its largest magnitude"

    def lines(self, width: int = 100) -> list[str]:
        """The evidence below the headline; as many values side by side as fit into `width` characters."""
        shown = []
        if self.expected_kind:
            error = f": {self.error_text}" if self.error_text else ""
            worst = "worst: " if self.num_wrong > 1 else ""
            shown.append(f"{worst}{self.subject}, {self.expected_kind}{error}")
        if self.expected:
            first, last = self._excerpt(width)
            expected, got = aligned(self.expected[first:last], self.got[first:last])
            index = (*self.index[:-1], self.index[-1] + first) if self.index else ()
            at = f"   at {index_text(index, last - first)}" if index else ""
            shown.append(f"expected  {expected}")
            shown.append(f"got       {got}{at}")
        if self.candidates:
            shown.append("fits more than one mistake: " + "; or ".join(self.candidates))
        return shown

    def _excerpt(self, width: int) -> tuple[int, int]:
        """Which of the values are shown: all, or those around the one that is farthest off."""
        apart = [_distance(one, other) for one, other in zip(self.expected, self.got, strict=True)]
        first, last = 0, len(apart)
        worst = apart.index(max(apart))
        while last - first > 1 and len(aligned(self.expected[first:last], self.got[first:last])[1]) > width - 24:
            first, last = (first + 1, last) if worst - first > last - 1 - worst else (first, last - 1)
        return first, last

    def text(self) -> str:
        head = f"{self.place}: {self.headline}" if self.place else self.headline
        return "\n".join([head, *(f"  {line}" for line in self.lines())])


class CheckFailed(AssertionError):
    """A check that does not hold; `str(error)` is what the learner reads, `diagnosis` the same in parts."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.text())
        self.diagnosis = diagnosis


def fail(message: str, *, rank: int | None = None, world_size: int | None = None) -> NoReturn:
    """Say that the check does not hold: what happened, where, both values, what to do."""
    __tracebackhide__ = True
    raise CheckFailed(Diagnosis(message, rank=rank, world_size=world_size))


def _distance(one: Number, other: Number) -> float:
    distance = abs(one - other) if one != other else 0.0
    return math.inf if math.isnan(distance) else distance


def named(what: str, path: str) -> str:
    if not path:
        return what
    return f"{what}{path}" if path.startswith("[") or not what else f"{what} {path}"


def index_text(index: tuple[int, ...], count: int) -> str:
    """(2, 0) with 3 shown -> `[2, 0:3]`."""
    if not index:
        return ""
    last = f"{index[-1]}:{index[-1] + count}" if count > 1 else str(index[-1])
    return "[" + ", ".join([*map(str, index[:-1]), last]) + "]"


def aligned(expected: tuple[Number, ...], got: tuple[Number, ...]) -> tuple[str, str]:
    """Both rows with as many digits as it takes to tell them apart, in columns."""
    pairs = [_digits(one, other) for one, other in zip(expected, got, strict=True)]
    widths = [max(len(one), len(other)) for one, other in pairs]
    rows = ("  ".join(pair[row].rjust(width) for pair, width in zip(pairs, widths, strict=True)) for row in (0, 1))
    return next(rows), next(rows)


def _digits(one: Number, other: Number) -> tuple[str, str]:
    for digits in (6, 10, 17):
        texts = _number(one, digits), _number(other, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _number(value: Number, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, (float, complex)) else str(value)
