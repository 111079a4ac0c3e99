"""Bytes for each parameter, as papers and tools print them."""

from __future__ import annotations

import pytest

from kit.costmodel import estimators, memory, recipes

# One number of bytes for a recipe, the source and what it prints: the conventions differ, which is the point.
PRINTED = [
    ("zero", 0, 1, 16),  # ZeRO, arXiv 1910.02054, section 3.1: 2 + 2 + 12
    ("megatron_bf16", 0, 8, 18),  # Megatron-LM, docs of the distributed optimizer: bf16 params, fp32 grads
    ("megatron_bf16", 1, 8, 6 + 12 / 8),
    ("megatron_fp16", 0, 8, 20),  # the same table: fp16 params, fp16 grads
    ("megatron_fp16", 1, 8, 4 + 16 / 8),
    ("fp32_adam", 1, 8, 8 + 8 / 8),  # the same table: fp32 params, fp32 grads
    ("fp32_adam", 0, 1, 16),  # Accelerate, estimate-memory: 4 times 4 bytes
    ("zero_infinity", 0, 1, 20),  # ZeRO-Infinity, arXiv 2104.07857, section 3; MT-NLG, arXiv 2201.11990
    ("deepspeed_zero3", 3, 1, 18),  # DeepSpeed docs, ZeRO-3: 18P/n
    ("deepspeed_zero3", 3, 8, 18 / 8),
    ("hf_mixed", 0, 1, 18),  # transformers, model memory anatomy: 6 + 8 + 4
    ("hf_mixed_adam_8bit", 0, 1, 6 + 2 + 4),
    ("hf_mixed_sgd", 0, 1, 6 + 4 + 4),
    ("fp32_rmsprop", 0, 1, 12),  # GPipe, arXiv 1811.06965, section 3
    ("bf16_adam", 0, 1, 8),
    ("bf16_adam_fp32_moments", 0, 1, 12),
    ("mixed_without_grads", 0, 1, 14),
    ("bf16_moments", 0, 1, 14),
    ("mixed_muon", 0, 1, 12),
]


@pytest.mark.parametrize(("recipe", "zero_stage", "data_parallel", "printed"), PRINTED)
def test_bytes_of_each_convention(recipe: str, zero_stage: int, data_parallel: int, printed: float) -> None:
    assert recipes.bytes_per_param(recipe, data_parallel, zero_stage) == printed


def test_gpt_2_needs_24_gb_of_which_3_are_its_parameters() -> None:
    """ZeRO, arXiv 1910.02054, section 3.1."""
    assert memory.recipe_state_bytes(1.5e9, "zero") == 24e9
    assert 1.5e9 * recipes.part_bytes("zero", "params") == 3e9


def test_figure_1_of_zero() -> None:
    """ZeRO, arXiv 1910.02054, Figure 1: 7.5 billion parameters on 64 ranks, in GB."""
    got = [round(memory.recipe_state_bytes(7.5e9, "zero", 64, stage) / 1e9, 1) for stage in range(4)]
    assert got == [120, 31.4, 16.6, 1.9]


def test_anatomy_of_hugging_face() -> None:
    """transformers, docs: model memory anatomy; inference keeps the weights only."""
    parts = {part: recipes.part_bytes("hf_mixed", part) for part in recipes.PARTS}
    assert recipes.weight_bytes("hf_mixed") == 6
    assert recipes.weight_bytes("fp32_adam") == 4
    assert parts["momentum"] + parts["variance"] == 8
    assert parts["grads"] == 4
    eight_bit = recipes.RECIPES["hf_mixed_adam_8bit"]
    assert eight_bit.momentum + eight_bit.variance == 2


def test_16_gigabytes_for_a_billion_parameters_and_not_4() -> None:
    """A public answer key gives 70B 280 GB for weights, gradients and optimizer: those are fp32 weights alone."""
    assert memory.recipe_state_bytes(70e9, "zero") == 1120e9
    assert 70e9 * recipes.part_bytes("fp32_adam", "params") == 280e9


