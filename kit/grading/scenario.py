"""What a checks file declares: programs for ranks, their inputs, what they should return, and checks of it.

Ranks import checks files, so this module needs neither pytest nor torch.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import torch

    from kit.hardware import Profile
    from kit.world import Finding, Result, Timeline, Trace
    from kit.world.faults import Fault
    from kit.world.memory import Memory

PROOFS = ("values", "traffic", "memory", "time", "discipline")
Function = TypeVar("Function", bound=Callable[..., Any])
_MARK = "_shardkit_check"


@dataclass(frozen=True, slots=True)
class Check:
    """A claim about a scenario. title is its docstring's first line; is_completes: that every rank finishes."""

    scenario: Scenario
    name: str
    title: str
    proof: str
    is_completes: bool = False


@dataclass(frozen=True, slots=True)
class Phase:
    """One launch of a scenario that has several. rank_inputs(rank) -> tree; faults: see `kit.grading.faults`."""

    program: Callable[[Any, Any], Any]
    rank_inputs: Callable[[int], Any]
    world_size: int
    faults: Sequence[Fault] = ()


class Scenario:
    """One program on every rank, for several world sizes.

    program(solution, inputs) -> tree: a top-level function; runs on every rank with the learner's module.
    problem(rng, world_size) -> tree: everything, drawn from a torch.Generator, in the deciding process.
    rank_inputs(problem, rank) -> tree: what that rank would own in a real job; the only part that reaches it.
    expected(problem) -> tree: the unsharded answer; computed after the ranks are dead, once, when it is asked for.
    services(problem, world_size) -> {name: callable}: what the deciding process computes for ranks, which call it by
    `kit.world.inside.call(name, ...)`: layers that charge the clock and whose weights no rank has; see
    `kit.world.services`.
    profile(world_size): the hardware that virtual time is reckoned with (`kit.hardware`); None: messages cost nothing.
    faults(problem, world_size) -> [fault]: what is made to go wrong (`kit.grading.faults`); a rank that is killed so
    returns None, and so do those that wait for it for ever. Needs gloo=().
    shared_dir: all ranks and all phases get one directory of this launch's own, as inputs["shared_dir"].
    phases(problem, world_size) -> generator of Phase, which is sent the Result of each: successive launches, instead of
    the one of `program`. As many as it yields, so a crash at every filesystem event is a loop until none was killed.
    gloo: the world sizes that values and `completes` checks also run on gloo.
    """

    def __init__(
        self,
        program: Callable[[Any, Any], Any],
        *,
        problem: Callable[[torch.Generator, int], Any],
        rank_inputs: Callable[[Any, int], Any],
        expected: Callable[[Any], Any],
        services: Callable[[Any, int], Mapping[str, Callable[..., Any]]] | None = None,
        profile: Callable[[int], Profile] | None = None,
        faults: Callable[[Any, int], Sequence[Fault]] | None = None,
        phases: Callable[[Any, int], Generator[Phase, Result, None]] | None = None,
        shared_dir: bool = False,
        world_sizes: tuple[int, ...] = (1, 2, 3, 4),
        gloo: tuple[int, ...] = (2, 4),
        deadline_s: float = 20.0,
    ) -> None:
        if not world_sizes or any(type(size) is not int or size < 1 for size in (*world_sizes, *gloo)):
            raise ValueError(f"world sizes are whole numbers from 1 on, not {world_sizes!r} and {gloo!r}")
        if not set(gloo) <= set(world_sizes):
            raise ValueError(f"gloo={gloo!r} has sizes that world_sizes={world_sizes!r} lacks")
        if "." in program.__qualname__:
            raise ValueError(f"{program.__qualname__} must be a top-level function, so that ranks can find it")
        if faults is not None and (gloo or phases is not None):
            raise ValueError("faults strike on the switchboard alone: give gloo=(); phases carry their own")
        self.program = program
        self.faults = faults
        self.phases = phases
        self.shared_dir = shared_dir
        self.problem = problem
        self.rank_inputs = rank_inputs
        self.expected = expected
        self.services = services
        self.profile = profile
        self.world_sizes = tuple(dict.fromkeys(world_sizes))
        self.gloo = tuple(dict.fromkeys(gloo))
        self.deadline_s = deadline_s
        self.checks: list[Check] = []

    @property
    def name(self) -> str:
        """Tells the scenarios of one file apart."""
        return f"{self.program.__name__}/{self.problem.__name__}"

    def launches(self, problem: Any, world_size: int) -> Generator[Phase, Result, None]:
        """What is launched for this world size, one after the other; to be sent the Result of each."""
        if self.phases is not None:
            yield from self.phases(problem, world_size)
            return
        faults = self.faults(problem, world_size) if self.faults is not None else ()
        yield Phase(self.program, lambda rank: self.rank_inputs(problem, rank), world_size, faults)

    def check(self, proof: str) -> Callable[[Function], Function]:
        """Decorator: this function claims something, and proves `proof`."""
        if proof not in PROOFS:
            raise ValueError(f"no proof {proof!r}; there are {', '.join(PROOFS)}")
        return lambda function: self._add(function, proof, is_completes=False)

    def completes(self, function: Function) -> Function:
        """Decorator: the claim that every rank finishes; a launch that fails fails it, and no other check."""
        if any(check.is_completes for check in self.checks):
            raise ValueError(f"{function.__name__}: a scenario has one `completes`")
        return self._add(function, "discipline", is_completes=True)

    def _add(self, function: Function, proof: str, *, is_completes: bool) -> Function:
        lines = (function.__doc__ or "").strip().splitlines()
        if not lines:
            raise ValueError(f"{function.__name__} has no docstring, which is the line that a learner reads")
        check = Check(self, function.__name__, lines[0], proof, is_completes)
        self.checks.append(check)
        setattr(function, _MARK, check)
        return function

    def runs(self, check: Check, transport: str = "both") -> list[tuple[int, str]]:
        """(world size, transport) of every run that serves this check, the switchboard's first."""
        seen = [(size, "switchboard") for size in self.world_sizes] if transport != "gloo" else []
        is_for_gloo = check.proof == "values" or check.is_completes
        real = [(size, "gloo") for size in self.gloo] if transport != "switchboard" and is_for_gloo else []
        return seen + real


