"""Schedules with a split backward, against ZB-H1 laid out operation by operation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import pipeline, zero_bubble
from kit.errors import KitError


def orders(p: int, m: int) -> list[list[tuple[str, int]]]:
    """ZB-H1: 1F1B whose weight gradients wait, on rank i until i more microbatches are in; the rest fills the end."""
    found = []
    for rank in range(p):
        warmup = min(p - rank, m)
        order, forwards, weights = [("F", microbatch) for microbatch in range(warmup)], warmup, 0
        for microbatch in range(m):
            order.append(("B", microbatch))
            if microbatch >= rank:
                order.append(("W", weights))
                weights += 1
            if forwards < m:
                order.append(("F", forwards))
                forwards += 1
        order += [("W", microbatch) for microbatch in range(weights, m)]
        found.append(order)
    return found


def spans(p: int, m: int, seconds: dict[str, float]) -> list[float]:
    """From each rank's first operation to its last: what it can be busy with other steps' work is no bubble."""
    end: dict[tuple[str, int, int], float] = {}
    waiting, now, begin = orders(p, m), [0.0] * p, [-1.0] * p
    while any(waiting):
        for rank in range(p):
            while waiting[rank]:
                kind, microbatch = waiting[rank][0]
                peer = {"F": rank - 1, "B": rank + 1}.get(kind, -1)
                needs = (kind, microbatch, peer) if 0 <= peer < p else None
                if needs is not None and needs not in end:
                    break
                start = max(now[rank], end[needs] if needs is not None else 0.0)
                begin[rank] = start if begin[rank] < 0 else begin[rank]
                now[rank] = end[kind, microbatch, rank] = start + seconds[kind]
                waiting[rank].pop(0)
    return [last - first for first, last in zip(begin, now, strict=True)]


@pytest.mark.parametrize(("p", "m"), [(2, 4), (3, 6), (4, 8), (4, 13), (6, 12)])
def test_zb_h1_laid_out(p: int, m: int) -> None:
    """All passes alike: every rank idles (p-1)(F + B - W), a third of 1F1B's (p-1)(F + B + W)."""
    busy = 3 * m
    assert max(spans(p, m, {"F": 1, "B": 1, "W": 1})) - busy == zero_bubble.bubble_s("zb_h1", p, 1, 1, 1) == p - 1
    assert zero_bubble.bubble_s("1f1b", p, 1, 1, 1) == 3 * (p - 1)


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (4, 13)])
def test_zb_h1_s_memory_laid_out(p: int, m: int) -> None:
    """M_B from a forward to its B, M_W from there to its W."""
    m_b, m_w = 34, 32
    for rank, order in enumerate(orders(p, m)):
        held = peak = 0
        for kind, _ in order:
            held += {"F": m_b, "B": m_w - m_b, "W": -m_w}[kind]
            peak = max(peak, held)
        assert peak <= zero_bubble.peak_activation_bytes("zb_h1", p, rank, m_b, m_w)
        assert peak >= zero_bubble.peak_activation_bytes("1f1b", p, rank, m_b, m_w)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 4))
def test_the_older_schedules_agree_with_pipeline(p: int, rounds: int, v: int) -> None:
    m = p * rounds
    for schedule, chunks in (("gpipe", 1), ("1f1b", 1), ("interleaved", v)):
        fraction = zero_bubble.bubble_fraction(schedule, p, m, 1, 1, 1, chunks)
        assert fraction == pytest.approx(pipeline.bubble_fraction(p, m, schedule, chunks))


@given(st.floats(0.1, 9), st.floats(0.1, 9), st.floats(0.1, 9))
def test_deferring_weights_never_lengthens_the_bubble(f: float, i: float, w: float) -> None:
    bubbles = [zero_bubble.bubble_s(schedule, 8, f, i, w) for schedule in ("1f1b", "zb_h1", "zb_h2")]
    assert bubbles == sorted(bubbles, reverse=True)
    assert bubbles[-1] >= 0


def test_fractions_are_over_the_makespan() -> None:
    assert zero_bubble.bubble_fraction("zb_h1", 8, 16) == pytest.approx(7 / (7 + 48))
    assert zero_bubble.bubble_fraction("dualpipe", 8, 16) == pytest.approx(6 / (6 + 48))


def test_megatron_s_warm_up_is_what_the_interleaved_schedule_holds() -> None:
    """p = 4, v = 2: rank 0 runs 2·3 + 4 = 10 forwards before its first backward, which comes after one more."""
    assert [pipeline.chunks_in_flight(4, 8, 2, rank) for rank in range(4)] == [11, 9, 7, 5]
    assert pipeline.chunks_in_flight(4, 4, 2) == 8
    assert [pipeline.chunks_in_flight(4, 8, 1, rank) for rank in range(4)] == [4, 3, 2, 1]


@given(st.integers(1, 16), st.floats(0.01, 0.9), st.integers(1, 4))
def test_microbatches_for_a_bubble_are_the_fewest(p: int, bubble: float, v: int) -> None:
    schedule, step = ("1f1b", 1) if v == 1 else ("interleaved", p)
    m = pipeline.microbatches_for_bubble(p, bubble, v)
    assert pipeline.bubble_fraction(p, m, schedule, v) <= bubble + 1e-9
    if m > step:
        assert pipeline.bubble_fraction(p, m - step, schedule, v) > bubble


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: zero_bubble.bubble_s("zb-h1", 4),
            "schedule must be one of gpipe, 1f1b, interleaved, zb_h1, zb_h2, zbv, dualpipe, got 'zb-h1'",
        ),
        (lambda: zero_bubble.bubble_s("dualpipe", 5), "dualpipe needs an even number of stages, got 5"),
        (
            lambda: zero_bubble.bubble_s("zb_h1", 4, num_chunks=2),
            "num_chunks=2 needs schedule 'interleaved', got 'zb_h1'",
        ),
        (
            lambda: zero_bubble.bubble_s("1f1b", 4, overlapped_s=1),
            "overlapped_s is for schedule 'dualpipe', got '1f1b'",
        ),
        (
            lambda: zero_bubble.bubble_s("zbv", 4, 1, 1, 2),
            "zbv has a closed form for forward_s = input_grad_s = weight_grad_s only, where it idles 0",
        ),
        (lambda: zero_bubble.bubble_fraction("zb_h2", 4, 6), "zb_h2 on 4 stages needs at least 7 microbatches, got 6"),
        (
            lambda: zero_bubble.bubble_fraction("dualpipe", 4, 9),
            "dualpipe on 4 stages needs an even number of at least 8 microbatches, got 9",
        ),
        (
            lambda: zero_bubble.peak_activation_bytes("zbv", 4, 0, 1, 1),
            "schedule must be one of 1f1b, zb_h1, zb_h2, got 'zbv'",
        ),
        (
            lambda: pipeline.chunks_in_flight(4, 6, 2),
            "the interleaved schedule needs microbatches in multiples of the ranks, got 6 on 4",
        ),
        (
            lambda: pipeline.bubble_for_gpus(64, 7, 128),
            "data_parallel=7 must divide num_gpus=64 and batch_in_microbatches=128",
        ),
        (lambda: pipeline.microbatches_for_bubble(4, 0), "bubble must be between 0 and 1, got 0"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message
