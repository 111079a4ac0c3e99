"""Traffic inside the model, against schedules and rings that are walked message by message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import model_traffic
from kit.errors import KitError

LAYER = {"seq_len": 64, "microbatch_size": 2, "hidden_size": 12, "tensor_parallel": 4}
ONCE = 64 * 2 * 12 * 2 * 3 // 4  # bsh elements of 2 bytes, (t-1)/t of them


@pytest.mark.parametrize(
    ("options", "forward", "backward"),
    [
        ({}, 4, 4),
        ({"recomputation": "selective"}, 4, 4),
        ({"recomputation": "full"}, 4, 8),
        ({"sequence_parallel": True}, 4, 6),
        ({"sequence_parallel": True, "saves_gathered_input": True}, 4, 4),
        ({"sequence_parallel": True, "recomputation": "full"}, 4, 10),
    ],
)
def test_halves_of_all_reduces_in_a_layer(options: dict, forward: int, backward: int) -> None:
    by_direction = {
        direction: model_traffic.tp_bytes_per_layer(**LAYER, direction=direction, **options)
        for direction in model_traffic.DIRECTIONS
    }
    assert by_direction == {
        "forward": forward * ONCE,
        "backward": backward * ONCE,
        "both": (forward + backward) * ONCE,
    }


def test_a_step_has_all_layers_and_microbatches() -> None:
    assert model_traffic.tp_bytes(5, 7, 64, 2, 12, 4, recomputation="full") == 35 * 12 * ONCE
    assert model_traffic.tp_bytes(5, 7, 64, 2, 12, 1) == 0


def test_the_vocabulary_s_own_traffic() -> None:
    """Two all-reduces of bsh in 2 bytes, three of bs in 4, each 2(t-1)/t."""
    assert model_traffic.vocab_parallel_bytes(64, 2, 12, 4) == 4 * ONCE + 3 * 2 * 3 / 4 * 128 * 4


@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 4))
def test_a_pipeline_walked_chunk_by_chunk(p: int, v: int, m: int) -> None:
    """Chunk c of rank r is stage cp + r; a stage sends on to the next, and its input's gradient back."""
    sent = [0] * p
    for stage in range(p * v):
        sent[stage % p] += (stage < p * v - 1) + (stage > 0)
    each = model_traffic.pp_bytes_per_microbatch(8, 1, 3)
    if p > 1:
        predicted = [model_traffic.pp_bytes(p, m, 8, 1, 3, stage=rank, num_chunks=v) for rank in range(p)]
        assert predicted == [m * count * each for count in sent]
    assert model_traffic.pp_bytes(1, m, 8, 1, 3, num_chunks=v) == 0


def test_without_a_stage_it_is_one_in_the_middle() -> None:
    assert model_traffic.pp_bytes(4, 3, 8, 1, 3) == model_traffic.pp_bytes(4, 3, 8, 1, 3, stage=2)
    assert model_traffic.pp_bytes(2, 3, 8, 1, 3) == model_traffic.pp_bytes(2, 3, 8, 1, 3, stage=0)


