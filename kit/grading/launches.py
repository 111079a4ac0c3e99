"""Launches of scenarios: one a scenario, world size and transport, kept for all checks that it serves."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kit.grading.scenario import Phase, Run, Scenario, derived_seed, draw_problem
from kit.world import World, WorldError
from kit.world.steps import Begun, Steps, attend

if TYPE_CHECKING:
    from kit.world import Result, Zygote

# What a rank may see of the environment; what it needs of torch was settled before it was forked.
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SYSTEMROOT")
# After one of these, further launches would only cost the same time, memory or output again.
_COSTLY = {"deadline": "ran out of time", "memory": "ran out of memory", "output": "printed too much"}
_MOST_AHEAD, _RANKS_AHEAD, _RANKS_AT_FIRST = 3, 12, 3
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


# subject, id of the scenario, world size, transport
_Key = tuple[Subject, int, int, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A launch that checks will look at."""

    subject: Subject
    scenario: Scenario
    world_size: int
    transport: str

    @property
    def key(self) -> _Key:
        return self.subject, id(self.scenario), self.world_size, self.transport


class _Started(NamedTuple):
    begun: Begun[Launch]
    num_ranks: int
    num_lost: int  # how many zygotes had been lost when it began


@dataclass(slots=True)
class Launches:
    """Makes launches with one seed and keeps them.

    Those that are planned are begun ahead, a few at a time, so that the machine's other cores are not idle while one
    rank is alone or a check compares. What comes of them is the same: each is taken in its turn.
    """

    seed: int
    zygote: Callable[[], Zygote]
    _made: dict[_Key, Launch] = field(default_factory=dict)
    _planned: list[Wanted] = field(default_factory=list)
    _begun: dict[_Key, _Started] = field(default_factory=dict)
    _left_at: float = 0.0
    _broken: dict[Subject, str] = field(default_factory=dict)
    _costly: dict[Subject, str] = field(default_factory=dict)
    _compiled: dict[Path, bytes] = field(default_factory=dict)

    def plan(self, coming: Iterable[Wanted]) -> None:
        """These will be asked for, in this order."""
        self._planned = list({wanted.key: wanted for wanted in coming}.values())

    def get(self, wanted: Wanted) -> Launch:
        key = wanted.key
        if key not in self._made:
            away_s = time.monotonic() - self._left_at
            for one in self._begun.values():
                one.begun.unattended_s += away_s
            try:
                self._made[key] = self._finish(wanted)
            finally:
                self._left_at = time.monotonic()
        return self._made[key]

    def close(self) -> None:
        """End what was begun ahead and never asked for."""
        for one in self._begun.values():
            one.begun.close()
        self._begun.clear()

    def _finish(self, wanted: Wanted) -> Launch:
        reason = self._reason_not_to(wanted)
        if reason:
            self._drop(wanted.key)
            return Launch(reason=reason)
        started = self._begun.get(wanted.key) or self._begin(wanted)
        launch = self._result(started, wanted)
        if launch.error is not None and self._planned and self.zygote().num_lost > started.num_lost:
            # Whoever ended the process that ranks come from ended the others' ranks too: from here on one by one.
            self._planned.clear()
            self.close()
            started = self._begin(wanted)
            launch = self._result(started, wanted)
        if launch.error is not None and self.zygote().num_lost > started.num_lost:
            # It was alone. Each further launch would first wait until a new process has imported torch.
            self._note_cost(wanted, "ended the process that ranks come from")
        elif launch.error is not None and launch.error.kind in _COSTLY:
            self._note_cost(wanted, _COSTLY[launch.error.kind])
        self._begin_ahead(wanted, _RANKS_AHEAD)
        return launch

    def _note_cost(self, wanted: Wanted, what: str) -> None:
        self._costly[wanted.subject] = f"it {what} at world_size={wanted.world_size}"

    def _result(self, started: _Started, wanted: Wanted) -> Launch:
        # The very first has the machine almost for itself: who waits wants to hear something soon.
        most = _RANKS_AHEAD if self._made else _RANKS_AT_FIRST
        self._begin_ahead(wanted, most)
        while not started.begun.is_done:
            if attend([one.begun for one in self._begun.values()]):
                self._begin_ahead(wanted, most)
        del self._begun[wanted.key]
        if started.begun.error is not None:
            raise started.begun.error
        assert started.begun.value is not None
        return started.begun.value

    def _begin(self, wanted: Wanted) -> _Started:
        num_lost = self.zygote().num_lost
        self._begun[wanted.key] = _Started(Begun(self._launch(wanted)), wanted.world_size, num_lost)
        return self._begun[wanted.key]

    def _drop(self, key: _Key) -> None:
        if key in self._begun:
            self._begun.pop(key).begun.close()

    def _begin_ahead(self, current: Wanted, most: int) -> None:
        """The next ones of the plan, as long as at most so many ranks live; those whose turn is far off are not."""
        coming = (one for one in self._planned if one.key not in self._made and one.key != current.key)
        for wanted in itertools.islice(coming, _MOST_AHEAD):
            if wanted.key in self._begun:
                continue
            num_ranks = sum(one.num_ranks for one in self._begun.values() if not one.begun.is_done)
            # What may run on gloo is known once the switchboard's checks are done.
            if wanted.transport != current.transport or num_ranks + wanted.world_size > most:
                return
            if not self._reason_not_to(wanted):
                self._begin(wanted)

    def runs(self) -> list[Run]:
        """Those that came to their end, in the order in which they were made."""
        return [launch.run for launch in self._made.values() if launch.run is not None]

    def note_failure(self, subject: Subject, proof: str, *, is_launch: bool, world_size: int) -> None:
        """A solution whose values or launches fail on the switchboard is not tried on gloo."""
        if proof == "values" or is_launch:
            self._broken.setdefault(subject, f"it fails on the switchboard at world_size={world_size}")

    def _reason_not_to(self, wanted: Wanted) -> str:
        """Why it is of no use to make this launch; empty where it is."""
        reason = self._costly.get(wanted.subject, "")
        if wanted.transport == "gloo":
            reason = reason or self._broken.get(wanted.subject, "") or self._beyond_gloo(wanted)
        return reason

    def _launch(self, wanted: Wanted) -> Steps[Launch]:
        started = time.monotonic()
        try:
            run = yield from self._run(wanted)
            return Launch(run, duration_s=time.monotonic() - started)
        except WorldError as error:
            return Launch(error=error, duration_s=time.monotonic() - started)

    def _beyond_gloo(self, wanted: Wanted) -> str:
        """What the switchboard took at this size and gloo lacks: no fault of the solution, so not tried there."""
        seen = self._made.get(replace(wanted, transport="switchboard").key)
        findings = seen.run.findings if seen is not None and seen.run is not None else ()
        return next((f.message for f in findings if _UNSUPPORTED in f.message), "")

    def _run(self, wanted: Wanted) -> Steps[Run]:
        from kit.world.limits import hide_memory

        scenario, world_size = wanted.scenario, wanted.world_size
        hide_memory()  # the whole problem is in it, also where ranks are not forks of this process
        problem = draw_problem(scenario, self.seed, world_size)
        services = scenario.services(problem, world_size) if scenario.services is not None else {}
        with tempfile.TemporaryDirectory(prefix="shardkit-", ignore_cleanup_errors=True) as empty:
            common: dict[str, Any] = {
                "transport": wanted.transport,
                "deadline_s": scenario.deadline_s,
                "zygote": self.zygote(),
                "services": services,
                "profile": scenario.profile(world_size) if scenario.profile is not None else "ideal",
                "cwd": empty,
                "env": clean_environment(empty),
            }
            phases = scenario.launches(problem, world_size)
            results = yield from self._phases(wanted.subject, scenario, phases, world_size, common)
        return Run(scenario, problem, results[-1], self.seed, services, tuple(results[:-1]))

    def _phases(
        self,
        subject: Subject,
        scenario: Scenario,
        phases: Generator[Phase, Result, None],
        world_size: int,
        common: dict[str, Any],
    ) -> Steps[list[Result]]:
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
            results.append((yield from world.steps(on_rank, _jobs(subject, code, phase, shared))))
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
