"""Inequalities between communication and compute, held against both times worked out for a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import collectives, overlap, traffic
from kit.errors import KitError

X, B = 400e12, 50e9


def is_hidden(stage: int, tokens: int, n: int, p: float, g: float, psi: float = 1e9) -> bool:
    """Each gather behind forward or backward, each reduction behind backward, from the bytes that traffic counts."""
    gather, reduce = (traffic.zero_bytes(psi, n, 1, *each) / B for each in ((p, 0), (0, g)))
    forward, backward = 2 * psi * tokens / X, 4 * psi * tokens / X
    if stage == 0:
        return 2 * reduce <= backward
    return gather <= forward and (gather if stage == 3 else 0) + reduce <= backward


@given(st.integers(0, 3), st.integers(2, 64), st.sampled_from([1, 2, 4]), st.sampled_from([2, 4]))
def test_the_fewest_tokens_that_hide_it(stage: int, n: int, p: int, g: int) -> None:
    tokens = overlap.least_tokens_per_rank(stage, X, B, p, g, n)
    assert is_hidden(stage, tokens + 1, n, p, g)
    assert not is_hidden(stage, tokens - 1, n, p, g)


def test_in_16_bits_every_stage_wants_peak_over_bandwidth() -> None:
    assert [overlap.least_tokens_per_rank(stage, X, B) for stage in range(4)] == [8000] * 4
    assert overlap.least_tokens_per_rank(0, X, B, 2, 4) == 16000


@pytest.mark.parametrize(("gated", "products"), [(False, 4), (True, 6)])
def test_the_widest_tensor_parallelism(gated: bool, products: int) -> None:
    h, f, tokens = 8192, 28672, 4096
    t = overlap.largest_tensor_parallel(f, X, 450e9, gated=gated)
    for ranks, is_bound_by_compute in ((t, True), (t + 1, False)):
        compute = products * h * f * tokens / ranks / X
        communication = collectives.all_reduce_bytes(2 * h * tokens, ranks) / 450e9
        assert (communication <= compute) is is_bound_by_compute


def test_65_billion_parameters_over_10_gigabit() -> None:
    """Four to five minutes a step: 390 GB, less what stays at home."""
    assert overlap.zero_step_s(65e9, 8, 3, 1.25e9) == pytest.approx(273)
    assert overlap.zero_step_s(65e9, 8, 0, 1.25e9) == pytest.approx(182)


def test_what_is_exposed() -> None:
    assert overlap.exposed_s(3, 2) == 1
    assert overlap.exposed_s(2, 3) == 0
    assert overlap.exposed_s(3, 4, hidden=0.5) == 1


def test_buckets_pay_latency_and_share_the_bytes() -> None:
    one, forty = (overlap.bucketed_all_reduce_s(1e9, k, 8, 10e-6, 25e9) for k in (1, 40))
    assert one == pytest.approx(collectives.all_reduce_s(1e9, 8, 10e-6, 25e9))
    assert forty - one == pytest.approx(39 * 14 * 10e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: overlap.least_tokens_per_rank(4, X, B), "stage must be a whole number from 0 to 3, got 4"),
        (lambda: overlap.least_tokens_per_rank(3, X, 0), "bytes_per_s must be a number above 0, got 0"),
        (lambda: overlap.exposed_s(1, 1, 2), "hidden must be from 0 to 1, got 2"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message
