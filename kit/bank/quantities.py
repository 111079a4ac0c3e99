"""What a launch can be measured by, and how near a guess of it comes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Name = Literal["traffic", "bubble", "exposed", "memory"]

ROUNDING = 1e-9  # a guess on the edge is within
NEAR = 0.25  # relative: a guess that is worth half
MOST = 2  # points for a guess


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure of a launch, in `unit` ("B", "s" or "fraction"), of rank `rank` or, with None, the mean over ranks.

    tolerance: relative; within it a guess is right. since: the hold from which on memory is counted.
    """

    name: Name
    unit: str
    measured: float
    tolerance: float
    rank: int | None = None
    since: str = ""

    def points(self, guess: float) -> int:
        """2 within the tolerance, 1 within a quarter, else 0."""
        for tolerance, points in ((self.tolerance, MOST), (NEAR, MOST // 2)):
            if math.isclose(guess, self.measured, rel_tol=0, abs_tol=(tolerance + ROUNDING) * abs(self.measured)):
                return points
        return 0

    def times(self, guess: float) -> float:
        """How many times the measurement the guess is; infinite beside a zero."""
        return guess / self.measured if self.measured else math.inf


@dataclass(frozen=True, slots=True)
class Facts:
    """What may be known of a launch before its figures are. Of rank 0: what it is given, what it runs and says.

    sources: the checks' own program text; part: the mark at which all but memory begins to count, or empty.
    inputs: one line for each tensor or number. computes: (what, count, seconds of each). operations: without counts.
    """

    sources: tuple[str, ...]
    part: str
    inputs: tuple[str, ...]
    computes: tuple[tuple[str, int, float], ...]
    operations: tuple[str, ...]
    communication_s: float = 0.0
