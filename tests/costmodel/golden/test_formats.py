"""Published constants of number formats, to the last digit."""

from __future__ import annotations

import pytest

from kit.costmodel import formats

# finfo of numpy 2.4.6 and ml_dtypes 0.7.0, read in 2026:
# bits, exponent bits, mantissa bits, max, min normal, min subnormal, eps. torch 2.13 agrees but for e5m2fnuz's eps.
FINFO = {
    "float32": (32, 8, 23, 3.4028234663852886e38, 1.1754943508222875e-38, 1.401298464324817e-45, 1.1920928955078125e-7),
    "float16": (16, 5, 10, 65504.0, 6.103515625e-05, 5.960464477539063e-08, 0.0009765625),
    "bfloat16": (16, 8, 7, 3.3895313892515355e38, 1.1754943508222875e-38, 9.183549615799121e-41, 0.0078125),
    "float8_e4m3fn": (8, 4, 3, 448.0, 0.015625, 0.001953125, 0.125),
    "float8_e5m2": (8, 5, 2, 57344.0, 6.103515625e-05, 1.52587890625e-05, 0.25),
    "float8_e4m3fnuz": (8, 4, 3, 240.0, 0.0078125, 0.0009765625, 0.125),
    "float8_e5m2fnuz": (8, 5, 2, 57344.0, 3.0517578125e-05, 7.62939453125e-06, 0.25),
    "float8_e8m0fnu": (8, 8, 0, 1.7014118346046923e38, 5.877471754111438e-39, 5.877471754111438e-39, 1.0),
    "float4_e2m1fn": (4, 2, 1, 6.0, 1.0, 0.5, 0.5),
    "float6_e2m3fn": (6, 2, 3, 7.5, 1.0, 0.125, 0.125),
    "float6_e3m2fn": (6, 3, 2, 28.0, 0.25, 0.0625, 0.25),
}  # fmt: skip


@pytest.mark.parametrize("name", FINFO)
def test_finfo(name: str) -> None:
    got = (
        formats.bits(name),
        formats.exponent_bits(name),
        formats.mantissa_bits(name),
        formats.largest(name),
        formats.smallest_normal(name),
        formats.smallest_subnormal(name),
        formats.epsilon(name),
    )
    assert got == FINFO[name]


@pytest.mark.parametrize(
    ("name", "bias", "has_infinity", "max_normal", "min_normal", "max_subnormal", "min_subnormal"),
    [
        ("fp8_e4m3", 7, False, 448, 0.015625, 0.013671875, 0.001953125),
        ("fp8_e5m2", 15, True, 57344, 6.103515625e-05, 4.57763671875e-05, 1.52587890625e-05),
    ],
)
def test_fp8_for_deep_learning(
    name: str,
    bias: int,
    has_infinity: bool,
    max_normal: float,
    min_normal: float,
    max_subnormal: float,
    min_subnormal: float,
) -> None:
    """FP8 Formats for Deep Learning, arXiv 2209.05433, Table 1."""
    it = formats.number_format(name)
    assert (it.bias, it.has_infinity) == (bias, has_infinity)
    assert formats.largest(name) == max_normal
    assert formats.smallest_normal(name) == min_normal
    assert formats.smallest_subnormal(name) == min_subnormal
    assert formats.smallest_normal(name) - formats.smallest_subnormal(name) == max_subnormal


def test_tf32() -> None:
    """NVIDIA, TF32 (2020): 1 + 8 + 10 bits that count, stored in 32; the range of fp32, the precision of fp16."""
    assert 1 + formats.exponent_bits("tf32") + formats.mantissa_bits("tf32") == 19
    assert formats.bits("tf32") == 32
    assert formats.exponent_bits("tf32") == formats.exponent_bits("fp32")
    assert formats.epsilon("tf32") == formats.epsilon("fp16")
