"""Published figures of pipeline schedules, at the precision that their source prints."""

from __future__ import annotations

import pytest

from kit.costmodel import pipeline, zero_bubble

P, F, B, W = 8, 3.0, 2.5, 1.75


@pytest.mark.parametrize(("p", "m", "v"), [(4, 8, 1), (8, 64, 2), (16, 16, 4)])
def test_ptd_p_s_bubbles_are_over_ideal(p: int, m: int, v: int) -> None:
    """PTD-P, arXiv 2104.04473, sections 2.2.1 and 2.2.2."""
    schedule = "interleaved" if v > 1 else "1f1b"
    assert pipeline.bubble_over_ideal(p, m, schedule, v) == pytest.approx((p - 1) / (v * m))
    assert pipeline.bubble_fraction(p, m, schedule, v) == pytest.approx((p - 1) / (v * m + p - 1))


def test_ptd_p_s_microbatches_in_flight() -> None:
    """PTD-P, section 2.2.1: m with GPipe, at most p with 1F1B."""
    assert pipeline.microbatches_in_flight(8, 64, "gpipe") == 64
    assert max(pipeline.microbatches_in_flight(8, 64, "1f1b", stage) for stage in range(8)) == 8


@pytest.mark.parametrize(("n", "d", "b"), [(32, 1, 32), (32, 8, 128), (128, 16, 512)])
def test_ptd_p_s_bubble_against_data_parallelism(n: int, d: int, b: int) -> None:
    """PTD-P, section 3.3.1: (n-d)/b' with t = 1."""
    assert pipeline.bubble_for_gpus(n, d, b) == pytest.approx((n - d) / b)


def test_gpipe_s_bubble_is_over_the_makespan() -> None:
    """GPipe, arXiv 1811.06965, section 2.3: (K-1)/(M+K-1), negligible from M = 4K on."""
    assert pipeline.bubble_fraction(4, 16, "gpipe") == pytest.approx(3 / 19)
    ideal = pipeline.bubble_over_ideal(4, 16, "gpipe")
    assert pipeline.bubble_fraction(4, 16, "gpipe") == pytest.approx(ideal / (1 + ideal))


@pytest.mark.parametrize("chunks", [2, 4])
def test_interleaving_holds_more_activations(chunks: int) -> None:
    """Korthikanti et al., arXiv 2205.05198, section 4.2.3: the first stage holds L(1 + (p-1)/(pm)) layers' worth."""
    held = pipeline.chunks_in_flight(8, 64, chunks) / chunks
    assert held == pytest.approx(8 * (1 + 7 / (8 * chunks)))


def test_zero_bubble_s_table_1() -> None:
    """Zero Bubble, arXiv 2401.10241, Table 1; and T_B + T_W = 2 T_F."""
    s, b, h, a = 1024, 6, 4096, 32
    forward, input_grad, weight_grad = (zero_bubble.pass_flops(which, s, b, h) for which in zero_bubble.PASSES)
    assert forward == s * b * h * (24 * h + 4 * s)
    assert input_grad == s * b * h * (24 * h + 8 * s)
    assert weight_grad == s * b * h * 24 * h
    assert input_grad + weight_grad == 2 * forward
    assert zero_bubble.pass_bytes("input_grad", s, b, h, a) == s * b * (34 * h + 5 * a * s)
    assert zero_bubble.pass_bytes("weight_grad", s, b, h, a) == 32 * s * b * h


@pytest.mark.parametrize(
    ("schedule", "bubble"),
    [("1f1b", (P - 1) * (F + B + W)), ("zb_h1", (P - 1) * (F + B - W)), ("zb_h2", (P - 1) * (F + B - 2 * W))],
)
def test_zero_bubble_s_table_2(schedule: str, bubble: float) -> None:
    """Zero Bubble, Table 2, whose B is the input's gradient alone."""
    assert zero_bubble.bubble_s(schedule, P, F, B, W) == pytest.approx(bubble)


def test_zero_bubble_s_table_2_of_memory() -> None:
    """Zero Bubble, Table 2: worker i of p, from 1; the peaks over workers are p M_B, p M_B and (2p-1) M_B."""
    m_b, m_w = 34, 32
    for i in range(1, P + 1):
        held = [zero_bubble.peak_activation_bytes(name, P, i - 1, m_b, m_w) for name in ("zb_h1", "zb_h2")]
        assert held == [(P - i + 1) * m_b + (i - 1) * m_w, (2 * P - 2 * i + 1) * m_b + (2 * i - 2) * m_w]
    assert [zero_bubble.peak_activations(name, P, 4 * P) for name in ("1f1b", "zb_h1", "zb_h2")] == [P, P, 2 * P - 1]


def test_zbv_idles_nowhere_and_holds_p_microbatches() -> None:
    """Zero Bubble, section 6, for T_F = T_B = T_W."""
    assert zero_bubble.bubble_s("zbv", P, 1, 1, 1) == 0
    assert zero_bubble.peak_activations("zbv", P, 4 * P) == P


def test_dualpipe_s_table() -> None:
    """DeepSeek-V3, arXiv 2412.19437, Table 2, whose B is the whole backward: 1F1B, ZB1P, DualPipe."""
    whole, both = B + W, 0.8 * (F + B + W)
    assert zero_bubble.bubble_s("1f1b", P, F, B, W) == pytest.approx((P - 1) * (F + whole))
    assert zero_bubble.bubble_s("zb_h1", P, F, B, W) == pytest.approx((P - 1) * (F + whole - 2 * W))
    dualpipe = zero_bubble.bubble_s("dualpipe", P, F, B, W, overlapped_s=both)
    assert dualpipe == pytest.approx((P // 2 - 1) * (both + whole - 3 * W))
    assert [zero_bubble.param_copies(name) for name in ("1f1b", "zb_h1", "dualpipe")] == [1, 1, 2]
    assert [zero_bubble.peak_activations(name, P, 4 * P) for name in ("1f1b", "zb_h1", "dualpipe")] == [P, P, P + 1]


def test_trap_the_letter_b_of_two_papers() -> None:
    """Taking DeepSeek's whole-backward B for Zero Bubble's gives another bubble, (p-1) W larger."""
    right = zero_bubble.bubble_s("zb_h1", P, F, B, W)
    misread = zero_bubble.bubble_s("zb_h1", P, F, B + W, W)
    assert misread - right == pytest.approx((P - 1) * W)
