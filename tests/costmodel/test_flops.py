"""FLOPs by formula against what torch counts, and invariants of the products."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from kit.costmodel import flops, shapes
from kit.errors import KitError
from tests.costmodel import modules


def counted(module: torch.nn.Module, hidden: int, batch: int, seq: int) -> tuple[int, int]:
    """(forward, backward) as torch counts the products that run."""
    x = torch.randn(batch, seq, hidden, device="meta", requires_grad=True)
    with FlopCounterMode(display=False) as forward:
        output = module(x)
    with FlopCounterMode(display=False) as backward:
        output.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


def test_output_matrix_weighs_as_many_layers_as_torch_counts() -> None:
    hidden, vocab, seq = 64, 1000, 100
    with torch.device("meta"):
        block, head = modules.GPTBlock(hidden, 4), torch.nn.Linear(hidden, vocab)
    ratio = flops.logits_in_layers(seq, hidden, vocab)
    for of_head, of_layer in zip(counted(head, hidden, 2, seq), counted(block, hidden, 2, seq), strict=True):
        assert ratio == pytest.approx(of_head / of_layer)
    assert flops.logits_in_layers(2048, 4096, 51200) == pytest.approx(51200 / (12 * 4096 + 2 * 2048))


@pytest.mark.parametrize(("hidden", "heads", "batch", "seq"), [(64, 4, 2, 32), (96, 3, 1, 100)])
def test_gpt_layer_costs_what_torch_counts(hidden: int, heads: int, batch: int, seq: int) -> None:
    with torch.device("meta"):
        block = modules.GPTBlock(hidden, heads)
    forward, backward = counted(block, hidden, batch, seq)
    assert flops.layer_forward_flops(seq, batch, hidden) == forward
    assert flops.layer_backward_flops(seq, batch, hidden) == backward


def test_gated_layer_with_grouped_heads_costs_what_torch_counts() -> None:
    """torch counts what is_causal computes without a mask: in full."""
    with torch.device("meta"):
        block = modules.LlamaBlock(64, modules.GroupedAttention(64, 4, 2), modules.SwiGLU(64, 160))
        linear, _ = counted(block.mlp, 64, 2, 32)
        attention = sum(counted(getattr(block.attention, name), 64, 2, 32)[0] for name in ("q", "k", "v", "out"))
    core = flops.attention_core_flops(32, 2, 4, 16)
    got = flops.layer_forward_flops(32, 2, 64, 160, 4, 2, gated=True)
    assert got == linear + attention + core


def test_a_causal_mask_halves_the_core_and_nothing_else() -> None:
    in_full, halved = (flops.layer_forward_flops(64, 2, 32, causal=causal) for causal in (False, True))
    assert in_full - halved == flops.attention_core_flops(64, 2, 1, 32, causal=True)
    assert flops.attention_core_flops(64, 2, 1, 32) == 2 * flops.attention_core_flops(64, 2, 1, 32, causal=True)


def test_flash_attention_runs_two_products_forward_and_five_backward() -> None:
    one = 2 * 64 * 64 * 16 * 3 * 2
    for direction, plain, flash in (("forward", 2, 2), ("backward", 4, 5), ("both", 6, 7)):
        assert flops.attention_core_flops(64, 2, 3, 16, False, direction) == plain * one
        assert flops.attention_core_flops(64, 2, 3, 16, False, direction, flash=True) == flash * one


@pytest.mark.parametrize("model", shapes.names())
def test_a_token_alone_costs_twice_the_weights_of_products(model: str) -> None:
    """Of an untied embedding nothing is multiplied; norms, biases and positions neither."""
    shape = shapes.shape_named(model)
    core = 2 * shape.num_layers * shape.num_heads * (shape.head_size + shape.v_head_size)
    weights = (flops.forward_flops_per_token(model, 1) - core) / 2
    active = shapes.model_params(model, "active")
    outside = (0 if shape.tied_embeddings else shape.embedding_params) + shape.position_params
    vectors = active - outside - weights
    assert 0 < vectors < 0.005 * active


@pytest.mark.parametrize("model", ["gpt3-175b", "llama3.1-70b", "deepseek-v3"])
def test_decoding_every_token_costs_a_causal_forward(model: str) -> None:
    """Token i attends to i tokens, so a sequence costs s(s+1)/2 of the core where a full square has s^2."""
    s = 7
    shape = shapes.shape_named(model)
    decoded = sum(flops.decode_flops_per_token(model, i) for i in range(1, s + 1))
    square = flops.forward_flops_of(shape, 1, s)
    of_one = 2 * shape.num_layers * shape.num_heads * (shape.head_size + shape.v_head_size)
    assert square - decoded == of_one * (s * s - s * (s + 1) // 2)


@given(
    heads_per_rank=st.integers(1, 4),
    ranks=st.sampled_from([1, 2, 4, 8]),
    seq=st.integers(1, 200),
    batch=st.integers(1, 4),
    model=st.sampled_from(["gpt", "llama", "mla", "moe"]),
)
def test_tensor_parallel_ranks_share_the_products(
    heads_per_rank: int, ranks: int, seq: int, batch: int, model: str
) -> None:
    """All but what is replicated: the router, and the down-projections of MLA."""
    heads = heads_per_rank * ranks
    figures: dict[str, int | str | bool] = {"num_layers": 1, "hidden_size": 16 * heads, "num_heads": heads}
    figures |= {"vocab_size": 10, "ffn_size": 24 * ranks, "gated": model != "gpt"}
    if model == "mla":
        figures |= {"attention": "mla", "q_lora_rank": 12, "kv_lora_rank": 8, "qk_nope_size": 16, "qk_rope_size": 4}
        figures |= {"v_head_size": 8}
    if model == "moe":
        figures |= {"num_experts": 4, "experts_per_token": 2, "expert_ffn_size": 8 * ranks, "num_shared_experts": 1}
    shape = shapes.shape_of(**figures)
    whole = flops.layer_gemms(shape, seq, batch, 1, model == "moe")
    shared = flops.layer_gemms(shape, seq, batch, ranks, model == "moe")
    replicated = {"router", "q_down", "kv_down"}
    assert [gemm.name for gemm in whole] == [gemm.name for gemm in shared]
    for one, part in zip(whole, shared, strict=True):
        assert part.flops * (1 if one.name in replicated else ranks) == one.flops, one.name


@given(
    st.sampled_from(shapes.names()),
    st.integers(1, 8),
    st.integers(1, 4096),
    st.booleans(),
)
def test_recomputation_only_adds(model: str, batch: int, seq: int, causal: bool) -> None:
    """Full adds a third of the layers at most, since the logits are not run again."""
    none, selective, full = (
        flops.iteration_flops(model, batch, seq, how, causal) for how in ("none", "selective", "full")
    )
    assert none < selective < full < none * 4 / 3


def test_key_value_heads_that_ranks_replicate_are_multiplied_by_each() -> None:
    shape = shapes.shape_named("llama3.1-8b")
    eight, sixteen = (flops.layer_gemms(shape, 128, 1, ranks)[0] for ranks in (8, 16))
    assert (eight.n, sixteen.n) == ((4 + 2) * 128, (2 + 2) * 128)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: flops.layer_gemms(shapes.shape_named("gpt2"), 8, 1, 8),
            "num_heads=12 cannot be split over tensor_parallel=8 ranks",
        ),
        (
            lambda: flops.layer_gemms(shapes.shape_named("llama-65b"), 8, 1, 3),
            "num_heads=64 cannot be split over tensor_parallel=3 ranks",
        ),
        (lambda: flops.iteration_flops("gpt2", 1, 8, "some"), "recomputation must be one of none, selective, full"),
        (lambda: flops.gemm_flops(0, 1, 1), "m must be a whole number of at least 1, got 0"),
        (lambda: flops.mfu(1e9, 1e12, 8, 300e12), "1e+21 FLOP/s are more than the peak of all GPUs, 2.4e+15"),
        (lambda: flops.mfu(1, 1, 8, 0), "peak_flops_per_s must be above 0, got 0 in all"),
        (lambda: flops.achieved_flops_per_s(1, 0, 8), "iteration_s must be above 0"),
        (lambda: flops.training_flops(-1, 1), "num_params must be a number of at least 0, got -1"),
        (lambda: flops.layer_backward_flops(1, 1, 1, "all"), "part must be one of input, weight, both, got 'all'"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message.startswith(message)