def check_of(function: object) -> Check | None:
    """The check that a function of a checks file declares, if it does."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Check) else None


@dataclass(slots=True)
class Run:
    """One launch of a scenario, as its checks see it. ranks[r] is what rank r returned.

    Of a scenario with phases, result (and ranks, trace, findings) is the last one's, earlier holds those before it.
    """

    scenario: Scenario
    problem: Any
    result: Result
    seed: int
    services: Mapping[str, Any] = field(default_factory=dict)
    earlier: tuple[Result, ...] = ()
    _expected: list[Any] = field(default_factory=list)

    @property
    def ranks(self) -> tuple[Any, ...]:
        return self.result.ranks

    @property
    def world_size(self) -> int:
        """The scenario's, which phases may depart from."""
        return (*self.earlier, self.result)[0].world_size

    @property
    def transport(self) -> str:
        return self.result.transport

    @property
    def trace(self) -> Trace:
        return self.result.trace

    @property
    def timeline(self) -> Timeline:
        return self.result.timeline

    @property
    def memory(self) -> Memory:
        """What ranks kept when they were held; see `kit.grading.memory`."""
        return self.result.memory

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.result.findings

    @property
    def expected(self) -> Any:
        """The unsharded answer, computed when it is first asked for."""
        if not self._expected:
            with drawing(self.seed, self.scenario, self.world_size, "expected"):
                self._expected.append(self.scenario.expected(self.problem))
        return self._expected[0]


def draw_problem(scenario: Scenario, seed: int, world_size: int) -> Any:
    """The scenario's problem for this world size, the same for the same seed."""
    with drawing(seed, scenario, world_size, "problem") as rng:
        return scenario.problem(rng, world_size)


@contextlib.contextmanager
def drawing(seed: int, scenario: Scenario, world_size: int, purpose: str) -> Iterator[torch.Generator]:
    """A generator of its own; global random numbers and the default dtype are put back at the end."""
    import torch

    number = derived_seed(seed, scenario, world_size, purpose)
    dtype = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(number)  # torch.manual_seed takes milliseconds to look for accelerators
        try:
            yield torch.Generator().manual_seed(number)
        finally:
            torch.set_default_dtype(dtype)


def derived_seed(seed: int, scenario: Scenario, world_size: int, purpose: str) -> int:
    """Numbers that do not give one another away: a rank knows the one it was seeded with."""
    text = f"{seed}/{scenario.name}/{world_size}/{purpose}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
