"""Number formats: what each can hold. `epsilon` is the gap above 1, 2^-m; the unit roundoff is half of it.

Sources: IEEE 754; FP8 Formats for Deep Learning (arXiv 2209.05433, Table 1); ml_dtypes for the fp8 types. tf32 is
stored in 32 bits, of which 19 count.
"""

from __future__ import annotations

from dataclasses import dataclass

from kit.costmodel.arguments import one_of


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format with subnormals; `has_infinity` says that the top exponent is set aside."""

    bits: int
    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool = True

    @property
    def bias(self) -> int:
        return int(2 ** (self.exponent_bits - 1)) - 1


FORMATS = {
    "fp32": Format(32, 8, 23),
    "tf32": Format(32, 8, 10),
    "fp16": Format(16, 5, 10),
    "bf16": Format(16, 8, 7),
    "fp8_e4m3": Format(8, 4, 3, has_infinity=False),  # only the all-ones mantissa of the top exponent is NaN
    "fp8_e5m2": Format(8, 5, 2),
}


def number_format(name: str) -> Format:
    return FORMATS[one_of("format", name, FORMATS)]


def bits(format: str) -> int:
    """Bits of storage."""
    return number_format(format).bits


def exponent_bits(format: str) -> int:
    return number_format(format).exponent_bits


def mantissa_bits(format: str) -> int:
    """Stored bits of the mantissa, without the implicit one."""
    return number_format(format).mantissa_bits


def largest(format: str) -> float:
    """The largest finite number. `largest("fp16")` -> 65504.0; `largest("fp8_e4m3")` -> 448.0."""
    it = number_format(format)
    if it.has_infinity:
        return float(2 - 2.0**-it.mantissa_bits) * 2.0**it.bias
    return float(2 - 2 * 2.0**-it.mantissa_bits) * 2.0 ** (it.bias + 1)


def smallest_normal(format: str) -> float:
    """The smallest positive number with full precision."""
    return float(2.0 ** (1 - number_format(format).bias))


def smallest_subnormal(format: str) -> float:
    """The smallest positive number: half of it rounds to zero."""
    it = number_format(format)
    return float(2.0 ** (1 - it.bias - it.mantissa_bits))


def epsilon(format: str) -> float:
    """The gap between 1 and the next number."""
    return float(2.0 ** -number_format(format).mantissa_bits)


def largest_exact_integer(format: str) -> int:
    """Every whole number up to this one can be held; the next cannot. `("bf16")` -> 256."""
    it = number_format(format)
    return int(min(2 ** (it.mantissa_bits + 1), largest(format)))
