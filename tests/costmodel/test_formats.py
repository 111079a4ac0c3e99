"""Number formats against published constants, and against every value of the small ones."""

from __future__ import annotations

import math
import struct

import pytest

from kit.costmodel import formats
from kit.errors import KitError

# finfo of numpy 2.4 and ml_dtypes 0.7: bits, exponent bits, mantissa bits, max, min normal, min subnormal, eps.
# The fp8 rows are also Table 1 of "FP8 Formats for Deep Learning", arXiv 2209.05433.
PUBLISHED = {
    "fp32": (32, 8, 23, 3.4028234663852886e38, 1.1754943508222875e-38, 1.401298464324817e-45, 2.0**-23),
    "fp16": (16, 5, 10, 65504.0, 6.103515625e-05, 5.960464477539063e-08, 0.0009765625),
    "bf16": (16, 8, 7, 3.3895313892515355e38, 1.1754943508222875e-38, 9.183549615799121e-41, 0.0078125),
    "fp8_e4m3": (8, 4, 3, 448.0, 0.015625, 0.001953125, 0.125),
    "fp8_e5m2": (8, 5, 2, 57344.0, 6.103515625e-05, 1.52587890625e-05, 0.25),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_constants(name: str) -> None:
    got = (
        formats.bits(name),
        formats.exponent_bits(name),
        formats.mantissa_bits(name),
        formats.largest(name),
        formats.smallest_normal(name),
        formats.smallest_subnormal(name),
        formats.epsilon(name),
    )
    assert got == PUBLISHED[name]


def test_tf32_has_the_range_of_fp32_and_the_precision_of_fp16() -> None:
    """NVIDIA, TF32 (2020): 1 + 8 + 10 bits, stored in 32."""
    assert formats.smallest_normal("tf32") == formats.smallest_normal("fp32")
    assert formats.epsilon("tf32") == formats.epsilon("fp16")
    assert formats.bits("tf32") == 32


def finite_values(exponent_bits: int, mantissa_bits: int, has_infinity: bool) -> set[float]:
    """Every value that a sign, an exponent and a mantissa can spell, decoded bit by bit."""
    bias = 2 ** (exponent_bits - 1) - 1
    values = set()
    for exponent in range(2**exponent_bits):
        for mantissa in range(2**mantissa_bits):
            is_top = exponent == 2**exponent_bits - 1
            if is_top and (has_infinity or mantissa == 2**mantissa_bits - 1):
                continue
            fraction = mantissa / 2**mantissa_bits
            values.add(fraction * 2.0 ** (1 - bias) if exponent == 0 else (1 + fraction) * 2.0 ** (exponent - bias))
    return values


@pytest.mark.parametrize(("name", "has_infinity"), [("fp8_e4m3", False), ("fp8_e5m2", True), ("fp16", True)])
def test_every_value_decoded(name: str, has_infinity: bool) -> None:
    values = finite_values(formats.exponent_bits(name), formats.mantissa_bits(name), has_infinity)
    assert max(values) == formats.largest(name)
    assert min(values - {0.0}) == formats.smallest_subnormal(name)
    assert min(value for value in values if value > 1) - 1 == formats.epsilon(name)
    exact = formats.largest_exact_integer(name)
    assert {float(whole) for whole in range(exact + 1)} <= values
    assert float(exact + 1) not in values


def test_exact_integers_of_the_wider_formats() -> None:
    assert formats.largest_exact_integer("fp32") == 2**24
    assert formats.largest_exact_integer("bf16") == 256
    assert struct.unpack("f", struct.pack("f", 2**24 + 1))[0] == 2**24
    assert struct.unpack("e", struct.pack("e", 2049))[0] == 2048 == formats.largest_exact_integer("fp16")


def test_gradients_below_half_the_smallest_subnormal_vanish_in_fp16() -> None:
    """Mixed Precision Training, arXiv 1710.03740, section 3.2: fp16 is zero below 2^-24, and 2^-25 still rounds."""
    assert math.log2(formats.smallest_subnormal("fp16")) == -24
    assert struct.unpack("e", struct.pack("e", 2**-25))[0] == 0
    assert struct.unpack("e", struct.pack("e", 1.001 * 2**-25))[0] == formats.smallest_subnormal("fp16")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(KitError) as refused:
        formats.largest("fp23")
    assert refused.value.message.startswith("format must be one of fp64, fp32, tf32, fp16, bf16, fp8_e4m3, fp8_e5m2, ")
    assert refused.value.message.endswith(", int64, got 'fp23'")
