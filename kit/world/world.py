"""`World.run`: start ranks, be their network, and bring back what they computed or why they could not."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kit.errors import KitError
from kit.hardware import Profile
from kit.hardware import profile as profile_of
from kit.world import memory, programs, segments, services
from kit.world.failure import Finding
from kit.world.faults import Fault, checked
from kit.world.memory import Memory
from kit.world.replay import replay
from kit.world.run_loop import RunLoop
from kit.world.services import Service
from kit.world.steps import Steps, run_alone
from kit.world.strikes import Strikes
from kit.world.timeline import Timeline
from kit.world.trace import Trace
from kit.world.zygote import Zygote

TRANSPORTS = ("switchboard", "gloo")
MAX_WORLD_SIZE = 1024


@dataclass(frozen=True)  # without slots: its timeline is computed when first asked for, and kept
class Result:
    """What a run brought back. ranks[r] is what rank r returned; the trace is empty under gloo.

    killed: the ranks that faults killed, with `allow_killed`; these, and ranks that waited for them for ever (findings
    of the kind "stranded"), returned None.
    """

    world_size: int
    transport: str
    ranks: tuple[Any, ...]
    trace: Trace
    stdout: tuple[str, ...]
    stderr: tuple[str, ...]
    findings: tuple[Finding, ...]
    duration_s: float
    killed: tuple[int, ...] = ()

    profile: Profile = field(default_factory=lambda: profile_of("ideal"))

    @cached_property
    def timeline(self) -> Timeline:
        """When each rank did what, in virtual time under the world's profile. Raises KitError under gloo."""
        return self.timeline_under(self.profile)

    def timeline_under(self, profile: str | os.PathLike[str] | Profile) -> Timeline:
        """The same run priced under another profile: a name, a path to a YAML file, or a Profile.

        What timing decided (any-source matches, polls, the store's counters) stays as the world's profile decided it.
        Raises KitError under gloo, and for a profile that does not exist.
        """
        if self.transport != "switchboard":
            raise KitError(
                f"there is no timeline of a run over {self.transport}: what its ranks say to each other is not seen, "
                "and this machine's own clock says nothing about another one",
                'run it with transport="switchboard"',
            )
        return replay(self.trace, profile_of(profile))

    memory: Memory = field(default_factory=Memory)


