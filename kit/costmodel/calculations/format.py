"""`calc format`: what number formats can hold, and what a value becomes in one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from kit.costmodel import formats
from kit.costmodel.breakdown import Calculation, Input, Note, Number, Table, Working
from kit.errors import KitError

RESULTS = (
    "bits", "exponent_bits", "mantissa_bits", "largest", "smallest_normal", "smallest_subnormal", "epsilon",
    "unit_roundoff", "largest_exact_integer", "rounded", "error",
)  # fmt: skip
CONVENTION = (
    Note("Epsilon is the gap between 1 and the next number; the unit roundoff is half of it.",
         "epsilon 为 1 与下一个可表示数之间的间隔；unit roundoff 为其一半。"),
    Note("Exact integers: every whole number up to this one can be held.", "精确整数：从 0 到该数的整数都能精确表示。"),
)  # fmt: skip
ROUNDING = Note("Rounded to nearest, ties to even.", "按就近舍入，平局取偶。")
COLUMNS = {
    "format": "word", "bits": "count", "exponent_bits": "count", "mantissa_bits": "count", "largest": "count",
    "smallest_normal": "count", "smallest_subnormal": "count", "epsilon": "count", "largest_exact_integer": "count",
}  # fmt: skip


def calculate(names: Sequence[str] = (), value: Number | None = None) -> Calculation:
    """One format line by line; several, or all where none is named, in a table. `value` needs one."""
    known = [formats.known(name) for name in names]
    work = Working(num_digits=17)
    inputs: dict[str, Input] = {"format": ", ".join(known) if known else "all"}
    if len(known) == 1:
        lines_of(work, known[0])
    if value is not None:
        if len(known) != 1:
            raise KitError(f"a value is rounded to one format, got {len(known)}")
        inputs["value"] = value
        rounding_lines(work, known[0], value)
    table = Table(COLUMNS, tuple(row(name) for name in known or formats.FORMATS)) if len(known) != 1 else None
    notes = (*CONVENTION, ROUNDING) if value is not None else CONVENTION
    return Calculation("format", inputs, notes, work.quantities(RESULTS), tuple(work.lines), table)


def lines_of(work: Working, name: str) -> None:
    if name in formats.INTEGERS:
        work.given(width=formats.bits(name))
        work.line("bits", "width", formats.bits(name), "count")
        work.line("largest", "2**(bits - 1) - 1", formats.largest_exact_integer(name), "count")
        work.line("largest_exact_integer", "largest", formats.largest_exact_integer(name), "count")
        return
    it = formats.number_format(name)
    work.given(sign=int(it.has_sign), exponent=it.exponent_bits, mantissa=it.mantissa_bits, width=it.bits)
    is_packed = it.bits == it.has_sign + it.exponent_bits + it.mantissa_bits
    work.line("bits", "sign + exponent + mantissa" if is_packed else "width", it.bits, "count")
    work.line("exponent_bits", "exponent", it.exponent_bits, "count")
    work.line("mantissa_bits", "mantissa", it.mantissa_bits, "count")
    offset = f" + {it.bias_offset}" if it.bias_offset else ""
    work.line("bias", f"2**(exponent - 1) - 1{offset}", it.bias, "count")
    if it.has_infinity:
        work.line("largest", "(2 - 2**-mantissa) * 2**bias", formats.largest(name), "count")
    else:
        taken = 1 + it.num_nan_mantissas
        gap = f"{taken} * 2**-mantissa" if taken > 1 else "2**-mantissa"
        work.line("largest", f"(2 - {gap}) * 2**(2**exponent - 1 - bias)", formats.largest(name), "count")
    normal, subnormal = ("2**(1 - bias)", "2**(1 - bias - mantissa)") if it.has_sign else ("2**-bias", "2**-bias")
    work.line("smallest_normal", normal, formats.smallest_normal(name), "count")
    work.line("smallest_subnormal", subnormal, formats.smallest_subnormal(name), "count")
    work.line("epsilon", "2**-mantissa", formats.epsilon(name), "count")
    work.line("unit_roundoff", "epsilon / 2", formats.unit_roundoff(name), "count")
    work.line(
        "largest_exact_integer", "floor(min(2**(mantissa + 1), largest))", formats.largest_exact_integer(name), "count"
    )


def rounding_lines(work: Working, name: str, value: Number) -> None:
    """The value between its neighbours; KitError where it overflows."""
    nearest = formats.rounded(name, value)
    work.given(value=value)
    if name not in formats.INTEGERS:
        step = float(formats.step_at(formats.number_format(name), Fraction(abs(value))))
        work.given(step=step)
    work.line("rounded", "round(value)" if name in formats.INTEGERS else "round(value / step) * step", nearest, "count")
    work.line("error", "rounded - value", float(Fraction(nearest) - Fraction(value)), "count")


def row(name: str) -> tuple[Number | str, ...]:
    if name in formats.INTEGERS:
        whole = formats.largest_exact_integer(name)
        return (name, formats.bits(name), "", "", whole, "", "", "", whole)
    return (
        name, formats.bits(name), formats.exponent_bits(name), formats.mantissa_bits(name), formats.largest(name),
        formats.smallest_normal(name), formats.smallest_subnormal(name), formats.epsilon(name),
        formats.largest_exact_integer(name),
    )  # fmt: skip