def test_7_billion_parameters_are_112_gb_or_98_gb_but_one_page_has_to_say_which() -> None:
    """A public answer key prints 16 bytes in its summary and 14 in its table: the second leaves gradients out."""
    assert memory.recipe_state_bytes(7e9, "zero") == 112e9
    assert memory.recipe_state_bytes(7e9, "mixed_without_grads") == 98e9


# DeepSpeed docs, memory requirements: t5-3b on one node of 8 GPUs; "GB" there are GiB. Live counts the parameters,
# cold takes 2851e6.
T5_3B = {"cold": 2851e6, "live": 2851598336}


@pytest.mark.parametrize(
    ("way", "is_offloaded", "cpu", "gpu"),
    [
        ("cold", True, 127.45, 5.31),
        ("cold", False, 127.45, 15.93),
        ("live", True, 127.48, 5.31),
        ("live", False, 127.48, 15.93),
    ],
)
def test_estimates_of_deepspeed_zero2(way: str, is_offloaded: bool, cpu: float, gpu: float) -> None:
    on_gpu = estimators.deepspeed_zero2_gpu_bytes(T5_3B[way], 8, is_offloaded)
    on_cpu = estimators.deepspeed_zero2_cpu_bytes(T5_3B[way], 8, 1, is_offloaded)
    assert round(on_gpu / 2**30, 2) == gpu
    assert round(on_cpu / 2**30, 2) == cpu


def test_deepspeed_s_estimate_of_zero_2_shards_as_stage_1_does() -> None:
    """4P + 16P/n: 16-bit gradients count in full. By the ZeRO paper stage 2 shards them: 2P + 18P/n here."""
    estimate = estimators.deepspeed_zero2_gpu_bytes(8e9, 8)
    assert estimate == memory.recipe_state_bytes(8e9, "zero_infinity", 8, zero_stage=1)
    assert memory.recipe_state_bytes(8e9, "zero_infinity", 8, zero_stage=2) == 2 * 8e9 + 18 * 1e9


def test_estimates_of_deepspeed_zero3() -> None:
    """DeepSpeed, estimate_zero3_model_states_mem_needs: 4 x largest + 18P/n, 2P/n with the optimizer on CPU, 0."""
    got = [estimators.deepspeed_zero3_gpu_bytes(8e9, 1e8, 8, where) for where in ("none", "optimizer", "all")]
    assert got == [4e8 + 18e9, 4e8 + 2e9, 4e8]


def test_overlap_of_deepspeed_needs_9_gb() -> None:
    """transformers, docs of DeepSpeed: buckets of 5e8 elements, factor 4.5."""
    assert estimators.deepspeed_overlap_buffer_bytes(5e8) == 9e9


def test_zero_infinity_needs_20_bytes_for_each_of_12_l_h2() -> None:
    """ZeRO-Infinity, arXiv 2104.07857, section 3."""
    params = 12 * 100 * 10_000**2
    assert estimators.zero_infinity_state_bytes(100, 10_000) == memory.recipe_state_bytes(params, "zero_infinity")
    # h to 4h: parameters and gradients of 2 bytes
    assert estimators.zero_infinity_working_memory_bytes(10_000) == (2 + 2) * 10_000 * 40_000
    assert estimators.zero_infinity_activation_bytes(1024, 4, 10_000, 80) == 4 * 1024 * (160_000 + 2 * 80 * 1024)


def test_fsdp_holds_its_shards_and_one_unit() -> None:
    """PyTorch FSDP, arXiv 2304.11277, section 3.2.1."""
    assert memory.fsdp_peak_param_numel(8000, 1000, 8) == 8000 / 8 + 1000


def test_fsdp_holds_each_unit_that_is_fetched_ahead() -> None:
    """Two units where one is fetched ahead, the whole model where more are asked for than it has."""
    assert memory.fsdp_peak_param_numel(8000, 1000, 8, num_gathered_units=2) == 8000 / 8 + 2000
    assert memory.fsdp_peak_param_numel(8000, 3000, 8, num_gathered_units=3) == 8000 / 8 + 8000
