"""Number formats: what each can hold. `epsilon` is the gap above 1, 2^-m; the unit roundoff is half of it.

Sources: IEEE 754; FP8 Formats for Deep Learning (arXiv 2209.05433, Table 1); OCP Microscaling Formats 1.0 for fp4, fp6
and e8m0; ml_dtypes 0.7 for all of the small ones. tf32 is stored in 32 bits, of which 19 count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from kit.costmodel.arguments import one_of, quantity, whole
from kit.errors import KitError


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format with subnormals.

    `has_infinity`: the top exponent is set aside for infinities and NaN. Otherwise `num_nan_mantissas` of its largest
    mantissas are NaN: 1 in e4m3fn, none in fp4 and fp6, nor in the "fnuz" formats, whose NaN is minus zero.
    """

    bits: int
    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool = True
    num_nan_mantissas: int = 0
    bias_offset: int = 0
    has_sign: bool = True

    @property
    def bias(self) -> int:
        return int(2 ** (self.exponent_bits - 1)) - 1 + self.bias_offset


FORMATS = {
    "fp64": Format(64, 11, 52),
    "fp32": Format(32, 8, 23),
    "tf32": Format(32, 8, 10),
    "fp16": Format(16, 5, 10),
    "bf16": Format(16, 8, 7),
    "fp8_e4m3": Format(8, 4, 3, has_infinity=False, num_nan_mantissas=1),  # e4m3fn: the one of the paper and of torch
    "fp8_e5m2": Format(8, 5, 2),
    "fp8_e4m3fnuz": Format(8, 4, 3, has_infinity=False, bias_offset=1),
    "fp8_e5m2fnuz": Format(8, 5, 2, has_infinity=False, bias_offset=1),
    "fp6_e3m2": Format(6, 3, 2, has_infinity=False),
    "fp6_e2m3": Format(6, 2, 3, has_infinity=False),
    "fp4_e2m1": Format(4, 2, 1, has_infinity=False),
    "e8m0": Format(8, 8, 0, has_sign=False),  # powers of two alone, the scales of blocks: no zero and no sign
}

INTEGERS = {"int4": 4, "int8": 8, "int16": 16, "int32": 32, "int64": 64}

ALIASES = {
    **{f"float{bits}": f"fp{bits}" for bits in (16, 32, 64)},
    "bfloat16": "bf16",
    "half": "fp16",
    "fp8_e4m3fn": "fp8_e4m3",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "float8_e4m3fnuz": "fp8_e4m3fnuz",
    "float8_e5m2fnuz": "fp8_e5m2fnuz",
    "float8_e8m0fnu": "e8m0",
    "float6_e3m2fn": "fp6_e3m2",
    "float6_e2m3fn": "fp6_e2m3",
    "float4_e2m1fn": "fp4_e2m1",
}


def known(name: str) -> str:
    """The name used here: `known("bfloat16")` -> "bf16"."""
    return one_of("format", ALIASES.get(name, name) if isinstance(name, str) else name, (*FORMATS, *INTEGERS))


def number_format(name: str) -> Format:
    """Raises KitError for whole-number formats, which have no exponent."""
    if known(name) in INTEGERS:
        raise KitError(f"{name} holds whole numbers only: it has no exponent, no mantissa and no epsilon")
    return FORMATS[known(name)]


def bits(format: str) -> int:
    """Bits of storage."""
    name = known(format)
    return INTEGERS[name] if name in INTEGERS else FORMATS[name].bits


def exponent_bits(format: str) -> int:
    return number_format(format).exponent_bits


def mantissa_bits(format: str) -> int:
    """Stored bits of the mantissa, without the implicit one."""
    return number_format(format).mantissa_bits


def largest(format: str) -> float:
    """The largest finite number. `largest("fp16")` -> 65504.0; `largest("fp8_e4m3")` -> 448.0; int8 127."""
    if known(format) in INTEGERS:
        return float(2 ** (bits(format) - 1) - 1)
    it = number_format(format)
    if it.has_infinity:
        top, gap = it.bias, 1
    else:
        top, gap = 2**it.exponent_bits - 1 - it.bias, 1 + it.num_nan_mantissas
    if not it.has_sign:
        gap = 1  # e8m0: the largest exponent below that of NaN
    return float(2 - gap * 2.0**-it.mantissa_bits) * 2.0**top


