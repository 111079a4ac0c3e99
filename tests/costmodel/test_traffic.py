"""Traffic of data parallelism: its parts, its limits, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import collectives, traffic
from kit.errors import KitError

SIZES = st.integers(1, 64)


@given(SIZES, st.integers(0, 3), st.integers(1, 5), st.booleans())
def test_zero_with_one_dtype_is_the_shorter_function(n: int, stage: int, k: int, reshard: bool) -> None:
    one = traffic.zero_bytes(960, n, stage, 2, 2, k, reshard)
    assert one == pytest.approx(collectives.zero_traffic_bytes(960, n, stage, 2, k, reshard))


def test_fp32_gradients_cost_twice_in_the_reductions_only() -> None:
    assert traffic.zero_bytes(1000, 2, 2, 2, 4, num_microbatches=3) == (1000 * 2 + 3 * 1000 * 4) / 2
    assert traffic.zero_bytes(1000, 2, 3, 2, 4, num_microbatches=3) == (6 * 1000 * 2 + 3 * 1000 * 4) / 2
    assert traffic.zero_bytes(1000, 2, 0, 2, 4) == 2 * 1000 * 4 / 2


@given(SIZES, st.integers(1, 4), st.booleans())
def test_fsdp_that_reduces_each_time_is_zero_3(n: int, k: int, reshard: bool) -> None:
    assert traffic.fsdp_bytes(960, n, 2, 2, k, reshard) == pytest.approx(
        traffic.zero_bytes(960, n, 3, 2, 2, k, reshard)
    )


def test_what_stays_after_forward_is_gathered_once() -> None:
    assert traffic.fsdp_bytes(1000, 2, 2, 2, num_kept_params=1000) == traffic.fsdp_bytes(
        1000, 2, 2, 2, reshard_after_forward=False
    )
    assert traffic.fsdp_bytes(1000, 2, 2, 2, num_kept_params=100) == 3 * 1000 - 100


@given(SIZES)
def test_one_replica_is_fsdp_and_groups_of_one_are_ddp(n: int) -> None:
    assert traffic.hsdp_bytes(960, n, 1) == pytest.approx(traffic.fsdp_bytes(960, n))
    assert traffic.hsdp_bytes(960, 1, n) == pytest.approx(traffic.ddp_bytes(960, n, 2))


def test_hybrid_sharding_sends_less_between_nodes_than_sharding_over_all() -> None:
    between = traffic.hsdp_bytes(1e9, 8, 8, level="between")
    assert between == 2 * 7 / 8 * 2e9 / 8
    assert between < traffic.fsdp_bytes(1e9, 64) / 10
    assert traffic.hsdp_bytes(1e9, 8, 8) == between + traffic.hsdp_bytes(1e9, 8, 8, level="inside")


@given(st.integers(2, 64))
def test_owning_and_broadcasting_costs_half_as_much_again_as_zero_1(n: int) -> None:
    ring = traffic.sharded_optimizer_bytes(960, n, counts="ring")
    assert ring == pytest.approx(1.5 * traffic.zero_bytes(960, n, 1, 4, 4))
    root = traffic.sharded_optimizer_bytes(960, n)
    assert root == pytest.approx(traffic.ddp_bytes(960, n) + 960 * 4 / n)


def test_one_rank_sends_nothing() -> None:
    assert traffic.sharded_optimizer_bytes(960, 1) == 0
    assert traffic.ddp_bytes(960, 1) == 0
    assert traffic.fsdp_bytes(960, 1) == 0
    assert traffic.diloco_bytes(960, 1, 10) == 0
    assert traffic.zero_plus_plus_bytes(960, num_nodes=1) == 0


def test_zero_plus_plus_inside_nodes_and_between_them_add_up_to_a_ring() -> None:
    num_params, n, g = 960, 32, 8
    for quantized in (True, False):
        switches = {"quantized_weights": quantized, "secondary_partition": False, "quantized_gradients": quantized}
        for part in ("forward", "backward"):
            inside = traffic.zero_plus_plus_inside_bytes(num_params, g, part=part, **switches)
            between = traffic.zero_plus_plus_bytes(num_params, num_nodes=n // g, part=part, **switches) / g
            assert inside + between == collectives.all_gather_bytes(num_params * (1 if quantized else 2), n)
    assert traffic.zero_plus_plus_inside_bytes(num_params, g, part="backward") == 7 / 8 * 2 * num_params
    assert traffic.zero_plus_plus_inside_bytes(num_params, g, part="gradients") == 7 / 8 * 0.5 * num_params
    assert traffic.zero_plus_plus_inside_bytes(num_params, g) == 7 / 8 * 1.75 * 2 * num_params
    assert traffic.zero_plus_plus_inside_bytes(num_params, 1) == 0


def test_zero_plus_plus_s_parts_one_by_one() -> None:
    """M = 2e9: each switch alone, and the share that the paper drops."""
    off = {"quantized_weights": False, "secondary_partition": False, "quantized_gradients": False}
    assert traffic.zero_plus_plus_bytes(1e9, **{**off, "quantized_weights": True}) == (0.5 + 0.5 + 1) * 2e9
    assert traffic.zero_plus_plus_bytes(1e9, **{**off, "secondary_partition": True}) == (1 + 0 + 1) * 2e9
    assert traffic.zero_plus_plus_bytes(1e9, **{**off, "quantized_gradients": True}) == (1 + 1 + 0.25) * 2e9
    assert traffic.zero_plus_plus_bytes(1e9, num_nodes=4) == 0.75 * 0.75 * 2e9


def test_diloco_sends_one_all_reduce_in_h_steps() -> None:
    assert traffic.diloco_bytes(1000, 4, 10) * 10 == collectives.all_reduce_bytes(4000, 4)


def test_buckets_of_nothing() -> None:
    assert traffic.ddp_num_buckets(0) == 0
    assert traffic.ddp_num_buckets(100, first_bucket_mb=0) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: traffic.zero_bytes(1, 2, 7), "stage must be a whole number from 0 to 3, got 7"),
        (lambda: traffic.ddp_bytes(-1, 2), "num_params must be a number of at least 0, got -1"),
        (
            lambda: traffic.ddp_bytes(1, 2, num_microbatches=0),
            "num_microbatches must be a whole number of at least 1, got 0",
        ),
        (lambda: traffic.fsdp_bytes(10, 2, num_kept_params=11), "num_kept_params=11 is more than num_params=10"),
        (lambda: traffic.hsdp_bytes(1, 2, 2, level="node"), "level must be one of all, inside, between, got 'node'"),
        (
            lambda: traffic.zero_plus_plus_bytes(1, part="all"),
            "part must be one of forward, backward, gradients, total, got 'all'",
        ),
        (
            lambda: traffic.quantized_all_to_all_bytes(1, 8, num_hops=3),
            "num_hops must be a whole number from 1 to 2, got 3",
        ),
        (lambda: traffic.ddp_num_buckets(1, bucket_cap_mb=0), "bucket_cap_mb must be above 0, got 0"),
        (lambda: traffic.sharded_optimizer_bytes(1, 2, counts="all"), "counts must be one of root, ring, got 'all'"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message


def test_no_sync_reduces_once_however_many_microbatches() -> None:
    once = traffic.ddp_bytes(960, 4)
    assert traffic.ddp_bytes(960, 4, num_microbatches=5) == once
    assert traffic.ddp_bytes(960, 4, num_microbatches=5, no_sync=False) == 5 * once


def test_fsdp_that_piles_up_gradients_reduces_once() -> None:
    every, once = (traffic.fsdp_bytes(1000, 2, 2, 2, 5, reduce_every_microbatch=each) for each in (True, False))
    assert every - once == 4 * 1000
