"""Timelines made by hand, for the tests of what draws them."""

from __future__ import annotations

from collections.abc import Iterable

from kit.world.timeline import LANES, Mark, Span, Timeline

Slot = tuple[str, int]


def timeline_of(
    spans: Iterable[Span], world_size: int, *, profile: str = "ideal", marks: Iterable[Mark] = ()
) -> Timeline:
    ordered = sorted(spans, key=lambda span: (span.rank, LANES.index(span.lane), span.start_s))
    ends = tuple(max((s.end_s for s in ordered if s.rank == rank), default=0.0) for rank in range(world_size))
    return Timeline(profile, world_size, tuple(ordered), tuple(marks), ends)


def pipeline(orders: list[list[Slot]], *, transfer_s: float = 0.0) -> Timeline:
    """Stages that go through their slots ("F" of 1 s, "B" of 2 s, each with its microbatch) as soon as they can."""
    cost_s = {"F": 1.0, "B": 2.0}
    done: dict[tuple[str, int, int], float] = {}
    now, at = [0.0] * len(orders), [0] * len(orders)
    spans: list[Span] = []
    while any(position < len(order) for position, order in zip(at, orders, strict=True)):
        for rank, order in enumerate(orders):
            if at[rank] == len(order):
                continue
            what, microbatch = order[at[rank]]
            source = rank - 1 if what == "F" else rank + 1
            ready = now[rank]
            if 0 <= source < len(orders):
                if (what, microbatch, source) not in done:
                    continue
                sent = done[what, microbatch, source]
                ready = max(ready, sent + transfer_s)
                meeting = (source, 2 * microbatch + (what == "B"))
                for end, name, peer in ((source, "send", rank), (rank, "recv", source)):
                    spans.append(
                        Span(end, "communication", sent, sent + transfer_s, name, f"rank {peer}", nbytes=4096,
                             operation=len(spans), meeting=meeting)
                    )  # fmt: skip
                if ready > now[rank]:
                    spans.append(Span(rank, "wait", now[rank], ready, "recv", f"rank {source}"))
            now[rank] = done[what, microbatch, rank] = ready + cost_s[what]
            spans.append(Span(rank, "compute", ready, now[rank], what, f"stage {rank}", microbatch, site="mine.py:7"))
            at[rank] += 1
    return timeline_of(spans, len(orders))


def gpipe(num_stages: int, num_microbatches: int, *, transfer_s: float = 0.0) -> Timeline:
    numbers = range(num_microbatches)
    order = [*(("F", number) for number in numbers), *(("B", number) for number in numbers)]
    return pipeline([order] * num_stages, transfer_s=transfer_s)


def one_f_one_b(num_stages: int, num_microbatches: int) -> Timeline:
    orders = []
    for rank in range(num_stages):
        warmup = min(num_stages - 1 - rank, num_microbatches)
        order: list[Slot] = [("F", number) for number in range(warmup)]
        for number in range(num_microbatches - warmup):
            order += [("F", warmup + number), ("B", number)]
        order += [("B", number) for number in range(num_microbatches - warmup, num_microbatches)]
        orders.append(order)
    return pipeline(orders)


def data_parallel(num_ranks: int = 2) -> Timeline:
    """A forward, three layers of backward and an all_reduce after each, two of which are on the wire together."""
    spans = []
    for rank in range(num_ranks):
        spans.append(Span(rank, "compute", 0.0, 0.01, "F", "model"))
        for layer in range(3):
            start = 0.01 + 0.01 * layer
            spans.append(Span(rank, "compute", start, start + 0.01, "B", f"layer {2 - layer}"))
            spans.append(
                Span(rank, "communication", start + 0.01, start + 0.025, "all_reduce", "WORLD", operation=layer,
                     nbytes=1 << 20, meeting=(0, layer))
            )  # fmt: skip
        spans.append(Span(rank, "wait", 0.04, 0.055, "all_reduce", "WORLD", operation=2))
        spans.append(Span(rank, "compute", 0.055, 0.06, "optimizer"))
    marks = [Mark(rank, 0.01, "backward") for rank in range(num_ranks)]
    return timeline_of(spans, num_ranks, profile="slow", marks=marks)
