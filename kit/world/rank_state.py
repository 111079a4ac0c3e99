"""What the deciding process knows of each rank: what it issued, what it waits for, how far it is."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from kit.world.operations import Issued
from kit.world.segments import Segment
from kit.world.served_store import StoreRequest
from kit.world.trace import Event
from kit.world.wire import ProtocolError


@dataclass(slots=True)
class Wait:
    """A rank's blocked request: for any of some operations, or (poll) for an answer about one."""

    rank: int
    request: int
    seqs: tuple[int, ...]
    site: str
    clock: int
    poll: bool = False
    timeout_s: float | None = None


@dataclass(slots=True)
class RankState:
    """What the deciding process knows of one rank."""

    rank: int
    finished: bool = False
    gone: bool = False
    threads: int = 1
    clock: int = 0
    returned: bool = False
    killed: bool = False  # by a fault, as was planned
    timed_out: str = ""  # what was last raised in it because a wait took too long
    excused: bool = False  # it failed because another rank was killed as planned
    open: dict[int, Issued] = field(default_factory=dict)
    issued: list[Issued] = field(default_factory=list)
    waits: dict[int, Wait] = field(default_factory=dict)
    store_waits: dict[int, StoreRequest] = field(default_factory=dict)
    # What it set and nobody sees yet, with the position of each in its log.
    queued_sets: deque[tuple[StoreRequest, tuple[int, int]]] = field(default_factory=deque)
    reading: dict[int, Segment] = field(default_factory=dict)  # results that it has not copied out yet
    events: list[Event] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)
    groups_made: list[tuple[tuple[int, ...], str]] = field(default_factory=list)
    completed: int = 0

    @property
    def live(self) -> bool:
        return not (self.finished or self.gone)

    @property
    def blocked(self) -> bool:
        return bool(self.waits or self.store_waits)


@dataclass(slots=True)
class Slot:
    """The n-th collective of a group: the calls that have come so far."""

    members: tuple[int, ...]
    calls: dict[int, Issued] = field(default_factory=dict)  # by group rank
    misfit: str | None = None


def declared(header: dict[str, Any]) -> Event:
    """A compute or a mark that a rank declares of itself; ProtocolError where it makes no sense."""
    kind = header["op"]
    what, label, site, dtype = (str(header.get(key, ""))[:200] for key in ("what", "label", "site", "dtype"))
    if kind == "mark":
        return Event("mark", what=what, site=site)
    seconds, flops, microbatch = float(header.get("seconds", 0.0)), header.get("flops", 0), header.get("microbatch")
    if not (math.isfinite(seconds) and 0 <= seconds <= 1e12) or type(flops) is not int or not 0 <= flops < 1 << 80:
        raise ProtocolError("a compute of no sensible cost")
    if microbatch is not None and type(microbatch) is not int:
        raise ProtocolError("a microbatch that is no whole number")
    return Event(
        "compute", seconds=seconds, flops=flops, dtype=dtype, what=what, label=label, microbatch=microbatch, site=site
    )
