"""What the deciding process knows of each rank: what it issued, what it waits for, how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from kit.world.operations import Issued
from kit.world.segments import Segment
from kit.world.served_store import StoreRequest
from kit.world.trace import Event


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
    open: dict[int, Issued] = field(default_factory=dict)
    issued: list[Issued] = field(default_factory=list)
    waits: dict[int, Wait] = field(default_factory=dict)
    store_waits: dict[int, StoreRequest] = field(default_factory=dict)
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