class World:
    """`size` ranks, fresh for every run.

    transport: "switchboard" (the deciding process is the network and sees everything) or "gloo" (the real thing).
    deadline_s: wall-clock seconds after which a run is ended and every rank's line is reported.
    zygote: the process to fork ranks from; without one, a run starts its own and ends it.
    memory_limit_bytes: what a rank may allocate beyond what it starts with.
    output_limit_bytes: what a rank may print to stdout and stderr together.
    seed: the ranks' own random numbers follow from it, other ones on every rank.
    races: watch the buffers of operations in flight (switchboard only); a race raises WorldError.
    order_seed: draw what timing would decide (any-source matches, polls, the store's counters) by this seed, to look
    for programs that lean on one order; None takes the earliest.
    profile: the hardware that virtual time is reckoned with, a name or path or Profile of `kit.hardware`; it prices
    `Result.timeline` and orders what timing decides.
    count_flops: charge each rank's clock for the operations that torch really runs in it, forward and backward, at the
    profile's peak; switchboard only.
    services: what ranks may have this process compute, by name; see `kit.world.services`.
    faults: what is made to go wrong, see `kit.world.faults`; switchboard only.
    allow_killed: a run in which a fault killed a rank is no error, and neither are ranks that wait for it for ever.
    meter: count live storages inside the ranks, at each `inside.hold` and `inside.mark`; see `Memory.inside`.
    cwd, env: the ranks' working directory and environment (default: this process's own).
    """

    def __init__(
        self,
        size: int,
        *,
        transport: str = "switchboard",
        deadline_s: float = 30.0,
        zygote: Zygote | None = None,
        memory_limit_bytes: int = 4 << 30,
        output_limit_bytes: int = 16 << 20,
        seed: int = 0,
        races: bool = True,
        order_seed: int | None = None,
        profile: str | os.PathLike[str] | Profile = "ideal",
        count_flops: bool = False,
        services: Mapping[str, Service] | None = None,
        faults: Iterable[Fault] = (),
        allow_killed: bool = False,
        meter: bool = False,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        if type(size) is not int or not 1 <= size <= MAX_WORLD_SIZE:
            raise KitError(f"world size {size!r} is not a whole number from 1 to {MAX_WORLD_SIZE}")
        if transport not in TRANSPORTS:
            raise KitError(f"no transport {transport!r}; there are {' and '.join(TRANSPORTS)}")
        if not deadline_s > 0:
            raise KitError(f"deadline_s is {deadline_s!r}, not a positive number of seconds")
        self.size = size
        self.transport = transport
        self.deadline_s = deadline_s
        self.memory_limit_bytes = memory_limit_bytes
        self.output_limit_bytes = output_limit_bytes
        self.seed = seed
        self.races = races
        self.order_seed = order_seed
        self.profile = profile_of(profile)
        self.count_flops = count_flops
        self.services = dict(services) if services else {}
        self.faults = checked(faults, size, transport)
        self.allow_killed = allow_killed
        self.meter = meter
        self.cwd = cwd
        self.env = env
        self._zygote = zygote

    def run(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Any] | None = None,
        *,
        faults: Iterable[Fault] | None = None,
        allow_killed: bool | None = None,
    ) -> Result:
        """Call `function()`, or `function(inputs[rank])`, on every rank.

        function: a top-level function; torch.distributed is initialised when it is called.
        inputs: one tree a rank (None, bool, int, float, str, bytes, tensors, lists, tuples, dicts); so is what the
        function returns.
        faults, allow_killed: for this run, instead of the world's own.
        Raises WorldError when a rank hangs, crashes, does not fit the others or outlives the deadline.
        """
        return run_alone(self.steps(function, inputs, faults=faults, allow_killed=allow_killed))

    def steps(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Any] | None = None,
        *,
        faults: Iterable[Fault] | None = None,
        allow_killed: bool | None = None,
    ) -> Steps[Result]:
        """As `run`, for who has several runs to attend to. Closing it ends its ranks."""
        where = programs.reference(function)
        if inputs is not None and len(inputs) != self.size:
            raise KitError(f"{len(inputs)} inputs for a world of {self.size} ranks; give one a rank")
        struck = self.faults if faults is None else checked(faults, self.size, self.transport)
        strikes = Strikes(struck, is_planned=self.allow_killed if allow_killed is None else allow_killed)
        zygote = self._zygote if self._zygote is not None else Zygote.execute()
        try:
            zygote.wait_ready()
            return (yield from self._steps(zygote, where, inputs, strikes))
        finally:
            if self._zygote is None:
                zygote.close()

    def _steps(
        self, zygote: Zygote, where: dict[str, str], inputs: Sequence[Any] | None, strikes: Strikes
    ) -> Steps[Result]:
        started = time.monotonic()
        loop = RunLoop(
            self.size,
            transport=self.transport,
            deadline=started + self.deadline_s,
            deadline_s=self.deadline_s,
            memory_limit_bytes=self.memory_limit_bytes,
            output_limit_bytes=self.output_limit_bytes,
            zygote=zygote,
            order_seed=self.order_seed,
        )
        loop.board.quiescence.clocks.hardware = self.profile
        services.attach(loop, self.services)
        ledger = memory.attach(loop)
        strikes.attach(loop)
        with loop:
            draw = random.Random(self.seed)
            for rank in range(self.size):
                loop.start(
                    rank,
                    {**self._job(rank, where, draw.getrandbits(62)), **strikes.job(rank)},
                    inputs[rank : rank + 1] if inputs is not None else None,
                )
            values = yield from loop.steps()
        return Result(
            self.size, self.transport, values, loop.trace(), loop.stdout(), loop.stderr(),
            tuple(loop.findings()), time.monotonic() - started, tuple(sorted(strikes.killed)),
            profile=self.profile,
            memory=ledger.memory(),
        )  # fmt: skip

    def _job(self, rank: int, where: dict[str, str], rng_seed: int) -> dict[str, Any]:
        return {
            "rank": rank,
            "world_size": self.size,
            "transport": self.transport,
            "timeout_s": self.deadline_s,
            "function": where,
            "rng_seed": rng_seed,
            "memory_limit_bytes": self.memory_limit_bytes,
            "segments": segments.supported(),
            "races": self.races,
            "count_flops": self.count_flops and self.transport == "switchboard",
            "meter": self.meter,
            "cwd": self.cwd if self.cwd is not None else os.getcwd(),
            "env": dict(self.env) if self.env is not None else None,
            "sys_path": [path or os.getcwd() for path in sys.path],
        }
