"""Numbers as people type them: `37.5%`, `3/8`, `1.4e9`, `1,536`, `2^30`, `1.5 x 10^9`, `48.9 GiB`."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from kit.bank.arithmetic import NotArithmetic, evaluate
from kit.costmodel import units
from kit.errors import KitError

THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
# A quantity said once more in another unit, as the answers themselves are shown: `2.315 GB (2.156 GiB)`.
ONCE_MORE = re.compile(r"(?<=[A-Za-z%])\s*\([^()]*\)$")
MYRIADS = re.compile(r"(?<=\d)\s*(万亿|亿|万)\s*(?=[^\s万亿])")
SUPERSCRIPT = re.compile(r"⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
EXAMPLES = {
    "fraction": "as 37.5%, 0.375 or 3/8",
    "B": "as 52.5 GB, 48.9 GiB or 5.25e10 B",
    "s": "as 12 ms or 0.012 s",
}
# Below this a bare number of bytes, seconds or FLOPs is more likely a forgotten unit.
LEAST_BARE_NUMBER = 1000


@dataclass(frozen=True, slots=True)
class TypedNumber:
    """`figure` as typed, `value` in base units, and the unit that was typed, if one was."""

    figure: int | float
    value: int | float
    unit: str | None


def read_number(typed: str, unit: str) -> TypedNumber:
    """What `typed` says as the answer to a question in `unit`. Raises KitError, with the reason, on nonsense."""
    dimension = units.unit_named(unit).dimension
    text = normalised(typed)
    if not text:
        raise KitError("no answer", hint=f"a number, {example(dimension)}")
    number, written = units.split_unit(text)
    if not re.search(r"\d", number, re.ASCII):
        raise not_a_number(typed, dimension)
    found = typed_unit(written, typed, unit) if written else None
    try:
        figure = evaluate(number, {})
    except NotArithmetic:
        raise not_a_number(typed, dimension) from None
    if found is None:
        require_plain_number_to_be_meant(figure, typed.strip(), unit)
        return TypedNumber(figure, units.convert(figure, unit, dimension), None)
    return TypedNumber(figure, units.convert(figure, found.name, dimension), found.name)


def typed_unit(written: str, typed: str, unit: str) -> units.Unit:
    dimension = units.unit_named(unit).dimension
    if not units.is_known(written):
        known = ", ".join(each.name for each in units.UNITS.values() if each.dimension == dimension)
        raise KitError(f"unknown unit {written!r} in {shortened(typed)}", hint=f"known here: {known}")
    found = units.unit_named(written)
    if found.dimension != dimension:
        raise KitError(f"{shortened(typed)} is in {found.name}, and the question asks for {asked(unit)}")
    return found


def not_a_number(typed: str, dimension: str) -> KitError:
    has_comma = "," in normalised(typed)
    advice = "a comma separates thousands, as 1,536; write fractions with a point" if has_comma else None
    return KitError(f"{shortened(typed)} is not a number", hint=advice or f"write it {example(dimension)}")


def shortened(typed: str) -> str:
    text = typed.strip()
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}..."


def normalised(typed: str) -> str:
    """Full-width digits, typographic signs, thousands separators and `^` as Python reads them."""
    typed = SUPERSCRIPT.sub(lambda found: f"**{unicodedata.normalize('NFKC', found[0])}", typed)
    text = unicodedata.normalize("NFKC", typed).strip().removeprefix("=").removeprefix("~").removeprefix("≈")
    for sign, plain in (("−", "-"), ("–", "-"), ("×", "*"), ("·", "*"), ("÷", "/"), ("^", "**"), ("_", "")):
        text = text.replace(sign, plain)
    text = ONCE_MORE.sub("", text.replace("per cent", "percent"))
    text = MYRIADS.sub(lambda found: {"万": "e4 ", "亿": "e8 ", "万亿": "e12 "}[found[1]], text)
    text = re.sub(r"(?<=[\d)])(?<!\b0)\s*[xX]\s*(?=[\d(])", "*", text)
    return THOUSANDS.sub(lambda found: found[0].replace(",", ""), text).strip()


def require_plain_number_to_be_meant(value: int | float, typed: str, unit: str) -> None:
    if unit == "fraction" and abs(value) > 1:
        percent = f"{100 * value:.6g}%"
        raise KitError(f"{typed} as a fraction is {percent}: write {percent}, or {typed}% if you mean a percentage")
    if unit in ("B", "s", "FLOP") and 0 < abs(value) < LEAST_BARE_NUMBER:
        raise KitError(f"{typed} of what? Write the unit, {example(unit)}")


def example(dimension: str) -> str:
    return EXAMPLES.get(dimension, "as 1536, 1.5e3 or 3/2")


def asked(unit: str) -> str:
    return {"fraction": "a fraction or a percentage", "count": "a plain number"}.get(unit, unit)
