"""A file graded again and again while it is written: from one warm zygote, what failed last first."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kit.bank.layout import Bank
from kit.grading.grader import run_checks
from kit.grading.preflight import prepare
from kit.grading.result import CheckResult, GradeResult, verdict_of
from kit.world import Zygote


@dataclass(slots=True)
class Regrader:
    """Grades the file at `path` each time it is asked to.

    The seed stays the same while the file fails, so that two grades compare; after a pass the next one is fresh.
    transport: "both" tries gloo once the switchboard has let the file pass; else "switchboard" or "gloo" alone.
    """

    bank: Bank
    question: str | None
    path: Path
    transport: str
    zygote: Zygote
    last: GradeResult | None = None
    _seed: int | None = None
    _first: CheckResult | None = None

    def grade(
        self,
        tell: Callable[[CheckResult], None] = lambda check: None,
        passed_here: Callable[[GradeResult], None] = lambda result: None,
    ) -> GradeResult:
        """tell: called with each check as it ends. passed_here: called before a file that passed is tried on gloo.

        Raises KitError for whatever has to be put right before ranks can run.
        """
        assignment = prepare(self.question, self.path, self.bank)
        not_started = assignment.not_started()
        if not_started is not None:
            self.last = not_started
            return not_started
        started = time.monotonic()
        first_way = "switchboard" if self.transport == "both" else self.transport
        result = run_checks(
            assignment, seed=self._seed, transport=first_way, zygote=self.zygote, first=self._first, tell=tell
        )
        if self.transport == "both" and result.verdict == "passed":
            passed_here(result)
            more = run_checks(assignment, seed=result.seed, transport="gloo", zygote=self.zygote, tell=tell)
            checks = (*result.checks, *more.checks)
            verdict = "kit_error" if more.verdict == "kit_error" else verdict_of(checks)
            result = replace(more, checks=checks, verdict=verdict, duration_s=time.monotonic() - started)
        self._seed = None if result.verdict == "passed" else result.seed
        self._first = result.first_failure or self._first
        self.last = result
        return result
