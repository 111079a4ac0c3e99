"""Parameters and model state of one rank: splits add up to the model, and to torch modules split by hand."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import memory, recipes, shapes
from kit.errors import KitError
from tests.costmodel import modules

NAMES = st.sampled_from(shapes.names())


@given(st.integers(1, 200), st.integers(1, 40))
def test_stages_hold_every_layer_once_and_as_evenly_as_can_be(num_layers: int, num_stages: int) -> None:
    if num_layers < num_stages:
        with pytest.raises(KitError):
            memory.layers_on_stage(num_layers, num_stages)
        return
    ranges = [memory.layer_range(num_layers, num_stages, stage) for stage in range(num_stages)]
    assert ranges[0][0] == 0 and ranges[-1][1] == num_layers
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ranges))
    counts = [memory.layers_on_stage(num_layers, num_stages, stage) for stage in range(num_stages)]
    assert max(counts) - min(counts) <= 1
    assert counts[0] == min(counts)  # the embedding is there, and the most microbatches


def test_layers_of_llama_3_405b_on_16_stages() -> None:
    """arXiv 2407.21783, section 3.3.2: one layer fewer on the first and on the last stage."""
    assert [memory.layers_on_stage(126, 16, stage) for stage in range(16)] == [7, *[8] * 14, 7]


@given(NAMES, st.integers(1, 12))
def test_stages_together_hold_the_model_and_a_copy_of_a_tied_embedding(model: str, num_stages: int) -> None:
    shape = shapes.shape_named(model)
    copy = shape.embedding_params if shape.tied_embeddings and num_stages > 1 else 0
    held = sum(memory.rank_params(model, 1, num_stages, stage) for stage in range(num_stages))
    assert held == shapes.model_params(model) + copy


def test_a_gpt_layer_split_over_two_ranks_holds_half_of_each_matrix_and_whole_norms() -> None:
    """A rank's block built by hand: half of QKV with biases, half of fc_1 with biases; out and fc_2 with whole ones."""
    h = 64
    shape = shapes.shape_of(num_layers=1, hidden_size=h, num_heads=4, vocab_size=101, max_positions=16)
    with torch.device("meta"):
        mine = [
            torch.nn.Embedding(51, h),  # 101 padded to 102
            torch.nn.Embedding(16, h),
            *(torch.nn.LayerNorm(h) for _ in range(3)),
            torch.nn.Linear(h, 3 * h // 2),
            torch.nn.Linear(h // 2, h),
            torch.nn.Linear(h, 2 * h),
            torch.nn.Linear(2 * h, h),
        ]
    assert memory.rank_params_of(shape, 2) == (sum(modules.num_params(module) for module in mine), 0)


def test_a_llama_layer_with_fewer_key_value_heads_than_ranks_holds_one_of_them() -> None:
    h, ranks = 64, 8
    shape = shapes.shape_of(
        num_layers=1, hidden_size=h, num_heads=8, num_kv_heads=2, ffn_size=80, vocab_size=8,
        tied_embeddings=False, gated=True, linear_biases=False, norm="rmsnorm",
    )  # fmt: skip
    layer = h * (8 + 2 * 8) + 8 * h + 3 * h * 10 + 2 * h
    assert memory.rank_params_of(shape, ranks) == (layer + 2 * h + h, 0)


@given(st.sampled_from(["gpt3-175b", "llama3.1-405b", "palm-540b", "deepseek-v3"]), st.sampled_from([2, 4, 8]))
def test_tensor_parallel_ranks_together_hold_the_model_and_copies_of_what_is_replicated(model: str, t: int) -> None:
    shape = shapes.shape_named(model)
    held = t * sum(memory.rank_params_of(shape, t))
    copies = held - shape.total_params()
    h, layers = shape.hidden_size, shape.num_layers
    each = shape.norms_per_layer * shape.norm_params + (2 * h if shape.linear_biases else 0)
    if shape.attention == "mla":
        each += shape.q_lora_rank * (h + 1) + h * (shape.kv_lora_rank + shape.qk_rope_size) + shape.kv_lora_rank
    elif t > shape.num_kv_heads:
        each += 2 * h * shape.head_size * (t - shape.num_kv_heads) // (t - 1)
    replicated = layers * each + shape.position_params + shape.norm_params
    replicated += shape.num_moe_layers * shape.router_params
    padding = (-shape.vocab_size % t) * h
    assert copies == (t - 1) * replicated + padding


def test_expert_parallel_ranks_share_routed_experts_only() -> None:
    shape = shapes.shape_named("deepseek-v3")
    dense, experts = memory.rank_params_of(shape)
    assert experts == 58 * 256 * 3 * 7168 * 2048
    assert memory.rank_params_of(shape, expert_parallel=64) == (dense, experts // 64)
    assert memory.rank_params_of(shape, 2, expert_parallel=8)[1] == experts // 16
    assert memory.rank_params_of(shape, 2, expert_parallel=8, expert_tensor_parallel=1)[1] == experts // 8


def test_the_first_stages_hold_the_dense_layers() -> None:
    """DeepSeek-V3: layers 0 to 2 of 61 are dense."""
    shape = shapes.shape_named("deepseek-v3")
    assert [memory.rank_params_of(shape, 1, 61, stage)[1] > 0 for stage in range(61)] == [False] * 3 + [True] * 58


def test_experts_and_dense_parameters_are_sharded_over_their_own_replicas() -> None:
    """128 ranks of data parallelism: dense state over 128, each of 64 groups of experts over 2."""
    shape = shapes.shape_named("deepseek-v3")
    dense, experts = memory.rank_params_of(shape, 1, 16, 5, 64)
    got = memory.rank_state_bytes("deepseek-v3", "zero", 1, 128, 1, 16, 5, 1, 64)
    assert got == dense * (4 + 12 / 128) + experts * (4 + 12 / 2)


def test_context_parallel_ranks_are_replicas_to_shard_over() -> None:
    two_axes = memory.rank_state_bytes("llama2-7b", "megatron_bf16", 1, data_parallel=2, context_parallel=4)
    assert two_axes == memory.rank_state_bytes("llama2-7b", "megatron_bf16", 1, data_parallel=8)
    assert two_axes == 6_738_415_616 * 7.5


@given(st.sampled_from(sorted(recipes.RECIPES)), st.sampled_from([1, 2, 8, 64]), st.integers(0, 10**12))
def test_each_stage_holds_no_more_and_the_last_a_share_of_everything(recipe: str, ranks: int, params: int) -> None:
    held = [memory.recipe_state_bytes(params * ranks, recipe, ranks, stage) for stage in range(4)]
    assert held == sorted(held, reverse=True)
    total = recipes.part_bytes(recipe, "total")
    assert held[0] == params * ranks * total
    assert held[3] == params * total
    for stage in range(4):
        assert recipes.bytes_per_param(recipe, ranks, stage) * params * ranks == pytest.approx(held[stage])


@pytest.mark.parametrize("recipe", sorted(recipes.RECIPES))
def test_parts_of_a_recipe_are_sharded_from_the_stage_that_it_says(recipe: str) -> None:
    """Without the share of one in a million ranks, each stage keeps what it does not shard yet."""
    for stage in range(4):
        kept = sum(
            recipes.part_bytes(recipe, part) for part in recipes.PARTS if recipes.sharded_from_stage(part) > stage
        )
        assert round(recipes.bytes_per_param(recipe, 10**6, stage)) == kept


@pytest.mark.parametrize("recipe", sorted(recipes.RECIPES))
def test_the_convention_of_a_recipe_names_its_sum(recipe: str) -> None:
    """Each ends in the terms that it adds, "2 + 2 + 12", for a reader to check."""
    it = recipes.RECIPES[recipe]
    terms = it.convention.rsplit(": ", 1)[1]
    assert sum(int(term) for term in terms.split(" + ")) == it.total
    assert it.source


def test_frozen_parameters_cost_their_bytes_only() -> None:
    """LoRA on 7 billion parameters, 20 million trained."""
    assert memory.frozen_and_trained_bytes(7e9, 20e6) == 14e9 + 16 * 20e6
    assert memory.frozen_and_trained_bytes(7e9, 20e6, "zero", 8, 3) == (14e9 + 16 * 20e6) / 8
    assert memory.frozen_and_trained_bytes(7e9, 20e6, "zero", 8, 2) == 14e9 + 2 * 20e6 + 14 * 20e6 / 8
    assert memory.frozen_and_trained_bytes(7e9, 0, frozen_bytes_per_param=0.5) == 3.5e9


def test_lora_adds_two_thin_matrices() -> None:
    down, up = torch.nn.Linear(48, 8, bias=False), torch.nn.Linear(8, 96, bias=False)
    assert memory.lora_params(3, 48, 96, 8, 2) == 3 * 2 * (modules.num_params(down) + modules.num_params(up))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: memory.rank_params("gpt2", 5), "num_heads=12 cannot be split over tensor_parallel=5 ranks"),
        (lambda: memory.rank_params("gpt2", 1, 13), "num_layers=12 are fewer than pipeline_parallel=13 stages"),
        (lambda: memory.rank_params("gpt2", 1, 4, 4), "pipeline_stage must be a whole number from 0 to 3, got 4"),
        (lambda: memory.rank_params("gpt2", expert_parallel=2), "expert_parallel=2 needs a mixture of experts"),
        (
            lambda: memory.rank_params("mixtral-8x7b", expert_parallel=3),
            "num_experts=8 cannot be split over expert_parallel=3 ranks",
        ),
        (
            lambda: memory.rank_state_bytes("mixtral-8x7b", data_parallel=4, expert_parallel=8),
            "data_parallel x context_parallel x tensor_parallel=4 cannot be split over expert_parallel x "
            "expert_tensor_parallel=8 ranks",
        ),
        (lambda: memory.recipe_state_bytes(1, "adam"), "recipe must be one of zero, megatron_bf16, "),
        (lambda: recipes.bytes_per_param("zero", 8, 7), "zero_stage must be a whole number from 0 to 3, got 7"),
        (lambda: recipes.part_bytes("zero", "momenta"), "part must be one of params, grads, "),
        (lambda: memory.fsdp_peak_param_numel(10, 11, 2), "largest_unit_params=11 are more than num_params=10"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message.startswith(message)
