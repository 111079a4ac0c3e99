"""Traffic of collectives: published factors, and a ring that is walked message by message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import collectives
from kit.errors import KitError


@pytest.mark.parametrize("world_size", [1, 2, 3, 8, 64])
def test_bus_bandwidth_factors_are_those_of_nccl_tests(world_size: int) -> None:
    """nccl-tests, doc/PERFORMANCE.md: S is the whole array; all-reduce 2(n-1)/n, the others (n-1)/n."""
    once = (world_size - 1) / world_size
    assert collectives.all_reduce_bytes(1e9, world_size) == pytest.approx(2 * once * 1e9)
    for function in (collectives.reduce_scatter_bytes, collectives.all_gather_bytes, collectives.all_to_all_bytes):
        assert function(1e9, world_size) == pytest.approx(once * 1e9)


@given(st.integers(1, 12), st.integers(0, 12))
def test_an_even_ring_walked_step_by_step_sends_as_much(world_size: int, chunk_bytes: int) -> None:
    sent_bytes = steps = 0
    for _phase in ("reduce-scatter", "all-gather"):
        for _step in range(world_size - 1):
            sent_bytes += chunk_bytes
            steps += 1
    assert collectives.all_reduce_bytes(world_size * chunk_bytes, world_size) == sent_bytes
    assert collectives.all_reduce_steps(world_size) == steps
    assert collectives.reduce_scatter_steps(world_size) + collectives.all_gather_steps(world_size) == steps


@given(st.integers(1, 12), st.integers(0, 200))
def test_an_uneven_ring_stays_within_the_bound(world_size: int, numel: int) -> None:
    sizes = [numel // world_size + (index < numel % world_size) for index in range(world_size)]
    for rank in range(world_size):
        reduced = [sizes[(rank - step) % world_size] for step in range(world_size - 1)]
        gathered = [sizes[(rank + 1 - step) % world_size] for step in range(world_size - 1)]
        assert sum(reduced) + sum(gathered) <= collectives.all_reduce_max_numel(numel, world_size)


def test_uneven_bound_of_ten_elements_on_four_ranks() -> None:
    assert collectives.all_reduce_max_numel(10, 4) == 2 * 3 * 3


def test_bytes_are_whole_numbers_where_ranks_divide_them() -> None:
    sent = collectives.all_reduce_bytes(3 * (2**60 + 1), 3)
    assert sent == 4 * (2**60 + 1)
    assert isinstance(sent, int)


@pytest.mark.parametrize(("stage", "psi_times"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_zero_moves_the_multiples_of_the_paper(stage: int, psi_times: int) -> None:
    """ZeRO, arXiv 1910.02054, sections 7.1 and 7.2, which count elements and drop (n-1)/n."""
    sent = collectives.zero_traffic_bytes(7.5e9, 1024, stage, bytes_per_element=1)
    assert sent == pytest.approx(psi_times * 7.5e9 * 1023 / 1024)


@pytest.mark.parametrize("world_size", [2, 8, 512])
def test_full_sharding_moves_what_the_fsdp_paper_says(world_size: int) -> None:
    """PyTorch FSDP, arXiv 2304.11277, section 3.2.2: 2M(W-1)/W replicated, 3M(W-1)/W fully sharded."""
    once = (world_size - 1) / world_size
    assert collectives.zero_traffic_bytes(1e9, world_size, 0, 2) == pytest.approx(2 * 2e9 * once)
    assert collectives.zero_traffic_bytes(1e9, world_size, 3, 2) == pytest.approx(3 * 2e9 * once)
    kept = collectives.zero_traffic_bytes(1e9, world_size, 3, 2, reshard_after_forward=False)
    assert kept == pytest.approx(2 * 2e9 * once)


def test_accumulation_costs_nothing_until_gradients_are_sharded() -> None:
    per_stage = [collectives.zero_traffic_bytes(1e9, 2, stage, 2, num_microbatches=4) for stage in (0, 1, 2, 3)]
    assert per_stage == [2e9, 2e9, 5e9, 12e9]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: collectives.all_reduce_bytes(8, 0), "world_size must be a whole number of at least 1, got 0"),
        (lambda: collectives.all_reduce_bytes(8, 2.5), "world_size must be a whole number of at least 1, got 2.5"),
        (lambda: collectives.all_reduce_bytes(8, True), "world_size must be a whole number of at least 1, got True"),
        (lambda: collectives.all_reduce_bytes(-1, 2), "buffer_bytes must be a number of at least 0, got -1"),
        (
            lambda: collectives.all_reduce_bytes(float("nan"), 2),
            "buffer_bytes must be a number of at least 0, got nan",
        ),
        (lambda: collectives.all_reduce_bytes("8", 2), "buffer_bytes must be a number of at least 0, got '8'"),
        (lambda: collectives.all_reduce_max_numel(-1, 2), "numel must be a whole number of at least 0, got -1"),
        (lambda: collectives.zero_traffic_bytes(1, 2, 4), "stage must be a whole number from 0 to 3, got 4"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message
