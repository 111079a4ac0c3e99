"""Numbers as people type them: `37.5%`, `3/8`, `1.4e9`, `1,536`, `2^30`, `1.5 x 10^9`, `48.9 GiB`."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from kit.bank.arithmetic import DividesByZero, NotArithmetic, TooLarge, evaluate
from kit.bank.refusal import Refused
from kit.costmodel import units
from kit.errors import KitError

THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
# A quantity said once more in another unit, as the answers themselves are shown: `2.315 GB (2.156 GiB)`.
ONCE_MORE = re.compile(r"(?<=[A-Za-z%\d\u4e00-\u9fff])\s*\(([^()]*)\)$")
ONCE_MORE_WITHIN = 0.05  # relative; both may have been rounded
MYRIADS = re.compile(r"(?<=\d)\s*(万亿|亿|万)\s*(?=[^\s万亿])")
POWERS = {"thousand": "e3", "million": "e6", "billion": "e9", "trillion": "e12", "万": "e4", "亿": "e8", "万亿": "e12"}
POWER_AND_UNIT = re.compile(r"(?<=\d)\s*(thousand|million|billion|trillion)\s+(?=[^\W\d_])", re.IGNORECASE)
LAST_POWER = re.compile(r"(?<=\d)\s*(thousand|million|billion|trillion|万亿|亿|万)$", re.IGNORECASE)
ABOUT = re.compile(
    r"^(?:about|approximately|approx\.?|around|roughly|circa|ca\.|大约|大概|约为|约|[=~≈])\s*", re.IGNORECASE
)
OR_SO = re.compile(r"\s*(?:左右|上下)$")
CLASSIFIER = re.compile(r"(?<=[\d万亿])\s*(?:个|次|张|块|层|步|条|份|台|轮)$")
TWO_SIGNS = re.compile(r"^[+-]\s*[+-]|[+-]\s*[+-]\s*[+-]")
SUPERSCRIPT = re.compile(r"⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
NAMED_PREFIXES = {"kilo": "K", "mega": "M", "giga": "G", "tera": "T", "peta": "P", "exa": "E"}
BINARY_PREFIXES = {"kibi": "Ki", "mebi": "Mi", "gibi": "Gi", "tebi": "Ti", "pebi": "Pi", "exbi": "Ei"}
SPELLED_OUT = {
    **{f"{word}byte": f"{sign}B" for word, sign in (NAMED_PREFIXES | BINARY_PREFIXES).items()},
    **{f"{word}bit": f"{sign}bit" for word, sign in NAMED_PREFIXES.items() if sign in "KMGT"},
    **{f"{word}flop": f"{sign}FLOP" for word, sign in NAMED_PREFIXES.items()},
    "millisecond": "ms",
    "microsecond": "us",
    "nanosecond": "ns",
    "msec": "ms",
    "usec": "us",
    "nsec": "ns",
    "pct": "%",
    "纳秒": "ns",
}
IN_BITS = {"bit": "B", "bit/s": "B/s"}
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
    text = normalised(typed)
    once_more = ONCE_MORE.search(text)
    if once_more is None or not re.search(r"\d", once_more[1], re.ASCII):
        return read_plain(ONCE_MORE.sub("", text), typed, unit)
    first = read_plain(text[: once_more.start()], typed, unit)
    again = read_plain(once_more[1].strip(), typed, unit)
    if abs(first.value - again.value) > ONCE_MORE_WITHIN * abs(first.value):
        raise Refused(
            "two_figures", f"{shortened(typed)} names two amounts, which are not the same", typed=typed.strip()
        )
    return first


def read_plain(text: str, typed: str, unit: str) -> TypedNumber:
    dimension = units.unit_named(unit).dimension
    text = in_words_of_units(text, unit, dimension)
    if not text:
        raise Refused("no_number", "no answer", hint=f"a number, {example(dimension)}", unit=unit)
    number, written = units.split_unit(text)
    if not re.search(r"\d", number, re.ASCII) or TWO_SIGNS.search(number):
        raise not_a_number(typed, unit)
    if written in ("e", "E") and re.search(r"[\d.]$", number):
        raise Refused("no_exponent", f"{shortened(typed)} ends before its exponent; write it as {number}e9",
                      typed=typed.strip(), number=number)  # fmt: skip
    found = typed_unit(written, number, typed, unit) if written else None
    try:
        figure = evaluate(number, {})
    except NotArithmetic:
        raise not_a_number(typed, unit) from None
    except DividesByZero as error:
        raise Refused("divides_by_zero", error.message, typed=typed.strip()) from None
    except TooLarge as error:
        raise Refused("too_large", error.message, typed=shortened(typed)) from None
    except KitError as error:  # a root of a negative number
        raise Refused("not_a_number", error.message, typed=shortened(typed), unit=unit) from None
    if found is None:
        require_plain_number_to_be_meant(figure, typed.strip(), unit)
    try:
        value = units.convert(figure, found.name if found is not None else unit, dimension)
    except KitError as error:
        raise Refused("too_large", error.message, typed=shortened(typed)) from None
    return TypedNumber(figure, value, found.name if found is not None else None)


def in_words_of_units(text: str, unit: str, dimension: str) -> str:
    """`12 gigabytes` -> `12 GB`, `12 billion bytes` -> `12e9 bytes`; what counts things, as 个, counts nothing else."""
    if dimension == "count":
        text = CLASSIFIER.sub("", text)
    elif unit == dimension != "fraction":
        text = LAST_POWER.sub(lambda found: POWERS[found[1].lower()], text)
    text = POWER_AND_UNIT.sub(lambda found: f"{POWERS[found[1].lower()]} ", text)
    number, written = units.split_unit(text)
    spelled = (written or "").lower()
    short = SPELLED_OUT.get(spelled) or SPELLED_OUT.get(spelled.removesuffix("s"))
    return f"{number} {short}" if short else text


def typed_unit(written: str, number: str, typed: str, unit: str) -> units.Unit:
    dimension = units.unit_named(unit).dimension
    written = "K" if written == "k" else written
    if not units.is_known(written):
        known = ", ".join(each.name for each in units.UNITS.values() if each.dimension == dimension)
        raise Refused("unknown_unit", f"unknown unit {written!r} in {shortened(typed)}", f"known here: {known}",
                      written=written, typed=shortened(typed), known=known)  # fmt: skip
    if written in units.THOUSAND_OR_1024 and dimension != "B":
        raise bare_prefix(written, number, typed, unit)
    try:
        found = units.unit_named(written)
    except KitError as error:
        code = "bits_or_bytes" if written in units.BITS_OR_BYTES else "thousand_or_1024"
        raise Refused(code, error.message, written=written, letter=written[0].upper()) from None
    if {IN_BITS.get(found.dimension), IN_BITS.get(dimension)} & {found.dimension, dimension}:
        there, here = ("bits", "bytes") if found.dimension in IN_BITS else ("bytes", "bits")
        raise Refused("in_bits" if there == "bits" else "in_bytes",
                      f"{shortened(typed)} is in {there}, and the question asks for {here}; 8 bits are 1 byte",
                      typed=shortened(typed))  # fmt: skip
    if found.dimension != dimension:
        message = f"{shortened(typed)} is in {found.name}, and the question asks for {asked(unit)}"
        raise Refused("wrong_dimension", message, typed=shortened(typed), found=found.name, unit=unit)
    return found


def bare_prefix(written: str, number: str, typed: str, unit: str) -> Refused:
    """`1.5 K` where a count or seconds are asked for."""
    power = {"K": "e3", "M": "e6", "G": "e9", "T": "e12"}[written]
    meant = f"{number}{power}" if re.fullmatch(r"-?[\d.]+", number) else f"({number}) * 1{power}"
    return Refused("bare_prefix", f"{shortened(typed)} could count in 1000s or 1024s: write {meant} if you mean 1000s",
                   typed=shortened(typed), meant=meant, unit=unit)  # fmt: skip


def not_a_number(typed: str, unit: str) -> Refused:
    if "," in normalised(typed):
        advice = "a comma separates thousands, as 1,536; write fractions with a point"
        return Refused("comma", f"{shortened(typed)} is not a number", advice, typed=shortened(typed))
    advice = f"write it {example(units.unit_named(unit).dimension)}"
    return Refused("not_a_number", f"{shortened(typed)} is not a number", advice, typed=shortened(typed), unit=unit)


def shortened(typed: str) -> str:
    text = typed.strip()
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}..."


def normalised(typed: str) -> str:
    """Full-width digits, typographic signs, thousands separators and `^` as Python reads them."""
    typed = SUPERSCRIPT.sub(lambda found: f"**{unicodedata.normalize('NFKC', found[0])}", typed)
    text = unicodedata.normalize("NFKC", typed).strip()
    text = OR_SO.sub("", re.sub(r"[.。]$", "", ABOUT.sub("", text)).strip())
    for sign, plain in (("−", "-"), ("–", "-"), ("×", "*"), ("·", "*"), ("÷", "/"), ("^", "**"), ("_", "")):
        text = text.replace(sign, plain)
    text = text.replace("per cent", "percent")
    if not CLASSIFIER.search(text):
        text = MYRIADS.sub(lambda found: f"{POWERS[found[1]]} ", text)
    text = re.sub(r"(?<=[\d)])(?<!\b0)\s*[xX]\s*(?=[\d(])", "*", text)
    return THOUSANDS.sub(lambda found: found[0].replace(",", ""), text).strip()


def require_plain_number_to_be_meant(value: int | float, typed: str, unit: str) -> None:
    if unit == "fraction" and abs(value) > 1:
        percent = f"{100 * value:.6g}%"
        message = f"{typed} as a fraction is {percent}: write {percent}, or {typed}% if you mean a percentage"
        raise Refused("fraction_or_percent", message, typed=typed, percent=percent)
    if unit in ("B", "s", "FLOP") and 0 < abs(value) < LEAST_BARE_NUMBER:
        raise Refused("of_what", f"{typed} of what? Write the unit, {example(unit)}", typed=typed, unit=unit)


def example(dimension: str) -> str:
    return EXAMPLES.get(dimension, "as 1536, 1.5e3 or 3/2")


def asked(unit: str) -> str:
    return {"fraction": "a fraction or a percentage", "count": "a plain number"}.get(unit, unit)
