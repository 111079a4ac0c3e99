"""A timeline in the trace event format of Chrome, which ui.perfetto.dev opens.

Source: "Trace Event Format" (Google, the document that chrome://tracing links to), sections on complete, instant, flow
and metadata events. A rank is a process and a lane a thread; operations that are in flight together have threads of
their own, since the events of one thread must nest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kit.world.picture import rows
from kit.world.timeline import LANES, Span, Timeline

Event = dict[str, Any]
_BEGIN, _STEP, _END = "s", "t", "f"


def chrome_trace(timeline: Timeline) -> dict[str, Any]:
    """The trace as plain data. Times are in microseconds, of whole nanoseconds, from the start of the run.

    Flows tie a send to its receive, and the members of a collective in the order in which they come to it.
    """
    placed = [one for rank in range(timeline.world_size) for one in _placed(timeline, rank)]
    events = [
        *_names(timeline, placed),
        *(_complete(one) for one in placed),
        *_flows(placed),
        *(
            {"ph": "i", "s": "p", "pid": mark.rank, "tid": 1, "ts": _us(_ns(mark.at_s)), "cat": "mark",
             "name": mark.name}
            for mark in timeline.marks
        ),
    ]  # fmt: skip
    about = {"profile": timeline.profile, "world_size": timeline.world_size, "makespan_s": timeline.makespan_s}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}


def chrome_text(timeline: Timeline) -> str:
    """The same as JSON, one event a line: equal timelines give equal bytes."""
    trace = chrome_trace(timeline)
    events = ",\n".join(json.dumps(event, sort_keys=True, separators=(",", ":")) for event in trace["traceEvents"])
    rest = json.dumps({key: trace[key] for key in trace if key != "traceEvents"}, sort_keys=True)
    return f'{rest[:-1]}, "traceEvents": [\n{events}\n]}}\n'


@dataclass(frozen=True, slots=True)
class _Placed:
    """A span with its thread and its edges in nanoseconds."""

    span: Span
    thread: int
    thread_name: str
    start_ns: int
    end_ns: int


def _placed(timeline: Timeline, rank: int) -> Iterator[_Placed]:
    """Every span of a rank; threads are counted from 1, since 0 is the idle one in some viewers."""
    first_thread = 1
    for lane in LANES:
        spans = sorted(timeline.of(rank, lane), key=lambda span: (_ns(span.start_s), _ns(span.end_s)))
        edges = [(_ns(span.start_s), _ns(span.end_s)) for span in spans]
        places = rows(edges)
        for span, (start, end), row in zip(spans, edges, places, strict=True):
            name = f"{lane} {row + 1}" if row else lane
            yield _Placed(span, first_thread + row, name, start, end)
        first_thread += max(places, default=0) + 1


def _names(timeline: Timeline, placed: Sequence[_Placed]) -> Iterator[Event]:
    """What processes and threads are called, and in which order they stand."""
    threads = sorted({(one.span.rank, one.thread, one.thread_name) for one in placed})
    for rank in range(timeline.world_size):
        head = {"ph": "M", "pid": rank, "tid": 0, "ts": 0}
        yield {**head, "name": "process_name", "args": {"name": f"rank {rank}"}}
        yield {**head, "name": "process_sort_index", "args": {"sort_index": rank}}
    for rank, thread, name in threads:
        head = {"ph": "M", "pid": rank, "tid": thread, "ts": 0}
        yield {**head, "name": "thread_name", "args": {"name": name}}
        yield {**head, "name": "thread_sort_index", "args": {"sort_index": thread}}


def _complete(one: _Placed) -> Event:
    span = one.span
    facts = {"label": span.label, "microbatch": span.microbatch, "bytes": span.nbytes, "site": span.site,
             "operation": span.operation}  # fmt: skip
    # 0 is a microbatch and an operation; no label and no bytes are nothing to tell.
    args = {name: value for name, value in facts.items() if value is not None and (value or name in _ZERO_COUNTS)}
    name = span.what if span.microbatch is None else f"{span.what} {span.microbatch}"
    return {
        "ph": "X", "pid": span.rank, "tid": one.thread, "ts": _us(one.start_ns), "dur": _us(one.end_ns - one.start_ns),
        "cat": span.lane, "name": name, "args": args,
    }  # fmt: skip


_ZERO_COUNTS = ("microbatch", "operation")


def _flows(placed: Sequence[_Placed]) -> Iterator[Event]:
    """Arrows between operations that were matched; an arrow stands inside the events that it ties together."""
    meetings: dict[tuple[int, int], list[_Placed]] = {}
    for one in placed:
        if one.span.lane == "communication" and one.span.meeting is not None:
            meetings.setdefault(one.span.meeting, []).append(one)
    matched = [met for _, met in sorted(meetings.items()) if len(met) > 1]
    for number, met in enumerate(matched, 1):
        # Of a message the send comes first, though its receive may have waited for it.
        met.sort(key=lambda one: (one.span.what == "recv", one.start_ns, one.span.rank))
        latest = 0
        for place, one in enumerate(met):
            latest = max(latest, one.start_ns)
            phase = _BEGIN if place == 0 else _END if one is met[-1] else _STEP
            flow = {"ph": phase, "id": number, "pid": one.span.rank, "tid": one.thread, "ts": _us(latest),
                    "cat": "meeting", "name": met[0].span.what}  # fmt: skip
            yield {**flow, "bp": "e"} if phase != _BEGIN else flow


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _us(nanoseconds: int) -> float:
    """Three decimals at most, so that the shortest text of the number is the same everywhere."""
    return nanoseconds / 1000
