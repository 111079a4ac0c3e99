"""Bubbles in closed form, against a schedule that is laid out slot by slot."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import pipeline
from kit.errors import KitError


def makespan_of_gpipe(num_stages: int, num_microbatches: int) -> int:
    """All forwards, then all backwards, each one slot long, laid out by their dependencies."""
    end: dict[tuple[str, int, int], int] = {}
    free_at = [0] * num_stages
    for microbatch in range(num_microbatches):
        for stage in range(num_stages):
            begin = max(free_at[stage], end.get(("F", stage - 1, microbatch), 0))
            free_at[stage] = end["F", stage, microbatch] = begin + 1
    for microbatch in range(num_microbatches):
        for stage in reversed(range(num_stages)):
            begin = max(free_at[stage], end.get(("B", stage + 1, microbatch), 0))
            free_at[stage] = end["B", stage, microbatch] = begin + 1
    return max(free_at)


@given(st.integers(1, 6), st.integers(1, 9))
def test_gpipe_laid_out_slot_by_slot_idles_as_much(num_stages: int, num_microbatches: int) -> None:
    span = makespan_of_gpipe(num_stages, num_microbatches)
    idle = Fraction(span - 2 * num_microbatches, span)
    assert pipeline.bubble_fraction(num_stages, num_microbatches, "gpipe") == pytest.approx(float(idle))
    assert pipeline.makespan_s(num_stages, num_microbatches, 1, 1, "gpipe") == span


@pytest.mark.parametrize(("p", "m"), [(4, 8), (8, 64), (16, 3)])
def test_1f1b_has_the_bubble_of_gpipe(p: int, m: int) -> None:
    """PTD-P, arXiv 2104.04473, section 2.2.1: the same bubble, fewer microbatches in flight."""
    assert pipeline.bubble_fraction(p, m, "1f1b") == pipeline.bubble_fraction(p, m, "gpipe")


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 4))
def test_both_denominators_describe_one_bubble(p: int, rounds: int, v: int) -> None:
    """Idle / ideal is (p-1)/(vm) (PTD-P, section 2.2); of the makespan it is r / (1 + r) (GPipe, section 2.3)."""
    m = p * rounds
    over_ideal = pipeline.bubble_over_ideal(p, m, "interleaved", v)
    assert over_ideal == pytest.approx((p - 1) / (v * m))
    assert pipeline.bubble_fraction(p, m, "interleaved", v) == pytest.approx(over_ideal / (1 + over_ideal))


@given(st.integers(1, 400), st.integers(1, 16), st.integers(1, 16))
def test_ptd_p_s_bubble_for_a_fixed_number_of_gpus(n_over_d: int, d: int, m: int) -> None:
    """PTD-P, section 3.3.1: with t = 1, p = n/d and m = b'/d the bubble over ideal is (n-d)/b'."""
    n, samples = n_over_d * d, m * d
    assert pipeline.bubble_over_ideal(n_over_d, m) == pytest.approx((n - d) / samples)


def test_four_microbatches_a_stage_leave_a_fifth_idle() -> None:
    """GPipe, section 2.3, calls the bubble negligible from M >= 4K on."""
    assert pipeline.bubble_fraction(8, 32, "gpipe") == pytest.approx(7 / 39)
    assert pipeline.bubble_fraction(8, 32, "gpipe") < 0.2 < pipeline.bubble_fraction(8, 24, "gpipe")


def test_one_stage_never_idles() -> None:
    assert pipeline.bubble_fraction(1, 7) == 0


def test_makespan_shrinks_with_chunks() -> None:
    assert pipeline.makespan_s(4, 8, 0.1, 0.2) == pytest.approx(11 * 0.3)
    assert pipeline.makespan_s(4, 8, 0.1, 0.2, "interleaved", 2) == pytest.approx((8 + 3 / 2) * 0.3)


@pytest.mark.parametrize(
    ("schedule", "p", "m", "in_flight"),
    [("gpipe", 4, 8, [8, 8, 8, 8]), ("1f1b", 4, 8, [4, 3, 2, 1]), ("1f1b", 4, 2, [2, 2, 2, 1])],
)
def test_microbatches_in_flight(schedule: str, p: int, m: int, in_flight: list[int]) -> None:
    """PTD-P, section 2.2.1: m with GPipe, at most p with 1F1B, and one less with each stage."""
    assert [pipeline.microbatches_in_flight(p, m, schedule, stage) for stage in range(p)] == in_flight


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pipeline.bubble_fraction(0, 4), "num_stages must be a whole number of at least 1, got 0"),
        (lambda: pipeline.bubble_fraction(4, -1), "num_microbatches must be a whole number of at least 1, got -1"),
        (
            lambda: pipeline.bubble_fraction(4, 4, "1F1B"),
            "schedule must be one of gpipe, 1f1b, interleaved, got '1F1B'",
        ),
        (lambda: pipeline.bubble_fraction(4, 4, "gpipe", 2), "num_chunks=2 needs schedule 'interleaved', got 'gpipe'"),
        (
            lambda: pipeline.bubble_fraction(4, 6, "interleaved", 2),
            "the interleaved schedule needs microbatches in multiples of the ranks, got 6 on 4",
        ),
        (
            lambda: pipeline.microbatches_in_flight(4, 8, "1f1b", 4),
            "stage must be a whole number from 0 to 3, got 4",
        ),
        (
            lambda: pipeline.microbatches_in_flight(4, 8, "interleaved"),
            "schedule must be one of gpipe, 1f1b, got 'interleaved'",
        ),
    ],
)
def test_what_cannot_run_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message