def smallest_normal(format: str) -> float:
    """The smallest positive number with full precision."""
    it = number_format(format)
    return float(2.0 ** (1 - it.bias)) if it.has_sign else float(2.0**-it.bias)


def smallest_subnormal(format: str) -> float:
    """The smallest positive number: half of it rounds to zero."""
    it = number_format(format)
    return float(2.0 ** (1 - it.bias - it.mantissa_bits)) if it.has_sign else smallest_normal(format)


def epsilon(format: str) -> float:
    """The gap between 1 and the next number."""
    return float(2.0 ** -number_format(format).mantissa_bits)


def unit_roundoff(format: str) -> float:
    """The largest relative error of rounding to nearest: half of epsilon. `unit_roundoff("bf16")` -> 0.00390625."""
    return epsilon(format) / 2


def largest_exact_integer(format: str) -> int:
    """Every whole number up to this one can be held; the next cannot. `("bf16")` -> 256."""
    if known(format) in INTEGERS:
        return int(2 ** (bits(format) - 1)) - 1
    it = number_format(format)
    return int(min(2 ** (it.mantissa_bits + 1), largest(format)))


def decimal_digits(format: str) -> int:
    """Decimal digits that survive a round trip: floor(m log10 2), C's FLT_DIG. fp32 6, fp16 3, bf16 2."""
    return math.floor(number_format(format).mantissa_bits * math.log10(2))


def round_trip_digits(format: str) -> int:
    """Decimal digits that name every number apart: ceil(1 + (m+1) log10 2). fp32 9, fp16 5, bf16 4."""
    return math.ceil(1 + (number_format(format).mantissa_bits + 1) * math.log10(2))


def decades(format: str) -> float:
    """Powers of ten from the smallest to the largest positive number. fp16 12.04, bf16 78.57."""
    return math.log10(largest(format)) - math.log10(smallest_subnormal(format))


def gap_above(format: str, value: int | float) -> float:
    """From a number of the format to the next larger in magnitude; KitError at the top. `("bf16", 256)` -> 2.0."""
    it, size = number_format(format), magnitude(value)
    step = step_at(it, Fraction(size))
    held = Fraction(rounded(format, size))
    if held != Fraction(size):
        raise KitError(f"{format} does not hold {value!r}; the nearest number is {float(held):g}")
    if size >= largest(format):
        raise KitError(f"{value!r} is the largest number of {format}")
    return float(step)


def rounded(format: str, value: int | float) -> float:
    """Rounded to nearest, ties to even. `rounded("bf16", 257)` -> 256.0; `rounded("fp16", 2049)` -> 2048.0.

    Raises KitError where the result overflows: hardware then gives infinity, NaN or the largest number, by its mode.
    """
    size = magnitude(value)
    sign = -1.0 if value < 0 else 1.0
    if known(format) in INTEGERS:
        nearest = Fraction(round(Fraction(size)))
    else:
        it = number_format(format)
        if not it.has_sign:
            raise KitError(f"{format} holds powers of two only, and is not rounded to here")
        step = step_at(it, Fraction(size))
        nearest = round(Fraction(size) / step) * step
    if nearest > Fraction(largest(format)):
        raise KitError(f"{value!r} overflows {format}, whose largest number is {largest(format):g}")
    return sign * float(nearest)


def sum_of_ones(format: str, num_terms: int) -> float:
    """1 added to a running sum so many times, rounding each time: it stops at 2^(m+1). `("bf16", 1000)` -> 256.0."""
    number_format(format)  # whole-number formats wrap round instead
    return float(min(whole("num_terms", num_terms, at_least=0), largest_exact_integer(format)))


def bytes_per_element(format: str) -> int | float:
    """`bytes_per_element("bf16")` -> 2; fp4 0.5."""
    return bits(format) // 8 if bits(format) % 8 == 0 else bits(format) / 8


def magnitude(value: int | float) -> int | float:
    return quantity("value", abs(value) if isinstance(value, int | float) and not isinstance(value, bool) else value)


def step_at(it: Format, size: Fraction) -> Fraction:
    """The gap between neighbours around `size`."""
    exponent = 1 - it.bias
    if size > 0:
        floor_log2 = size.numerator.bit_length() - size.denominator.bit_length()
        floor_log2 -= Fraction(2) ** floor_log2 > size
        exponent = max(exponent, floor_log2)
    return Fraction(2) ** (exponent - it.mantissa_bits)
