"""What can be made to go wrong in a run on purpose: a rank is killed, delayed or slow, a message is lost.

    World(4, faults=[Kill(2, Operation(5))]).run(function)

Places count from 1 and in the rank's own order, so a fault strikes at the same moment of every run. Steps and
operations are seen by the deciding process, and no program can avoid them; filesystem events are seen inside the rank,
through Python (advisory: files that other languages open for themselves are not seen).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeAlias

from kit.errors import KitError

FILESYSTEM_KINDS = ("open", "write", "fsync", "rename", "remove", "mkdir", "truncate", "link")
OPERATION_NAMES = (
    "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "barrier",
    "monitored_barrier", "send", "recv",
)  # fmt: skip


class _Shown:
    """A repr without what was left out: `Kill(rank=2, at=Operation(n=5))`."""

    __slots__ = ()

    def __repr__(self) -> str:
        given = [
            f"{field.name}={value!r}"
            for field in fields(self)  # type: ignore[arg-type]  # every subclass is a dataclass
            if (value := getattr(self, field.name)) != field.default or field.default is MISSING or field.name == "n"
        ]
        return f"{type(self).__name__}({', '.join(given)})"


# -- places ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Step(_Shown):
    """The rank's n-th `kit.world.inside.mark`; with a name, its n-th mark of that name."""

    n: int = 1
    name: str | None = None

    def __post_init__(self) -> None:
        _require_count(self)
        if self.name is not None and type(self.name) is not str:
            raise KitError(f"{self!r}: the name of a mark is a text")


@dataclass(frozen=True, slots=True, repr=False)
class Operation(_Shown):
    """The rank's n-th operation; with a name (`all_reduce`, `send`, ...) or a group, its n-th of that kind.

    group: the global ranks of the group, in its order.
    """

    n: int = 1
    name: str | None = None
    group: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        _require_count(self)
        if self.name is not None and self.name not in OPERATION_NAMES:
            raise KitError(f"{self!r}: no operation {self.name!r}", f"there are {', '.join(OPERATION_NAMES)}")
        if self.group is not None:
            try:
                object.__setattr__(self, "group", tuple(self.group))
            except TypeError:
                raise KitError(f"{self!r}: a group is a tuple of global ranks") from None


@dataclass(frozen=True, slots=True, repr=False)
class FilesystemEvent(_Shown):
    """The moment before the rank's n-th change of the file system; with a kind, its n-th of that kind.

    kind: "open" (for writing), "write" (to a regular file, as Python hands it to the system), "fsync", "rename" (also
    os.replace), "remove" (files and directories), "mkdir", "truncate" or "link".
    """

    n: int = 1
    kind: str | None = None

    def __post_init__(self) -> None:
        _require_count(self)
        if self.kind is not None and self.kind not in FILESYSTEM_KINDS:
            raise KitError(f"{self!r}: no kind {self.kind!r}", f"there are {', '.join(FILESYSTEM_KINDS)}")


Place: TypeAlias = Step | Operation | FilesystemEvent


# -- faults ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Kill(_Shown):
    """SIGKILL of the rank: right after a mark, or when it has issued an operation and before that takes part.

    At a filesystem event it strikes before the event takes place. torn (there only): what the rank wrote to files and
    did not fsync is lost in part, as when the machine loses power: each such file is cut to half of its length.
    """

    rank: int
    at: Place
    torn: bool = False

    def __post_init__(self) -> None:
        _require_rank(self)
        _require_place(self, Step, Operation, FilesystemEvent)
        if type(self.torn) is not bool or (self.torn and not isinstance(self.at, FilesystemEvent)):
            raise KitError(f"{self!r}: torn is True or False, and belongs to a kill at a FilesystemEvent")


@dataclass(frozen=True, slots=True, repr=False)
class Delay(_Shown):
    """The rank stands still for `seconds` of virtual time: after a mark, or before an operation or filesystem event.

    In the record it is a compute of the kind "delay".
    """

    rank: int
    at: Place
    seconds: float

    def __post_init__(self) -> None:
        _require_rank(self)
        _require_place(self, Step, Operation, FilesystemEvent)
        _require_number(self, "seconds", 0.0)


@dataclass(frozen=True, slots=True, repr=False)
class Drop(_Shown):
    """What the rank's operation sends (a message, its part of a collective) never arrives.

    So the operation never completes for anybody; a wait with a timeout raises, and the program may try again.
    A recv sends nothing and cannot be dropped: drop its send.
    """

    rank: int
    at: Operation

    def __post_init__(self) -> None:
        _require_rank(self)
        _require_place(self, Operation)
        if self.at.name == "recv":
            raise KitError(f"{self!r}: a recv sends nothing", "drop the send that it waits for")


@dataclass(frozen=True, slots=True, repr=False)
class Straggler(_Shown):
    """Every compute of the rank costs `factor` times as much virtual time, and every operation is issued
    `operation_delay_s` of virtual time later (a compute of the kind "delay")."""

    rank: int
    factor: float = 1.0
    operation_delay_s: float = 0.0

    def __post_init__(self) -> None:
        _require_rank(self)
        _require_number(self, "factor", 1.0)
        _require_number(self, "operation_delay_s", 0.0)
        if self.factor == 1 and not self.operation_delay_s:
            raise KitError(f"{self!r} is no slower than any other rank", "give a factor above 1 or operation_delay_s")


Fault: TypeAlias = Kill | Delay | Drop | Straggler


def checked(faults: Iterable[Any], world_size: int, transport: str) -> tuple[Fault, ...]:
    """These faults, if a world of that size on that transport can have them; raises KitError."""
    found = tuple(faults)
    for fault in found:
        if not isinstance(fault, (Kill, Delay, Drop, Straggler)):
            raise KitError(f"{fault!r} is no fault", "there are Kill, Delay, Drop and Straggler of kit.world.faults")
        if fault.rank >= world_size:
            raise KitError(f"{fault!r}: a world of {world_size} ranks has no rank {fault.rank}")
    if found and transport != "switchboard":
        raise KitError(f"faults strike on the switchboard, not on {transport}", 'use transport="switchboard"')
    return found


def _require_rank(fault: Kill | Delay | Drop | Straggler) -> None:
    if type(fault.rank) is not int or fault.rank < 0:
        raise KitError(f"{fault!r}: a rank is a whole number from 0 on")


def _require_count(place: Place) -> None:
    if type(place.n) is not int or place.n < 1:
        raise KitError(f"{place!r}: places are counted by whole numbers from 1 on")


def _require_place(fault: Kill | Delay | Drop, *kinds: type) -> None:
    if not isinstance(fault.at, kinds):
        raise KitError(f"{fault!r}: at is one of {', '.join(kind.__name__ for kind in kinds)} of kit.world.faults")


def _require_number(fault: Delay | Straggler, name: str, least: float) -> None:
    value = getattr(fault, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (math.isfinite(value) and value >= least):
        raise KitError(f"{fault!r}: {name} is a number from {least:g} on")
    if value > 1e12:
        raise KitError(f"{fault!r}: {name} is at most 1e12")
