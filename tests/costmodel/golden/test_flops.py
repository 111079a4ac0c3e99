"""FLOPs and utilisation against the papers' tables."""

from __future__ import annotations

import pytest

from kit.costmodel import flops, shapes

# PTD-P, arXiv 2104.04473, Table 1: layers, hidden, GPUs, batch, TFLOP/s of a GPU, % of 312, PFLOP/s of all.
PTDP = [
    (24, 2304, 32, 512, 137, 44, 4.4),
    (30, 3072, 64, 512, 138, 44, 8.8),
    (36, 4096, 128, 512, 142, 46, 18.2),
    (40, 6144, 256, 1024, 135, 43, 34.6),
    (48, 8192, 512, 1536, 138, 44, 70.8),
    (60, 10240, 1024, 1792, 140, 45, 143.8),
    (80, 12288, 1536, 2304, 148, 47, 227.1),
    (96, 16384, 1920, 2160, 155, 50, 297.4),
    (105, 20480, 2520, 2520, 163, 52, 410.2),
    (128, 25600, 3072, 3072, 163, 52, 502.0),
]


@pytest.mark.parametrize(("layers", "hidden", "gpus", "batch", "teraflops", "percent", "petaflops"), PTDP)
def test_table_1_of_ptdp(
    layers: int, hidden: int, gpus: int, batch: int, teraflops: int, percent: int, petaflops: float
) -> None:
    """Equation 3 is the sum of the products; TFLOP/s come back from the time that they imply, rounded in print."""
    s, V = 2048, 51200
    iteration = flops.gpt_iteration_flops(batch, s, layers, hidden, V)
    closed = 96 * batch * s * layers * hidden**2 * (1 + s / (6 * hidden) + V / (16 * layers * hidden))
    assert iteration == pytest.approx(closed, rel=1e-12)
    seconds = iteration / (petaflops * 1e15)
    assert flops.achieved_flops_per_s(iteration, seconds, gpus) / 1e12 == pytest.approx(teraflops, rel=5e-3)
    assert round(100 * flops.utilisation(teraflops, 312)) == percent
    used = flops.hfu(batch * s / seconds, iteration / (batch * s), gpus, 312e12)
    assert used == pytest.approx(teraflops / 312, rel=5e-3)


def test_layer_and_logits_of_ptdp() -> None:
    """PTD-P, appendix: 24 B s h^2 + 4 B s^2 h forward, 4 times that in all, 6 B s h V for the logits."""
    B, s, h, V, layers = 3, 1024, 768, 50304, 5
    forward = 24 * B * s * h**2 + 4 * B * s**2 * h
    assert flops.layer_forward_flops(s, B, h) == forward
    assert flops.logit_forward_flops(B, s, h, V) == 2 * B * s * h * V
    for recomputation, factor in (("none", 3), ("full", 4)):
        expected = layers * factor * forward + 6 * B * s * h * V
        assert flops.gpt_iteration_flops(B, s, layers, h, V, recomputation) == expected
    selective = flops.gpt_iteration_flops(B, s, layers, h, V, "selective")
    assert selective == layers * (3 * forward + 4 * B * s**2 * h) + 6 * B * s * h * V


def test_time_to_train_by_ptdp() -> None:
    """PTD-P, equation 4: 34 and 84 days. Trap: 84 needs the table's 1008e9 parameters, 1e12 gives 83."""
    cases = [(175e9, 300e9, 1024, 140e12, 34), (1008e9, 450e9, 3072, 163e12, 84), (1e12, 450e9, 3072, 163e12, 83)]
    for params, tokens, gpus, speed, days in cases:
        assert round(flops.training_flops(params, tokens, 8) / (gpus * speed) / 86400) == days


# GPT-3, arXiv 2005.14165, Table D.1: parameters in millions, tokens in billions, FLOPs each, FLOPs, PF-days.
TABLE_D1 = [
    (125, 300, 6, 2.25e20, 2.6),
    (356, 300, 6, 6.41e20, 7.42),
    (760, 300, 6, 1.37e21, 15.8),
    (1320, 300, 6, 2.38e21, 27.5),
    (2650, 300, 6, 4.77e21, 55.2),
    (6660, 300, 6, 1.2e22, 139),
    (12850, 300, 6, 2.31e22, 268),
    (174600, 300, 6, 3.14e23, 3640),
    (11000, 1000, 3, 3.3e22, 382),
    (3000, 1000, 3, 9.0e21, 104),
    (355, 250, 6, 5.33e20, 6.16),
    (355, 2000, 6, 4.26e21, 49.3),
]


@pytest.mark.parametrize(("millions", "billions", "each", "printed", "days"), TABLE_D1)
def test_table_d1_of_gpt_3(millions: int, billions: int, each: int, printed: float, days: float) -> None:
    got = flops.training_flops(millions * 1e6, billions * 1e9, each)
    assert got == pytest.approx(printed, rel=5e-3)
    assert flops.petaflop_s_days(got) == pytest.approx(days, rel=5e-3)


def test_palm_540b_trains_at_46_2_percent() -> None:
    """PaLM, arXiv 2204.02311, section 4.1, Table 3: 45.7% without attention, 46.2% with it; 3.28 TFLOP a token."""
    each = flops.palm_flops_per_token(540.35e9, 118, 48, 256, 2048)
    assert round(each / 1e12, 2) == 3.28
    assert round(100 * flops.mfu(238300, each, 6144, 275e12), 1) == 46.2
    assert round(100 * flops.mfu(238300, 6 * 540.35e9, 6144, 275e12), 1) == 45.7


def test_mt_nlg_530b_in_palm_s_table() -> None:
    """PaLM, Table 3 prints 29.7% and 30.2%, cut off: 65.43K tokens/s on 2240 GPUs of 312 TFLOP/s."""
    each = flops.palm_flops_per_token(530e9, 105, 128, 160, 2048)
    assert int(1000 * flops.mfu(65430, 6 * 530e9, 2240, 312e12)) == 297
    assert int(1000 * flops.mfu(65430, each, 2240, 312e12)) == 302


def test_palm_s_formula_is_the_sum_of_the_products_but_for_the_embedding_and_vectors() -> None:
    """6N counts each parameter once: PaLM's embedding is tied, so the output matrix stands for it."""
    by_formula = flops.palm_flops_per_token(shapes.model_params("palm-540b"), 118, 48, 256, 2048)
    by_products = flops.flops_per_token("palm-540b", 2048)
    norms = shapes.model_params("palm-540b", "norms")
    assert by_formula - by_products == 6 * norms


def test_mfu_of_llama_3() -> None:
    """Llama 3, arXiv 2407.21783, Table 4. Trap: 400 of 989 are 40.4% and it prints 41, of a rounded 400."""
    percents = [100 * flops.utilisation(speed, 989) for speed in (430, 400, 380)]
    assert [round(percent) for percent in percents] == [43, 40, 38]


def test_mfu_of_fsdp_and_deepspeed_leaves_attention_out() -> None:
    """Hugging Face blog, from DeepSpeed to FSDP: 0.41 and 0.40 of 312 TFLOP/s are 6N alone, N = 6.74e9.

    With attention's core at 4096 tokens it would be 0.48.
    """
    got = [flops.mfu(4 * rate, 6 * 6.74e9, 4, 312e12) for rate in (3158.7, 3094.5)]
    assert [round(each, 2) for each in got] == [0.41, 0.40]
    assert round(flops.mfu(3158.7, flops.palm_flops_per_token(6.74e9, 32, 32, 128, 4096), 1, 312e12), 3) == 0.475
