"""Rooflines of products and layers, against counts by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import flops, roofline, shapes
from kit.errors import KitError

DIMS = st.integers(1, 5000)


def test_ridge_points_of_datasheets() -> None:
    """A100: 312 TFLOP/s over 2039 GB/s; H100: 989.4 over 3350, fp8 twice that."""
    assert roofline.ridge_point("a100") == pytest.approx(153.0, abs=0.05)
    assert roofline.ridge_point("h100") == pytest.approx(295.3, abs=0.05)
    assert roofline.ridge_point("h100", "fp8_e4m3") == pytest.approx(590.7, abs=0.05)
    assert roofline.peak_flops_per_s("a100", "tf32") == 156e12


@given(DIMS, DIMS, DIMS)
def test_a_product_takes_the_longer_of_its_two_times(m: int, n: int, k: int) -> None:
    it = roofline.gemm(m, n, k, profile="a100")
    assert it.flops == 2 * m * n * k
    assert it.bytes == 2 * (m * k + k * n + m * n)
    assert it.time_s == max(it.flops / 312e12, it.bytes / 2039e9)
    assert (it.bound_by == "compute") is (it.intensity >= roofline.ridge_point("a100"))
    assert roofline.gemm_attainable_flops_per_s(m, n, k, profile="a100") == pytest.approx(
        min(312e12, it.intensity * 2039e9)
    )


def test_cubes_and_vectors() -> None:
    assert roofline.gemm_intensity(4096, 4096, 4096) == pytest.approx(4096 / 3)
    assert roofline.gemm_intensity(1, 4096, 4096) == pytest.approx(1, rel=1e-3)
    assert roofline.gemm_intensity(4096, 4096, 4096, "fp8_e4m3") == 2 * roofline.gemm_intensity(4096, 4096, 4096)


@given(st.integers(600, 20000), st.integers(600, 20000))
def test_the_fewest_rows_for_compute(n: int, k: int) -> None:
    m = roofline.least_rows_for_compute(n, k, profile="a100")
    assert roofline.gemm(m, n, k, profile="a100").bound_by == "compute"
    assert m == 1 or roofline.gemm(m - 1, n, k, profile="a100").bound_by == "memory"


def test_narrow_products_are_bound_by_memory_for_ever() -> None:
    with pytest.raises(KitError, match=r"\[m, 128\] by \[128, 128\] in bf16 is bound by h100's memory for every m"):
        roofline.least_rows_for_compute(128, 128)


@pytest.mark.parametrize("model", ["llama2-7b", "llama3.1-8b", "gpt3-175b"])
def test_a_layer_s_flops_are_those_of_flops(model: str) -> None:
    shape = shapes.shape_named(model)
    forward = flops.flops_of(flops.layer_gemms(shape, 512, 2))
    for flash in (True, False):
        assert roofline.total(roofline.layer(model, 2, 512, flash=flash)).flops == forward
    unfused = roofline.total(roofline.layer(model, 2, 512, "training", flash=False)).flops
    assert unfused == 3 * forward
    core = flops.core_of(flops.layer_gemms(shape, 512, 2), False)
    assert roofline.total(roofline.layer(model, 2, 512, "training")).flops == unfused + core / 2
    causal = roofline.total(roofline.layer(model, 2, 512, causal=True)).flops
    assert causal == forward - core / 2


def test_scores_that_stay_on_the_chip_save_their_bytes() -> None:
    """Llama 2 7B, s = 4096: two products that write and read [32, s, s] in 2 bytes."""
    fused, unfused = (
        sum(
            it.bytes
            for it in roofline.layer("llama2-7b", 1, 4096, flash=flash)
            if it.name in ("attention", "scores", "values")
        )
        for flash in (True, False)
    )
    assert unfused - fused == 2 * 32 * 4096 * 4096 * 2


def test_fused_attention_reads_its_inputs_again_in_backward() -> None:
    """Llama 3.1 8B, s = 1024: q and output of 4096, k and v of 1024; backward reads all again and writes gradients."""
    forward, training = (
        next(it for it in roofline.layer("llama3.1-8b", 1, 1024, phase) if it.name == "attention").bytes
        for phase in ("prefill", "training")
    )
    assert forward == 2 * 1024 * (2 * 4096 + 2 * 1024)
    assert training == 3 * forward


def test_decoding_reads_weights_and_cache() -> None:
    """Llama 3.1 8B, batch 4, 1000 tokens of context: 4 x 1000 x 2 x 8 x 128 numbers of cache in a layer."""
    rows = {it.name: it for it in roofline.layer("llama3.1-8b", 4, 1000, "decode")}
    attention = rows.pop("attention")
    assert attention.bytes == 2 * (4 * 1000 * 2 * 8 * 128 + 2 * 4 * 4096)
    assert attention.flops == 4 * 4 * 1000 * 4096
    weights = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336
    activations = 4 * (4096 + 6144 + 2 * 4096 + 4096 + 2 * 14336 + 14336 + 4096)
    assert sum(it.bytes for it in rows.values()) == 2 * (weights + activations)
    assert {it.bound_by for it in (*rows.values(), attention)} == {"memory"}


def test_a_larger_batch_shares_the_weights_and_not_the_cache() -> None:
    few, many = (roofline.decode_step_s("llama2-7b", batch, 16) for batch in (1, 32))
    assert many < 1.3 * few
    few, many = (roofline.decode_step_s("llama2-7b", batch, 16384) for batch in (1, 32))
    assert many > 10 * few


def test_the_floor_of_a_token_is_its_weights_over_the_bandwidth() -> None:
    shape = shapes.shape_named("llama2-7b")
    weights = shapes.params_of(shape) - shape.embedding_params
    assert roofline.decode_step_s("llama2-7b", 1, 1) == pytest.approx(2 * weights / 3.35e12, rel=2e-3)
    assert roofline.time_of_bytes_s(3.35e12) == 1


def test_prefill_of_long_prompts_is_near_2n_flops_a_token() -> None:
    seconds = roofline.prefill_s("llama2-7b", 8, 2048)
    shape = shapes.shape_named("llama2-7b")
    layers = 2 * (shapes.params_of(shape, "layers")) * 8 * 2048
    core = 32 * 4 * 8 * 2048**2 * 4096 / 2
    assert seconds == pytest.approx((layers + core) / 989.4e12, rel=0.01)


def test_tensor_parallelism_splits_a_layer() -> None:
    whole, part = (roofline.total(roofline.layer("llama2-7b", 1, 4096, tensor_parallel=t)).flops for t in (1, 8))
    assert whole == 8 * part


def test_experts_are_read_as_far_as_tokens_reach() -> None:
    """Mixtral: 2 of 8 experts a token."""
    read = {}
    for batch in (1, 3, 64):
        rows = {it.name: it for it in roofline.layer("mixtral-8x7b", batch, 16, "decode")}
        read[batch] = round(rows["experts_out"].bytes / (2 * 14336 * 4096), 1)
    assert read == {1: 2.0, 3: 6.0, 64: 8.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: roofline.peak_flops_per_s("a100", "fp8_e4m3"),
            "profile a100 has no peak of fp8_e4m3, only of float64, float32, tf32, float16, bfloat16",
        ),
        (lambda: roofline.gemm(0, 1, 1), "m must be a whole number of at least 1, got 0"),
        (
            lambda: roofline.layer("llama2-7b", 1, 8, "backward"),
            "phase must be one of prefill, training, decode, got 'backward'",
        ),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message
