"""Number formats against published constants, and against every value of the small ones."""

from __future__ import annotations

import math
import struct

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

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


TORCH = {
    "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16,
    "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2,
}  # fmt: skip


@pytest.mark.parametrize("name", TORCH)
@given(value=st.floats(-400, 400))
@example(value=257.0)
@example(value=2.0**-25)
@example(value=0.0)
def test_rounding_is_torch_s(name: str, value: float) -> None:
    single = torch.tensor(value, dtype=torch.float32)  # torch goes through fp32 on its way to the small formats
    assert formats.rounded(name, single.item()) == single.to(TORCH[name]).double().item()


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
@given(steps=st.integers(0, 100))
def test_gaps_are_between_neighbours(name: str, steps: int) -> None:
    """From 1 upwards, a number and the one whose bits are one more."""
    integer = torch.uint8 if formats.bits(name) == 8 else torch.int16
    bits = torch.tensor(1.0, dtype=TORCH[name]).view(integer) + steps // (1 if formats.bits(name) == 16 else 4)
    value, above = (each.view(TORCH[name]).double().item() for each in (bits, bits + 1))
    assert formats.gap_above(name, value) == above - value


def test_a_sum_of_ones_stops_where_the_gap_is_two() -> None:
    for name in ("bf16", "fp16"):
        total = torch.zeros((), dtype=TORCH[name])
        for _ in range(3000):
            total += 1
        assert formats.sum_of_ones(name, 3000) == total.item()
    assert formats.sum_of_ones("bf16", 100) == 100


def test_whole_number_formats() -> None:
    assert [formats.largest(name) for name in ("int4", "int8", "int16")] == [7, 127, 32767]
    assert formats.largest_exact_integer("int8") == 127
    assert [formats.rounded("int8", value) for value in (2.5, 3.5, -0.7)] == [2, 4, -1]
    assert (formats.bytes_per_element("int8"), formats.bytes_per_element("int4")) == (1, 0.5)


def test_decimal_digits_are_those_of_c() -> None:
    """FLT_DIG, DBL_DIG; FLT_DECIMAL_DIG, DBL_DECIMAL_DIG."""
    assert [formats.decimal_digits(name) for name in ("fp32", "fp64", "fp16", "bf16")] == [6, 15, 3, 2]
    assert [formats.round_trip_digits(name) for name in ("fp32", "fp64", "fp16", "bf16")] == [9, 17, 5, 4]


def test_spans() -> None:
    assert formats.decades("fp16") == pytest.approx(math.log10(65504 / 2**-24))
    assert formats.unit_roundoff("bf16") == 2**-8


def test_long_names_mean_the_same() -> None:
    for name, short in formats.ALIASES.items():
        assert formats.bits(name) == formats.bits(short)
    assert formats.largest("float8_e4m3fn") == 448
    assert formats.epsilon("bfloat16") == formats.epsilon("bf16")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: formats.rounded("fp16", 65520), "65520 overflows fp16, whose largest number is 65504"),
        (lambda: formats.rounded("fp16", float("inf")), "value must be a number of at least 0, got inf"),
        (lambda: formats.gap_above("bf16", 257), "bf16 does not hold 257; the nearest number is 256"),
        (lambda: formats.gap_above("fp16", 65504), "65504 is the largest number of fp16"),
        (
            lambda: formats.epsilon("int8"),
            "int8 holds whole numbers only: it has no exponent, no mantissa and no epsilon",
        ),
        (lambda: formats.rounded("e8m0", 3), "e8m0 holds powers of two only, and is not rounded to here"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message


def test_the_largest_number_is_reached_from_a_little_above() -> None:
    """65519 is nearer to 65504 than to 65536, which fp16 would need next."""
    assert formats.rounded("fp16", 65519) == 65504
