"""What a timeline says of its spans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.errors import KitError
from kit.world.timeline import Mark, Span, Timeline


def timeline(*spans, ends=(10.0, 10.0), marks=()):
    return Timeline("unit", len(ends), tuple(spans), tuple(marks), tuple(ends))


def compute(start, end, what="F", microbatch=None, label="", rank=0):
    return Span(rank, "compute", start, end, what, label, microbatch)


def wait(start, end, rank=0):
    return Span(rank, "wait", start, end, "all_reduce")


def wire(start, end, rank=0):
    return Span(rank, "communication", start, end, "all_reduce")


def test_busy_idle_and_bubble():
    found = timeline(compute(0, 2), compute(3, 4), compute(0, 9, rank=1), ends=(4.0, 10.0))
    assert found.makespan_s == 10
    assert (found.busy_s(0), found.idle_s(0), found.bubble_fraction(0)) == (3, 7, 0.7)
    assert found.bubble_fraction(1) == 0.1
    assert timeline(ends=(0.0,)).bubble_fraction(0) == 0


def test_communication_counts_a_moment_once():
    found = timeline(wire(0, 4), wire(2, 5), wire(7, 8), wire(8, 8))
    assert found.communication_s(0) == 6
    assert found.communication_s(1) == 0


def test_exposed_is_where_the_rank_stands_and_the_wire_is_busy():
    found = timeline(wire(0, 4), wire(2, 5), wire(7, 8), wait(1, 3), wait(4, 7.5), compute(0, 1))
    assert found.exposed_s(0) == 2 + 1 + 0.5


moments = st.lists(st.integers(0, 30), min_size=2, max_size=12, unique=True).map(sorted)


@given(moments, st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=8))
def test_exposed_is_what_counting_moment_by_moment_gives(edges, wires):
    waits = [wait(a, b) for a, b in zip(edges[::2], edges[1::2], strict=False)]
    spans = sorted((wire(start, start + length) for start, length in wires), key=lambda span: span.start_s)
    slow = sum(
        any(w.start_s <= t < w.end_s for w in waits) and any(c.start_s <= t < c.end_s for c in spans) for t in range(50)
    )
    assert timeline(*waits, *spans).exposed_s(0) == slow


def test_in_flight_counts_from_the_forward_s_begin_to_the_backward_s_end():
    found = timeline(
        compute(0, 1, microbatch=0), compute(1, 2, microbatch=1), compute(2, 4, "B", 0), compute(4, 5, microbatch=2),
        compute(5, 6, "I", 1), compute(6, 7, "I", 2), compute(7, 8, "W", 1), compute(8, 9),
    )  # fmt: skip
    assert found.in_flight(0) == 2
    assert found.in_flight(1) == 0


def test_a_microbatch_of_several_layers_is_in_flight_once():
    forward = [compute(i, i + 1, "F", 0, f"layer {i}") for i in range(3)]
    backward = [compute(3 + i, 4 + i, "B", 0, f"layer {2 - i}") for i in range(3)]
    found = timeline(*forward, *backward)
    assert found.in_flight(0) == 1
    assert found.in_flight(0, per_label=True) == 3


def test_between_cuts_at_the_marks():
    marks = [Mark(0, 2.0, "begin"), Mark(1, 1.0, "begin"), Mark(0, 6.0, "end"), Mark(1, 8.0, "end")]
    found = timeline(compute(0, 3), compute(4, 9), compute(9, 10), wire(0, 1, rank=1), marks=marks)
    part = found.between("begin", "end")
    assert (part.start_s, part.makespan_s, part.busy_s(0)) == (1.0, 7.0, 2 + 4)
    assert part.of(1, "communication") == []
    assert found.between("begin").makespan_s == 9
    with pytest.raises(KitError, match="no rank has the mark 'step'; marks of this run: begin, end"):
        found.between("step")
