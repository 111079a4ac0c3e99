"""When each rank did what, in virtual time: what a replay of the record under a hardware profile gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from kit.errors import KitError

LANES = ("compute", "wait", "communication")


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of one rank's virtual time, in seconds from the start of the run.

    lane: "compute" (declared or counted work), "wait" (the program stands in a wait; only stretches longer than 0) or
    "communication" (an operation is on the wire).
    what: F, B, I, W or another word of a compute; the operation's name otherwise.
    label: the layer of a compute; the group or peer of an operation.
    operation: the order of the rank's operation, None for a compute.
    meeting: `Operation.meeting` of a communication, by which a picture ties a send to its receive.
    """

    rank: int
    lane: str
    start_s: float
    end_s: float
    what: str
    label: str = ""
    microbatch: int | None = None
    operation: int | None = None
    nbytes: int = 0
    site: str = ""
    meeting: tuple[int, int] | None = None

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Mark:
    """A named moment of one rank."""

    rank: int
    at_s: float
    name: str


@dataclass(frozen=True)
class Timeline:
    """All spans of a run, by rank, lane and start. ends_s[r]: when rank r was done."""

    profile: str
    world_size: int
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]
    ends_s: tuple[float, ...]
    start_s: float = 0.0

    @property
    def makespan_s(self) -> float:
        """Seconds from the start to the last rank's end."""
        return max(self.ends_s, default=self.start_s) - self.start_s

    @cached_property
    def _by_rank(self) -> tuple[dict[str, list[Span]], ...]:
        found: tuple[dict[str, list[Span]], ...] = tuple({lane: [] for lane in LANES} for _ in range(self.world_size))
        for span in self.spans:
            found[span.rank][span.lane].append(span)
        return found

    def of(self, rank: int, lane: str) -> list[Span]:
        """The spans of one rank and lane, by start."""
        return list(self._by_rank[rank][lane])

    def busy_s(self, rank: int) -> float:
        """Seconds of computing."""
        return sum(span.duration_s for span in self._by_rank[rank]["compute"])

    def idle_s(self, rank: int) -> float:
        """Seconds of the makespan in which the rank does not compute."""
        return self.makespan_s - self.busy_s(rank)

    def bubble_fraction(self, rank: int) -> float:
        """idle / makespan (papers that print (p-1)/m mean idle / ideal)."""
        return self.idle_s(rank) / self.makespan_s if self.makespan_s > 0 else 0.0

    def communication_s(self, rank: int) -> float:
        """Seconds in which at least one of the rank's operations is on the wire."""
        return _union_s(self._by_rank[rank]["communication"])

    def exposed_s(self, rank: int) -> float:
        """Exposed communication: seconds in which an operation of the rank is on the wire and the rank stands still."""
        waits = [(span.start_s, span.end_s) for span in self._by_rank[rank]["wait"]]
        wire = _merged(self._by_rank[rank]["communication"])
        total, at = 0.0, 0
        for start, end in waits:  # both come by start, and neither overlaps itself
            while at < len(wire) and wire[at][1] <= start:
                at += 1
            here = at
            while here < len(wire) and wire[here][0] < end:
                total += min(end, wire[here][1]) - max(start, wire[here][0])
                here += 1
        return total

    def in_flight(self, rank: int, *, per_label: bool = False) -> int:
        """The most microbatches at once of which more forwards have begun than backwards (B, or I) have ended.

        A stage of several layers may declare each of them: a microbatch counts once. With per_label, it counts once
        for each label (a chunk of the model, a layer), which is what activations are held for.
        """
        steps: list[tuple[float, int, tuple[str, int]]] = []
        for span in self._by_rank[rank]["compute"]:
            if span.microbatch is not None and span.what in ("F", "B", "I"):
                key = (span.label if per_label else "", span.microbatch)
                steps.append((span.start_s, 1, key) if span.what == "F" else (span.end_s, -1, key))
        most = 0
        open_: dict[tuple[str, int], int] = {}
        for _, change, key in sorted(steps):  # at one moment, what ends goes first
            open_[key] = open_.get(key, 0) + change
            if open_[key] <= 0:
                del open_[key]
            most = max(most, len(open_))
        return most

    def between(self, begin: str, end: str | None = None) -> Timeline:
        """The part from the earliest mark `begin` to the latest mark `end` (or the end of the run), times kept.

        Spans that reach over an edge are cut there. Raises KitError where no rank has that mark.
        """
        start = min(self._moments(begin))
        stop = max(self._moments(end)) if end is not None else max(self.ends_s, default=start)
        spans = tuple(
            replace(span, start_s=max(span.start_s, start), end_s=min(span.end_s, stop))
            for span in self.spans
            if span.start_s < stop and span.end_s > start
        )
        marks = tuple(mark for mark in self.marks if start <= mark.at_s <= stop)
        return Timeline(self.profile, self.world_size, spans, marks, tuple(min(e, stop) for e in self.ends_s), start)

    def _moments(self, name: str) -> list[float]:
        found = [mark.at_s for mark in self.marks if mark.name == name]
        if not found:
            known = ", ".join(sorted({mark.name for mark in self.marks})) or "none"
            raise KitError(f"no rank has the mark {name!r}; marks of this run: {known}")
        return found


def _merged(spans: list[Span]) -> list[tuple[float, float]]:
    """Disjoint stretches that cover what the spans cover."""
    merged: list[tuple[float, float]] = []
    for span in sorted(spans, key=lambda s: (s.start_s, s.end_s)):
        if merged and span.start_s <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], span.end_s))
        elif span.duration_s > 0:
            merged.append((span.start_s, span.end_s))
    return merged


def _union_s(spans: list[Span]) -> float:
    return sum(end - start for start, end in _merged(spans))
