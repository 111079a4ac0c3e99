"""Training runs: batches, times, checkpoints, stragglers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import training
from kit.errors import KitError

DAY = 86400


def test_recomputation_costs_a_third_more() -> None:
    full, none, selective = (training.train_time_s(7e9, 2e12, 64, 150e12, how) for how in ("full", "none", "selective"))
    assert none == selective == pytest.approx(6 * 7e9 * 2e12 / (64 * 150e12))
    assert full / none == pytest.approx(4 / 3)


@given(st.floats(1e8, 1e12), st.integers(1, 10**5), st.floats(0.01, 1))
def test_a_run_s_tokens_over_its_time_are_its_throughput(params: float, gpus: int, mfu: float) -> None:
    rate = training.tokens_per_s(params, gpus, 312e12, mfu)
    assert training.train_time_from_mfu_s(params, 1e12, gpus, 312e12, mfu) == pytest.approx(1e12 / rate)
    assert training.mfu_of_tokens_per_s(rate, params, gpus, 312e12) == pytest.approx(mfu)


def test_cost() -> None:
    assert training.gpu_hours(2 * DAY, 1000) == 48000
    assert training.train_cost(2 * DAY, 1000, 2.5) == 120000


@given(st.integers(1, 8), st.integers(1, 16), st.integers(1, 64))
def test_accumulation_steps_come_back_from_the_global_batch(micro: int, k: int, dp: int) -> None:
    batch = training.global_batch_size(micro, k, dp)
    assert batch == micro * k * dp
    assert training.num_microbatches(batch, micro, dp) == k


def test_model_parallel_ranks_share_their_samples() -> None:
    assert training.data_parallel(1024, 8, 8) == 16
    assert training.data_parallel(1024, 8, 8, 4) == 4


def test_steps_of_a_run() -> None:
    assert training.num_steps(16 * 2**20 * 100, 2048, 8192) == 100
    assert training.num_steps(16 * 2**20 * 100 + 1, 2048, 8192) == 101


def test_learning_rates() -> None:
    assert training.scaled_learning_rate(3e-4, 512, 2048) == pytest.approx(1.2e-3)
    assert training.scaled_learning_rate(3e-4, 512, 2048, "sqrt") == pytest.approx(6e-4)


@pytest.mark.parametrize(("save_s", "mtbf_s"), [(60, 6 * 3600), (5, 3600), (300, 7 * DAY)])
def test_young_s_interval_loses_least(save_s: float, mtbf_s: float) -> None:
    """Against intervals around it; Young and Daly agree while saves are short."""
    best = training.checkpoint_interval_s(save_s, mtbf_s)
    least = training.lost_fraction(best, save_s, mtbf_s)
    for factor in (0.5, 0.8, 1.25, 2):
        assert training.lost_fraction(best * factor, save_s, mtbf_s) > least
    assert training.checkpoint_interval_s(save_s, mtbf_s, "daly") == pytest.approx(best, rel=0.06)


def test_daly_s_higher_order() -> None:
    """sqrt(2dM) (1 + sqrt(d/2M)/3 + (d/2M)/9) - d, for d = 60 s and M = 6 h."""
    half = 60 / (2 * 21600)
    by_hand = (2 * 60 * 21600) ** 0.5 * (1 + half**0.5 / 3 + half / 9) - 60
    assert training.checkpoint_interval_s(60, 21600, "daly") == pytest.approx(by_hand)


def test_ten_thousand_gpus_whose_node_fails_every_thousand_hours() -> None:
    """1250 nodes: a failure every 48 minutes; saves of 30 s want one every 7 minutes."""
    mtbf_s = training.system_mtbf_s(1000 * 3600, 1250)
    assert mtbf_s == 2880
    assert training.checkpoint_interval_s(30, mtbf_s) / 60 == pytest.approx(6.93, abs=0.01)


def test_a_save_as_long_as_the_failures_apart_leaves_daly_the_mtbf() -> None:
    assert training.checkpoint_interval_s(200, 100, "daly") == 100


def test_lost_time_of_a_run_that_is_played() -> None:
    """Failures at random; each loses what came since the last save, and the restart. 1% of the MTBF a cycle."""
    draw, interval, save, mtbf, restart = random.Random(0), 900.0, 30.0, 90_000.0, 120.0
    now = kept = 0.0
    failure = draw.expovariate(1 / mtbf)
    while kept < 2e8:
        if now + interval + save <= failure:
            now, kept = now + interval + save, kept + interval
        else:
            now = failure + restart
            failure = now + draw.expovariate(1 / mtbf)
    assert 1 - kept / now == pytest.approx(training.lost_fraction(interval, save, mtbf, restart), rel=0.03)
    assert kept / now == pytest.approx(training.goodput(interval, save, mtbf, restart), rel=0.002)


def test_goodput_is_never_negative() -> None:
    assert training.goodput(1000, 100, 10) == 0
    assert training.goodput_of_outages(100, 10, 20) == 0
    assert training.goodput_of_outages(100, 1, 20) == 0.8


def test_one_slow_node_of_a_hundred() -> None:
    assert training.straggler_step_s(0.5, 0.8, 100) == 0.8
    assert training.straggler_loss(0.5, 0.8) == pytest.approx(3 / 8)
    rate = 99 / 0.5 + 1 / 0.8
    assert training.straggler_step_s(0.5, 0.8, 100, synchronous=False) == pytest.approx(100 / rate)
    assert training.straggler_step_s(0.5, 0.8, 100, num_slow=0) == 0.5
    assert training.straggler_step_s(0.5, 0.8, 2, num_slow=2, synchronous=False) == pytest.approx(0.8)


def test_rare_delays_of_many_ranks_are_frequent() -> None:
    assert training.straggler_chance(1, 0.01) == pytest.approx(0.01)
    assert training.straggler_chance(2, 0.5) == 0.75


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: training.num_microbatches(100, 8, 4),
            "global_batch_size=100 is no multiple of microbatch_size x data_parallel = 8 x 4 = 32",
        ),
        (lambda: training.data_parallel(100, 8), "world_size=100 is no multiple of tp x pp x cp = 8"),
        (lambda: training.train_time_s(1, 1, 1, 0), "achieved_flops_per_s must be above 0, got 0"),
        (lambda: training.train_time_from_mfu_s(1, 1, 1, 1, 1.5), "mfu must be above 0 and at most 1, got 1.5"),
        (lambda: training.straggler_step_s(1, 2, 3, 4), "num_slow=4 is more than num_ranks=3"),
        (lambda: training.straggler_chance(3, 2), "chance_per_rank_step must be from 0 to 1, got 2"),
        (lambda: training.checkpoint_interval_s(1, 0), "mtbf_s must be above 0, got 0"),
        (lambda: training.scaled_learning_rate(1, 1, 2, "cubic"), "rule must be one of linear, sqrt, got 'cubic'"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message


def test_all_of_the_peak_is_no_more_than_the_peak() -> None:
    """393 GPUs at 312e12: the rate, multiplied again, is a rounding above them."""
    rate = training.tokens_per_s(120_000_003.0, 393, 312e12, 1.0)
    for params in (120_000_003.0 * (1 + 2**-52), 120_000_003.0):
        assert training.mfu_of_tokens_per_s(rate * (1 + 2**-52), params, 393, 312e12) == 1.0
