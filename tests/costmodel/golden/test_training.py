"""Published figures of training runs, at the precision that their source prints."""

from __future__ import annotations

import pytest

from kit.costmodel import flops, training

DAY = 86400


def test_gpt3_takes_34_days_on_1024_a100() -> None:
    """PTD-P, arXiv 2104.04473, section 5.1, equation 4: 8TP/(nX)."""
    assert round(training.train_time_s(175e9, 300e9, 1024, 140e12) / DAY) == 34


def test_trap_84_days_are_of_1008_billion_parameters() -> None:
    """PTD-P prints 84 days for a trillion on 3072 GPUs at 163 TFLOP/s; 1e12 take 83, its model has 1008e9."""
    assert round(training.train_time_s(1e12, 450e9, 3072, 163e12) / DAY) == 83
    assert round(training.train_time_s(1008e9, 450e9, 3072, 163e12) / DAY) == 84


@pytest.mark.parametrize(
    ("tokens_per_s", "chips", "peak", "params", "attention", "percent"),
    [
        (238300, 6144, 275e12, 540.35e9, 0, 45.7),
        (238300, 6144, 275e12, 540.35e9, 12 * 118 * 48 * 256 * 2048, 46.2),
    ],
)
def test_palm_s_utilisation(
    tokens_per_s: float, chips: int, peak: float, params: float, attention: float, percent: float
) -> None:
    """PaLM, arXiv 2204.02311, section 4.1 and appendix B."""
    got = training.mfu_of_tokens_per_s(tokens_per_s, params, chips, peak, attention)
    assert round(100 * got, 1) == percent
    assert training.tokens_per_s(params, chips, peak, got, attention) == pytest.approx(tokens_per_s)


@pytest.mark.parametrize(
    ("gpus", "tp", "cp", "pp", "dp", "seq_len", "batch"),
    [(8192, 8, 1, 16, 64, 8192, 32), (16384, 8, 1, 16, 128, 8192, 16), (16384, 8, 16, 16, 8, 131072, 16)],
)
def test_llama_3_s_layouts_give_16m_tokens(
    gpus: int, tp: int, cp: int, pp: int, dp: int, seq_len: int, batch: int
) -> None:
    """The Llama 3 Herd of Models, arXiv 2407.21783, Table 4, the last row with its third version's dp = 8."""
    assert training.data_parallel(gpus, tp, pp, cp) == dp
    assert training.global_batch_size(1, batch, dp) * seq_len == 16 * 2**20


def test_trap_llama_3_s_last_layout_is_printed_with_dp_4() -> None:
    """arXiv 2407.21783 v1 and v2, Table 4, row 3: dp = 4 uses 8192 of the 16384 GPUs and gives 8M tokens, not 16M."""
    assert 8 * 16 * 16 * 4 == 16384 // 2
    assert training.global_batch_size(1, 16, 4) * 131072 == 8 * 2**20


@pytest.mark.parametrize(("tflops", "percent", "printed"), [(430, 43, 43), (400, 40, 41), (380, 38, 38)])
def test_trap_llama_3_s_utilisation_is_of_an_unrounded_rate(tflops: int, percent: int, printed: int) -> None:
    """Table 4: of 989 TFLOP/s, 400 are 40% though 41% is printed: the rate is rounded."""
    got = flops.mfu(tflops * 1e12, 1, 1, 989e12)
    assert round(100 * got) == percent
    assert abs(100 * got - printed) < 1


def test_goyal_s_linear_rule() -> None:
    """Goyal et al., arXiv 1706.02677: 0.1 for 256, so 3.2 for 8192."""
    assert training.scaled_learning_rate(0.1, 256, 8192) == pytest.approx(3.2)
