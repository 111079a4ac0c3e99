"""Activations by formula against what autograd saves, and invariants over the ways of splitting them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import activations, memory
from kit.errors import KitError
from tests.costmodel import modules

STATISTICS = 2 * 2 * 2  # of two norms, mean and deviation of each token, 2 bytes: the formulas leave them out


@pytest.mark.parametrize(("batch", "seq", "hidden", "heads"), [(2, 32, 64, 4), (1, 50, 96, 3)])
def test_a_gpt_layer_keeps_what_autograd_saves(batch: int, seq: int, hidden: int, heads: int) -> None:
    block = modules.GPTBlock(hidden, heads).bfloat16()
    x = torch.randn(batch, seq, hidden, dtype=torch.bfloat16, requires_grad=True)
    expected = activations.layer_bytes(seq, batch, hidden, heads) + STATISTICS * batch * seq
    assert modules.saved_bytes(block, x) == expected


@pytest.mark.parametrize(
    ("batch", "seq", "hidden", "heads", "kv_heads", "ffn"), [(2, 32, 64, 4, 2, 160), (1, 48, 96, 3, 3, 200)]
)
def test_a_llama_layer_keeps_what_autograd_saves(
    batch: int, seq: int, hidden: int, heads: int, kv_heads: int, ffn: int
) -> None:
    attention = modules.GroupedAttention(hidden, heads, kv_heads)
    block = modules.LlamaBlock(hidden, attention, modules.SwiGLU(hidden, ffn)).bfloat16()
    x = torch.randn(batch, seq, hidden, dtype=torch.bfloat16, requires_grad=True)
    formula = activations.gated_layer_bytes(seq, batch, hidden, heads, kv_heads, ffn)
    assert modules.saved_bytes(block, x) == formula + STATISTICS * batch * seq


@given(st.integers(1, 64), st.integers(1, 4), st.integers(1, 4), st.sampled_from([1, 2, 4, 8]))
def test_ways_of_saving_save(seq: int, batch: int, heads_per_rank: int, t: int) -> None:
    heads = heads_per_rank * t
    shape = (8 * seq, batch, 16 * heads, heads)
    bare, tensor, sequence = (activations.layer_bytes(*shape, *way) for way in ((1, False), (t, False), (t, True)))
    assert sequence <= tensor <= bare
    assert sequence * t == bare
    for way in ((t, False), (t, True)):
        assert activations.layer_bytes(*shape, *way, "selective") < activations.layer_bytes(*shape, *way)
        split = activations.layer_bytes(*shape, *way, "none", 8)
        assert split == activations.layer_bytes(*shape, *way) / 8
    assert activations.layer_bytes(*shape) == memory.activation_bytes_per_layer(*shape)


def test_a_gated_layer_under_tensor_parallelism_keeps_its_own_heads_and_columns() -> None:
    s, b, h, a, g, f = 128, 2, 64, 8, 2, 96
    eight_inputs, own = 8 * s * b * h, s * b * (4 * 8 + 4 * 8 + 8 * 12 + 4)
    assert activations.gated_layer_bytes(s, b, h, a, g, f, 8) == eight_inputs + own
    assert activations.gated_layer_bytes(s, b, h, a, g, f, 8, True) == eight_inputs / 8 + own
    assert (
        activations.gated_layer_bytes(s, b, h, a, g, f, 8, recomputation="selective") == eight_inputs + own - s * b * 4
    )
    assert (
        activations.gated_layer_bytes(s, b, h, a, g, f, 8, flash=False)
        == eight_inputs + own - s * b * 4 + 2 * b * s * s
    )
    assert activations.gated_layer_bytes(s, b, h, a, g, f, 8, recomputation="full") == 2 * s * b * h


def test_stages_behind_the_first_hold_fewer_microbatches() -> None:
    held = [activations.stage_bytes("gpt3-175b", 2048, 1, 8, True, "selective", 1, 8, 32, stage) for stage in range(8)]
    layer = activations.layer_bytes(2048, 1, 12288, 96, 8, True, "selective")
    assert held[1:7] == [12 * layer * (8 - stage) for stage in range(1, 7)]
    assert held[0] == 12 * layer * 8 + 8 * 2048 * 12288 / 8
    head = 4 * 2048 * 12288 / 8 + 4 * 2048 * -(-50257 // 8)
    assert held[7] == 12 * layer + head


def test_gpipe_holds_every_microbatch_and_their_logits() -> None:
    one = activations.stage_bytes("llama2-7b", 1024, 1, 1, False, "none", 1, 4, 1, 3, "gpipe")
    assert activations.stage_bytes("llama2-7b", 1024, 1, 1, False, "none", 1, 4, 16, 3, "gpipe") == 16 * one
    assert activations.stage_bytes("llama2-7b", 1024, 1, 1, False, "none", 1, 4, 16, 3, "1f1b") == one


def test_one_chunk_interleaved_is_1f1b() -> None:
    for stage in range(4):
        assert activations.microbatches_in_flight(4, 8, "interleaved", stage, 1) == 4 - stage
        assert activations.microbatches_in_flight(4, 8, "1f1b", stage) == 4 - stage
    assert activations.microbatches_in_flight(4, 2, "1f1b") == 2
    assert activations.microbatches_in_flight(4, 9, "gpipe", 3) == 9


def test_interleaved_ranks_hold_at_most_everything() -> None:
    assert activations.microbatches_in_flight(8, 64, "interleaved", 0, 2) == 11.5
    assert activations.microbatches_in_flight(8, 8, "interleaved", 0, 2) == 8


@given(st.integers(1, 60), st.integers(1, 50), st.integers(1, 50))
def test_segments_of_the_best_length_peak_lowest(num_layers: int, layer: int, boundary: int) -> None:
    """Against a walk: all boundaries are kept while each segment, from the last, is run again and freed."""

    def peak(c: int) -> int:
        segments = [min(c, num_layers - first) for first in range(0, num_layers, c)]
        return len(segments) * boundary + max(segments) * layer

    walks = {c: peak(c) for c in range(1, num_layers + 1)}
    assert walks == {c: activations.segmented_bytes(num_layers, c, layer, boundary) for c in walks}
    assert walks[activations.best_layers_per_segment(num_layers, layer, boundary)] == min(walks.values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: activations.layer_bytes(8, 1, 8, 6, 4),
            "num_heads=6 cannot be split over tensor_parallel=4 ranks",
        ),
        (
            lambda: activations.layer_bytes(9, 1, 8, 2, context_parallel=2),
            "seq_len=9 cannot be split over context_parallel=2 ranks",
        ),
        (lambda: activations.layer_bytes(8, 1, 8, 2, recomputation="some"), "recomputation must be one of none, "),
        (lambda: activations.stage_bytes("deepseek-v3", 8), "activations are modelled for dense models without MLA"),
        (lambda: activations.segmented_bytes(4, 5, 1, 1), "layers_per_segment=5 are more than num_layers=4"),
        (
            lambda: activations.microbatches_in_flight(4, 6, "interleaved", 0, 2),
            "the interleaved schedule needs microbatches in multiples of the ranks, got 6 on 4",
        ),
        (
            lambda: activations.microbatches_in_flight(4, 8, "1f1b", 0, 2),
            "num_chunks=2 needs schedule 'interleaved', got '1f1b'",
        ),
        (lambda: activations.microbatches_in_flight(4, 8, "zb", 0), "schedule must be one of "),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message.startswith(message)
