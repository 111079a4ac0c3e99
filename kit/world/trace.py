"""The record of what ranks said to each other, as the deciding process saw it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """One collective or point-to-point operation of one rank.

    numel, nbytes: the full buffer (S of the cost formulas): the tensor of an all_reduce, broadcast, reduce, send or
    recv; the gathered tensor of an all_gather or gather; the whole input of a reduce_scatter, scatter or all_to_all.
    sent_bytes: what this rank puts on the wire under the algorithm that `kit.world.costs` names.
    site and async_op are what the rank said; everything else was seen from outside.
    order counts this rank's operations from 0; completed_order counts its completed waits, None where the operation
    was never waited for.
    meeting: the same for all operations that were matched with one another: (rank, order) of the group's first rank's
    operation, or of the send; None where nothing ever matched it.
    group_name: two groups of the same ranks are two groups; this tells them apart.
    """

    rank: int
    name: str
    group: tuple[int, ...]
    peer: int | None
    root: int | None
    reduce_op: str | None
    dtype: str | None
    shape: tuple[int, ...]
    numel: int
    nbytes: int
    sent_bytes: int
    site: str
    async_op: bool
    waited: bool
    order: int
    completed_order: int | None
    meeting: tuple[int, int] | None = None
    group_name: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a rank's log, in the rank's own order.

    kind: "issue", "wait" (its return), "poll" or "timeout" (a wait that gave up) of an operation; "compute", declared
    or counted; "store", a request to the store, when it was answered or given up; "mark", a named moment.
    operation: the order of the operation (issue, wait, poll, timeout).
    seconds, flops: what a compute costs; a hardware profile turns flops into seconds, at the peak of `dtype` ("" is
    float32). Of a timeout, and of a store request that was given up, how long it waited.
    what: F (forward), B (whole backward), I (input gradient), W (weight gradient) or another word of a compute; the
    name of a mark; the request to the store.
    after: positions (rank, index in its log) of the events that this one had to wait for (a key of the store was set).
    """

    kind: str
    operation: int = -1
    seconds: float = 0.0
    flops: int = 0
    dtype: str = ""
    what: str = ""
    label: str = ""
    microbatch: int | None = None
    after: tuple[tuple[int, int], ...] = ()
    site: str = ""


class Trace:
    """All operations of a run. Empty under a transport that is not seen (gloo)."""

    def __init__(self, operations: Iterable[Operation] = (), events: Iterable[Iterable[Event]] = ()) -> None:
        self._operations = tuple(operations)
        self._events = tuple(tuple(log) for log in events)

    def operations(self, rank: int | None = None, name: str | None = None) -> list[Operation]:
        """Operations in the order of issue (by rank, then order), of one rank and one name if given."""
        return [
            op for op in self._operations if (rank is None or op.rank == rank) and (name is None or op.name == name)
        ]

    def events(self, rank: int) -> tuple[Event, ...]:
        """The rank's issues and waits, in its own order."""
        return self._events[rank] if rank < len(self._events) else ()

    @property
    def num_ranks(self) -> int:
        """How many ranks kept a log; 0 under a transport that is not seen."""
        return len(self._events)

    def count(self, rank: int, name: str | None = None) -> int:
        """How many operations (of that name) the rank issued."""
        return len(self.operations(rank, name))

    def sent_bytes(self, rank: int, name: str | None = None) -> int:
        """Bytes that the rank put on the wire, over all groups."""
        return sum(op.sent_bytes for op in self.operations(rank, name))

    def __len__(self) -> int:
        return len(self._operations)
