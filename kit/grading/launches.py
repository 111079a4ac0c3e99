"""Launches of scenarios: one a scenario, world size and transport, kept for all checks that it serves."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.grading.scenario import Phase, Run, Scenario, derived_seed, draw_problem
from kit.world import World, WorldError

if TYPE_CHECKING:
    from kit.world import Result, Zygote

# What a rank may see of the environment; what it needs of torch was settled before it was forked.
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SYSTEMROOT")
# After one of these, further launches would only cost the same time, memory or output again.
_COSTLY = {"deadline": "ran out of time", "memory": "ran out of memory", "output": "printed too much"}
_UNSUPPORTED = "is unsupported on gloo"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is graded: a solution against a checks file. interface, forbidden: of the question, may be empty."""

    checks: Path
    solution: Path
    interface: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """What became of a launch: a run, or an error, or the reason why it was not tried."""

    run: Run | None = None
    error: WorldError | None = None
    reason: str = ""
    duration_s: float = 0.0


@dataclass(slots=True)
class Launches:
    """Makes launches with one seed and keeps them."""

    seed: int
    zygote: Callable[[], Zygote]
    _made: dict[tuple[Subject, int, int, str], Launch] = field(default_factory=dict)
    _broken: dict[Subject, str] = field(default_factory=dict)
    _costly: dict[Subject, str] = field(default_factory=dict)
    _compiled: dict[Path, bytes] = field(default_factory=dict)

    def get(self, subject: Subject, scenario: Scenario, world_size: int, transport: str) -> Launch:
        key = (subject, id(scenario), world_size, transport)
        if key not in self._made:
            self._made[key] = self._launch(subject, scenario, world_size, transport)
        return self._made[key]

    def runs(self) -> list[Run]:
        """Those that came to their end, in the order in which they were made."""
        return [launch.run for launch in self._made.values() if launch.run is not None]

    def note_failure(self, subject: Subject, proof: str, *, is_launch: bool, world_size: int) -> None:
        """A solution whose values or launches fail on the switchboard is not tried on gloo."""
        if proof == "values" or is_launch:
            self._broken.setdefault(subject, f"it fails on the switchboard at world_size={world_size}")

    def _launch(self, subject: Subject, scenario: Scenario, world_size: int, transport: str) -> Launch:
        reason = self._costly.get(subject, "")
        if transport == "gloo":
            reason = reason or self._broken.get(subject, "") or self._beyond_gloo(subject, scenario, world_size)
        if reason:
            return Launch(reason=reason)
        started = time.monotonic()
        try:
            return Launch(self._run(subject, scenario, world_size, transport), duration_s=time.monotonic() - started)
        except WorldError as error:
            if error.kind in _COSTLY:
                self._costly[subject] = f"it {_COSTLY[error.kind]} at world_size={world_size}"
            return Launch(error=error, duration_s=time.monotonic() - started)

    def _beyond_gloo(self, subject: Subject, scenario: Scenario, world_size: int) -> str:
        """What the switchboard took at this size and gloo lacks: no fault of the solution, so not tried there."""
        seen = self._made.get((subject, id(scenario), world_size, "switchboard"))
        findings = seen.run.findings if seen is not None and seen.run is not None else ()
        return next((f.message for f in findings if _UNSUPPORTED in f.message), "")

    def _run(self, subject: Subject, scenario: Scenario, world_size: int, transport: str) -> Run:
        from kit.world.limits import hide_memory

        hide_memory()  # the whole problem is in it, also where ranks are not forks of this process
        problem = draw_problem(scenario, self.seed, world_size)
        services = scenario.services(problem, world_size) if scenario.services is not None else {}
        with tempfile.TemporaryDirectory(prefix="shardkit-", ignore_cleanup_errors=True) as empty:
            common: dict[str, Any] = {
                "transport": transport,
                "deadline_s": scenario.deadline_s,
                "zygote": self.zygote(),
                "services": services,
                "profile": scenario.profile(world_size) if scenario.profile is not None else "ideal",
                "cwd": empty,
                "env": clean_environment(empty),
            }
            results = self._phases(subject, scenario, scenario.launches(problem, world_size), world_size, common)
        return Run(scenario, problem, results[-1], self.seed, services, tuple(results[:-1]))

    def _phases(
        self,
        subject: Subject,
        scenario: Scenario,
        phases: Generator[Phase, Result, None],
        world_size: int,
        common: dict[str, Any],
    ) -> list[Result]:
        """Launch one phase after the other, in one shared directory where the scenario has one."""
        from kit.grading.entry import compiled, on_rank

        if subject.checks not in self._compiled:
            self._compiled[subject.checks] = compiled(subject.checks)
        code = self._compiled[subject.checks]
        shared: dict[str, str] = {}
        if scenario.shared_dir:
            shared["shared_dir"] = os.path.join(common["cwd"], "shared")
            os.mkdir(shared["shared_dir"])
        results: list[Result] = []
        phase = next(phases, None)
        while phase is not None:
            seed = derived_seed(self.seed, scenario, world_size, f"ranks{len(results) or ''}")
            world = World(phase.world_size, seed=seed, faults=phase.faults, allow_killed=True, **common)
            results.append(world.run(on_rank, _jobs(subject, code, phase, shared)))
            try:
                phase = phases.send(results[-1])
            except StopIteration:
                break
        if not results:
            raise ValueError(f"the phases of {scenario.name} are none")
        return results


def _jobs(subject: Subject, code: bytes, phase: Phase, shared: dict[str, str]) -> list[dict[str, Any]]:
    """What each rank is to do; `shared` joins its inputs, which are a dict then."""
    inputs = [phase.rank_inputs(rank) for rank in range(phase.world_size)]
    return [
        {
            "solution": str(subject.solution),
            "checks": str(subject.checks),
            "checks_code": code,
            "interface": list(subject.interface),
            "forbidden": list(subject.forbidden),
            "program": phase.program.__name__,
            "inputs": {**own, **shared} if shared else own,
        }
        for own in inputs
    ]


def clean_environment(home: str) -> dict[str, str]:
    """Nothing of the caller's environment but what says where programs are and which language they speak."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "HOME": home}
