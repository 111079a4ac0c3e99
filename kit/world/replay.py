"""The record of a run priced under a hardware profile: one event loop in virtual time.

Nothing runs here. A rank's log is gone through in its own order; an operation starts when all its members have issued
it, the group's earlier collective is over and its ports are free. Ports (one out, one in, for each tier of each rank)
are shared by all groups and serve in the order in which operations become ready; ties go to the lower (rank, order).
The costs are those of rings: Patarasuk and Yuan, JPDC 69(2), 2009; Hockney's latency + bytes / bandwidth for a message.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kit.hardware import Profile
from kit.world.timeline import Mark, Span, Timeline
from kit.world.trace import Event, Operation, Trace

POLL_S = 1e-6  # what asking `is_completed()` costs
_TURN, _READY = 0, 1  # what comes first at one moment: ranks go on, then ports are given
_POINT_TO_POINT = ("send", "recv")
# ("clock", rank, 0): the rank has come to the end of its log; ("issued" or "done", rank, order of an operation);
# ("stored", rank, index in its log): its request to the store was answered.
Moment: TypeAlias = tuple[str, int, int]


def replay(trace: Trace, profile: Profile) -> Timeline:
    """When each rank did what, had the run's ranks and links been those of `profile`.

    The same trace and profile give the same floats, to the last bit. Operations that nothing ever matched take no
    part, and a log that ends early simply ends.
    """
    operations: list[list[Operation]] = [[] for _ in range(trace.num_ranks)]
    for op in trace.operations():
        operations[op.rank].append(op)
    logs = [trace.events(rank) for rank in range(trace.num_ranks)]
    pictures = _Pictures(trace.num_ranks)
    loop = EventLoop(profile, logs, lambda rank, order: operations[rank][order], pictures)
    while loop.next_s < math.inf:
        loop.step()
        loop.news.clear()
    return pictures.timeline(profile.name, loop.clocks)


@dataclass(slots=True, eq=False)
class _Meeting:
    """Operations that were matched with one another, as far as they have been issued."""

    calls: list[Operation] = field(default_factory=list)
    ready_s: float = 0.0


@dataclass(slots=True, eq=False)
class _Group:
    """Collectives of one group run one after the other."""

    free_s: float = 0.0
    is_taken: bool = False
    queue: deque[tuple[int, int]] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class _Links:
    """The ports that an operation occupies, and what its slowest link does."""

    ports: tuple[int, ...]
    latency_s: float
    bytes_per_s: float


class EventLoop:
    """A replay that can stop where the logs end, and go on when they have grown.

    news: moments that have come; whoever reads them clears them.
    operation: the record of a rank's operation as it stands now; `meeting` may still be None, and is asked for again.
    pictures: takes spans and marks, where somebody wants them.
    """

    def __init__(
        self,
        profile: Profile,
        logs: Sequence[Sequence[Event]],
        operation: Callable[[int, int], Operation],
        pictures: _Pictures | None = None,
    ) -> None:
        self.clocks = [0.0] * len(logs)
        self.news: list[Moment] = []
        self._profile = profile
        self._logs = logs
        self._operation = operation
        self._pictures = pictures
        self._at = [0] * len(logs)
        self._resting = set(range(len(logs)))
        self._heap: list[tuple[float, int, int, int]] = []
        self._unmet: dict[tuple[int, int], float] = {}
        self._meetings: dict[tuple[int, int], _Meeting] = {}
        self._groups: dict[str, _Group] = {}
        self._done: list[dict[int, float]] = [{} for _ in logs]
        self._stands_for: dict[tuple[int, int], None] = {}
        self._stored: dict[tuple[int, int], float] = {}
        self._stand_for_key: dict[tuple[int, int], list[int]] = {}
        self._port_free_s = [0.0] * (4 * len(logs))
        self._links: dict[tuple[int, ...], _Links] = {}
        self._flops: dict[str, float] = {}
        self._labels: dict[tuple[int, ...], str] = {}
        self.resume()

    @property
    def next_s(self) -> float:
        """When the next thing happens; infinity when every log has come to its end."""
        return self._heap[0][0] if self._heap else math.inf

    def resume(self) -> None:
        """The logs have grown, or operations have been matched."""
        for rank in sorted(self._resting):
            if self._at[rank] < len(self._logs[rank]):
                self._resting.remove(rank)
                self._push_turn(rank, self.clocks[rank])
        for (rank, order), issued_s in sorted(self._unmet.items()):
            self._meet(self._operation(rank, order), issued_s)

    def moment_s(self, moment: Moment) -> float | None:
        """When that was, or None as long as it has not come."""
        what, rank, order = moment
        if what == "clock":
            return self.clocks[rank] if rank in self._resting else None
        if what == "done":
            return self._done[rank].get(order)
        if what == "stored":
            return self._stored.get((rank, order))
        return self._unmet.get((rank, order))

    def step(self) -> None:
        """Let the earliest thing happen."""
        now, phase, rank, number = heapq.heappop(self._heap)
        if phase == _TURN:
            self._turn(rank)
        else:
            self._start((rank, number), now)

    # -- ranks ----------------------------------------------------------------------------------------------

    def _push_turn(self, rank: int, at_s: float) -> None:
        heapq.heappush(self._heap, (at_s, _TURN, rank, self._at[rank]))

    def _turn(self, rank: int) -> None:
        """Go through the log until the clock moves, the rank has to stand, or nothing is left."""
        log, before = self._logs[rank], self.clocks[rank]
        while self._at[rank] < len(log):
            if self.clocks[rank] > before:
                self._push_turn(rank, self.clocks[rank])
                return
            if not self._take(rank, log[self._at[rank]]):
                return
            self._at[rank] += 1
        self._resting.add(rank)
        self.news.append(("clock", rank, 0))

    def _take(self, rank: int, event: Event) -> bool:
        """Let one event happen; False where the rank stands until something else has happened."""
        now, kind = self.clocks[rank], event.kind
        if kind == "issue":
            op = self._operation(rank, event.operation)
            self._unmet[rank, op.order] = now
            self.news.append(("issued", rank, op.order))
            self._meet(op, now)
        elif kind == "wait":
            return self._wait(rank, event)
        elif kind == "poll":
            self.clocks[rank] = now + POLL_S
        elif kind == "compute":
            self.clocks[rank] = now + self._compute_s(event)
            self._show(Span(rank, "compute", now, self.clocks[rank], event.what, event.label, event.microbatch,
                            site=event.site))  # fmt: skip
        elif kind == "mark":
            if self._pictures is not None:
                self._pictures.marks[rank].append(Mark(rank, now, event.what))
        elif kind == "store":
            return self._store(rank, event)
        elif kind == "timeout":
            self._stand(rank, now + event.seconds, self._operation(rank, event.operation))
        return True

    def _compute_s(self, event: Event) -> float:
        if not event.flops:
            return event.seconds
        if event.dtype not in self._flops:
            self._flops[event.dtype] = self._profile.flops(event.dtype or "float32")
        return event.seconds + event.flops / self._flops[event.dtype]

    def _wait(self, rank: int, event: Event) -> bool:
        order = event.operation
        op = self._operation(rank, order)
        if (rank, order) in self._unmet:  # matched since it was issued, or refused as not defined
            issued_s = self._unmet[rank, order]
            if not self._meet(op, issued_s):
                del self._unmet[rank, order]
                self._done[rank][order] = issued_s
        done_s = self._done[rank].get(order)
        if done_s is None:
            self._stands_for[rank, order] = None
            return False
        self._stand(rank, done_s, op)
        return True

    def _stand(self, rank: int, until_s: float, op: Operation) -> None:
        now = self.clocks[rank]
        if until_s > now:
            self.clocks[rank] = until_s
            self._show(Span(rank, "wait", now, until_s, op.name, label=self._label(op),
                            operation=op.order, nbytes=op.nbytes, site=op.site))  # fmt: skip

    def _store(self, rank: int, event: Event) -> bool:
        now = self.clocks[rank]
        until_s = now + event.seconds
        for position in event.after:
            if position not in self._stored:
                self._stand_for_key.setdefault(position, []).append(rank)
                return False
            until_s = max(until_s, self._stored[position])
        if until_s > now:
            self.clocks[rank] = until_s
            self._show(Span(rank, "wait", now, until_s, event.what, site=event.site))
        here = (rank, self._at[rank])
        self._stored[here] = until_s
        self.news.append(("stored", *here))
        for other in self._stand_for_key.pop(here, ()):
            self._push_turn(other, max(self.clocks[other], until_s))
        return True

    # -- operations -----------------------------------------------------------------------------------------

    def _meet(self, op: Operation, issued_s: float) -> bool:
        """Join the operations that this one was matched with, if it was."""
        key = op.meeting
        if key is None:
            return False
        del self._unmet[op.rank, op.order]
        meeting = self._meetings.setdefault(key, _Meeting())
        meeting.calls.append(op)
        meeting.ready_s = max(meeting.ready_s, issued_s)
        if len(meeting.calls) < (2 if op.name in _POINT_TO_POINT else len(op.group)):
            return True
        if op.name in _POINT_TO_POINT:
            heapq.heappush(self._heap, (meeting.ready_s, _READY, *key))
            return True
        group = self._groups.setdefault(op.group_name, _Group())
        group.queue.append(key)
        self._call_next(group)
        return True

    def _call_next(self, group: _Group) -> None:
        if group.queue and not group.is_taken:
            group.is_taken = True
            key = group.queue.popleft()
            heapq.heappush(self._heap, (max(self._meetings[key].ready_s, group.free_s), _READY, *key))

    def _start(self, key: tuple[int, int], ready_s: float) -> None:
        """Give the operation its ports, from when all of them are free to its end."""
        calls = self._meetings.pop(key).calls
        first = calls[0]
        links = self._message_links(calls) if first.name in _POINT_TO_POINT else self._ring_links(first.group)
        start_s = ready_s
        for port in links.ports:
            start_s = max(start_s, self._port_free_s[port])
        end_s = start_s + _duration_s(calls, links)
        for port in links.ports:
            self._port_free_s[port] = end_s
        if first.name not in _POINT_TO_POINT:
            group = self._groups[first.group_name]
            group.free_s, group.is_taken = end_s, False
            self._call_next(group)
        for op in calls:
            self._done[op.rank][op.order] = end_s
            self.news.append(("done", op.rank, op.order))
            self._show(Span(op.rank, "communication", start_s, end_s, op.name,
                            label=self._label(op), operation=op.order, nbytes=op.nbytes,
                            site=op.site, meeting=key))  # fmt: skip
            if (op.rank, op.order) in self._stands_for:
                del self._stands_for[op.rank, op.order]
                self._push_turn(op.rank, max(self.clocks[op.rank], end_s))

    def _message_links(self, calls: Iterable[Operation]) -> _Links:
        ends = {op.name: op.rank for op in calls}
        source, target = ends["send"], ends["recv"]
        tier = self._profile.tier(source, target)
        ports = (self._port(source, target, outward=True), self._port(target, source, outward=False))
        return _Links(ports, tier.latency_s, tier.bytes_per_s)

    def _ring_links(self, group: tuple[int, ...]) -> _Links:
        if group not in self._links:
            ports: list[int] = []
            tiers = []
            for rank, neighbour in zip(group, (*group[1:], group[0]), strict=True) if len(group) > 1 else ():
                ports += self._port(rank, neighbour, outward=True), self._port(neighbour, rank, outward=False)
                tiers.append(self._profile.tier(rank, neighbour))
            self._links[group] = _Links(
                tuple(ports),
                max((tier.latency_s for tier in tiers), default=0.0),
                min((tier.bytes_per_s for tier in tiers), default=math.inf),
            )
        return self._links[group]

    def _port(self, rank: int, other: int, *, outward: bool) -> int:
        is_inside = self._profile.node(rank) == self._profile.node(other)
        return 4 * rank + 2 * is_inside + outward

    def _label(self, op: Operation) -> str:
        """Whom an operation meets, as a picture says it."""
        if op.name in _POINT_TO_POINT:
            return f"{'to' if op.name == 'send' else 'from'} rank {op.peer}" if op.peer is not None else ""
        if op.group not in self._labels:
            is_world = op.group == tuple(range(len(self._logs)))
            self._labels[op.group] = "WORLD" if is_world else f"ranks {list(op.group)}"
        return self._labels[op.group]

    def _show(self, span: Span) -> None:
        if self._pictures is not None:
            self._pictures.spans[span.rank][span.lane].append(span)


def _duration_s(calls: Sequence[Operation], links: _Links) -> float:
    """Seconds on the wire. n ranks, S bytes of the full buffer, latency a and bandwidth B of the slowest link."""
    first, n = calls[0], len(calls)
    latency_s, bytes_per_s = links.latency_s, links.bytes_per_s
    if first.name in _POINT_TO_POINT:
        return latency_s + first.nbytes / bytes_per_s
    if n == 1:
        return 0.0
    if first.name in ("barrier", "monitored_barrier"):
        return (n - 1).bit_length() * latency_s
    if first.name == "all_reduce":
        return 2 * (n - 1) * latency_s + max(op.sent_bytes for op in calls) / bytes_per_s
    if first.name in ("broadcast", "reduce"):
        return (n - 1) * latency_s + max(op.nbytes for op in calls) / bytes_per_s
    if first.name in ("gather", "scatter"):  # all of it passes the root's port
        return (n - 1) * latency_s + sum(op.sent_bytes for op in calls) / bytes_per_s
    return (n - 1) * latency_s + max(op.sent_bytes for op in calls) / bytes_per_s


class _Pictures:
    """Spans and marks as they come."""

    def __init__(self, num_ranks: int) -> None:
        self.spans: list[dict[str, list[Span]]] = [
            {"compute": [], "wait": [], "communication": []} for _ in range(num_ranks)
        ]
        self.marks: list[list[Mark]] = [[] for _ in range(num_ranks)]

    def timeline(self, profile: str, ends_s: Sequence[float]) -> Timeline:
        spans: list[Span] = []
        for lanes in self.spans:  # compute and wait come by start already
            lanes["communication"].sort(key=lambda span: (span.start_s, span.operation))
            for lane in lanes.values():
                spans += lane
        marks = tuple(mark for of_rank in self.marks for mark in of_rank)
        return Timeline(profile, len(ends_s), tuple(spans), marks, tuple(ends_s))