@pytest.mark.parametrize(("home", "hops"), [(True, 3 + 3 + 4), (False, 3 + 3 + 3)])
def test_hops_of_the_ring(home: bool, hops: int) -> None:
    """Four ranks: K and V three hops each way, their gradients four or three."""
    one_hop = 2 * (16 // 4) * 3 * 5 * 2
    assert model_traffic.cp_bytes_per_layer(16, 1, 6, 5, 4, num_kv_heads=3, grads_come_home=home) == hops * one_hop


def test_fp32_gradients_on_the_ring() -> None:
    one_hop = 2 * 4 * 3 * 5
    got = model_traffic.cp_bytes_per_layer(
        16, 1, 6, 5, 4, num_kv_heads=3, direction="backward", grad_bytes_per_element=4
    )
    assert got == one_hop * (3 * 2 + 4 * 4)


def test_gathering_keys_and_values_sends_what_the_ring_sends_forward() -> None:
    ring, gathered = (
        model_traffic.cp_bytes_per_layer(16, 1, 6, 5, 4, num_kv_heads=3, method=method, direction="forward")
        for method in ("ring", "all_gather")
    )
    assert ring == gathered == 3 * 2 * 4 * 3 * 5 * 2


def test_ulysses_repeats_key_value_heads_up_to_the_ranks() -> None:
    """8 ranks, 16 heads: q and output of 16 heads each; k and v of 8 although the model has 2."""
    got = model_traffic.cp_bytes_per_layer(64, 1, 16, 4, 8, num_kv_heads=2, method="ulysses", direction="forward")
    assert got == (64 // 8) * 4 * (16 + 16 + 8 + 8) * 2 * 7 / 8


@pytest.mark.parametrize("method", ["ring", "all_gather", "ulysses"])
def test_one_rank_has_nobody_to_send_to(method: str) -> None:
    assert model_traffic.cp_bytes_per_layer(16, 1, 4, 5, 1, method=method) == 0


def test_capacity_pads_what_is_sent() -> None:
    assert model_traffic.expert_capacity(100, 2, 8, 1.0) == 25
    assert model_traffic.expert_capacity(100, 2, 8, 1.25) == 32
    dropless = model_traffic.ep_bytes_per_layer(100, 16, 2, 4, direction="forward")
    padded = model_traffic.ep_bytes_per_layer(100, 16, 2, 4, capacity_factor=1.25, num_experts=8, direction="forward")
    assert dropless == 200 * 16 * (2 + 2) * 3 / 4
    assert padded == 8 * 32 * 16 * (2 + 2) * 3 / 4


def test_fp8_dispatch_and_bf16_combine() -> None:
    got = model_traffic.ep_bytes_per_layer(100, 16, 2, 4, dispatch_bytes_per_element=1, direction="forward")
    assert got == 200 * 16 * (1 + 2) * 3 / 4


def test_a_token_crosses_once_to_each_node() -> None:
    """DeepSeek-V3: 8 experts on at most 4 of 8 nodes, against one copy for each of 8 experts over 64 ranks."""
    limited = model_traffic.ep_bytes_between_nodes(4096, 7168, 4, 8, 1)
    assert limited == 4096 * 7168 * 4 * 7 / 8
    assert limited < model_traffic.ep_bytes_per_layer(4096, 7168, 8, 64, 1, 0, direction="forward") / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: model_traffic.tp_bytes_per_layer(10, 1, 8, 4, sequence_parallel=True),
            "seq_len=10 cannot be split over tensor_parallel=4 ranks",
        ),
        (
            lambda: model_traffic.tp_bytes_per_layer(8, 1, 8, 4, recomputation="some"),
            "recomputation must be one of none, selective, full, got 'some'",
        ),
        (
            lambda: model_traffic.cp_bytes_per_layer(10, 1, 4, 8, 4),
            "seq_len=10 cannot be split over context_parallel=4 ranks",
        ),
        (
            lambda: model_traffic.cp_bytes_per_layer(12, 1, 4, 8, 4, num_kv_heads=3),
            "num_heads=4 is no multiple of num_kv_heads=3",
        ),
        (
            lambda: model_traffic.cp_bytes_per_layer(16, 1, 12, 8, 8, method="ulysses"),
            "12 heads and 12 of keys cannot be split over context_parallel=8 ranks",
        ),
        (lambda: model_traffic.pp_bytes(4, 1, 8, 1, 8, stage=4), "stage must be a whole number from 0 to 3, got 4"),
        (
            lambda: model_traffic.ep_bytes_per_layer(8, 8, 2, 4, capacity_factor=1),
            "num_experts must be a whole number of at least 1, got 0",
        ),
        (
            lambda: model_traffic.ep_bytes_per_layer(8, 8, 2, 4, capacity_factor=1, num_experts=6),
            "num_experts=6 cannot be split over expert_parallel=4 ranks",
        ),
        (lambda: model_traffic.ep_bytes_between_nodes(8, 8, 5, 4), "nodes_per_token=5 is more than num_nodes=4"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message
