"""Units of the answers: GB is 1e9 bytes, GiB is 2^30. Parse what people type, print what they can read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from kit.errors import KitError


@dataclass(frozen=True, slots=True)
class Unit:
    """`factor` base units of its dimension: GB is 1_000_000_000 of "B"."""

    name: str
    dimension: str
    factor: int | Fraction


def metric(base: str, prefixes: str, dimension: str | None = None) -> list[Unit]:
    """`base` with SI prefixes, 1000 apart."""
    steps = [base, *(f"{prefix}{base}" for prefix in prefixes)]
    return [Unit(name, dimension or base, 1000**power) for power, name in enumerate(steps)]


UNITS: dict[str, Unit] = {
    unit.name: unit
    for unit in [
        *metric("B", "KMGTPE"),
        *(Unit(f"{prefix}iB", "B", 1024**power) for power, prefix in enumerate("KMGTPE", 1)),
        *metric("bit", "KMGT"),
        *metric("FLOP", "KMGTPEZ"),
        *metric("FLOP/s", "KMGTPE"),
        *metric("B/s", "KMGT"),
        Unit("GiB/s", "B/s", 1024**3),
        *metric("bit/s", "KMGT"),
        Unit("s", "s", 1),
        Unit("ms", "s", Fraction(1, 10**3)),
        Unit("us", "s", Fraction(1, 10**6)),
        Unit("ns", "s", Fraction(1, 10**9)),
        Unit("min", "s", 60),
        Unit("h", "s", 3600),
        Unit("day", "s", 86400),
        Unit("fraction", "fraction", 1),
        Unit("%", "fraction", Fraction(1, 100)),
        Unit("count", "count", 1),
        Unit("thousand", "count", 10**3),
        Unit("million", "count", 10**6),
        Unit("billion", "count", 10**9),
        Unit("trillion", "count", 10**12),
        Unit("万", "count", 10**4),
        Unit("亿", "count", 10**8),
    ]
}

# What people also write, as far as it can mean one thing only.
ALIASES = {
    **{f"k{name[1:]}": name for name in UNITS if name.startswith("K")},
    **{unit.name.lower(): unit.name for unit in UNITS.values() if unit.dimension == "B"},
    **{f"{unit.name}ytes": unit.name for unit in UNITS.values() if unit.dimension == "B"},
    **{f"{unit.name}s": unit.name for unit in UNITS.values() if unit.dimension == "FLOP"},
    **{f"{unit.name[:-2]}S": unit.name for unit in UNITS.values() if unit.dimension == "FLOP/s"},
    **{f"{prefix}bps": f"{prefix}bit/s" for prefix in ("", *"KMGT")},
    **dict.fromkeys(["byte", "bytes", "字节"], "B"),
    **dict.fromkeys(["bits", "比特"], "bit"),
    **dict.fromkeys(["sec", "secs", "second", "seconds", "秒"], "s"),
    **dict.fromkeys(["毫秒"], "ms"),
    **dict.fromkeys(["µs", "μs", "微秒"], "us"),
    **dict.fromkeys(["minute", "minutes", "分钟"], "min"),
    **dict.fromkeys(["hr", "hour", "hours", "小时"], "h"),
    **dict.fromkeys(["d", "days", "天"], "day"),
    **dict.fromkeys(["percent"], "%"),
}

BITS_OR_BYTES = {f"{prefix}b" for prefix in "KMGT"}
THOUSAND_OR_1024 = set("KMGT")
AMBIGUOUS = BITS_OR_BYTES | THOUSAND_OR_1024


# Exponents have three digits at most: Fraction("1e999999999") would fill the memory.
DECIMAL = re.compile(r"[+-]?(\d{1,300}(\.\d{0,300})?|\.\d{1,300})([eE][+-]?\d{1,3})?", re.ASCII)


def is_known(name: str) -> bool:
    """Whether `name` spells a unit, or one of several that it could mean."""
    return name in UNITS or name in ALIASES or name in AMBIGUOUS


def unit_named(name: str) -> Unit:
    """The unit that `name` spells. Raises KitError where it is unknown or could mean two things."""
    if name in UNITS:
        return UNITS[name]
    if name in BITS_OR_BYTES:
        letter = name[0].upper()
        raise KitError(f"{name!r} could be bits or bytes: write {letter}bit, {letter}B (1000s) or {letter}iB (1024s)")
    if name in THOUSAND_OR_1024:
        raise KitError(f"{name!r} could count in 1000s or 1024s: write the whole unit, {name}B or {name}iB for bytes")
    if name in ALIASES:
        return UNITS[ALIASES[name]]
    raise KitError(f"unknown unit {name!r}", hint="units: " + ", ".join(UNITS))


def split_unit(text: str) -> tuple[str, str | None]:
    """`"1.5 GiB"` -> `("1.5", "GiB")`; `"3/8"` -> `("3/8", None)`."""
    found = re.search(r"(?:%|[^\W\d_][^\W\d_]*(?:/[^\W\d_]+)?)$", text.strip())
    if found is None:
        return text.strip(), None
    return text.strip()[: found.start()].strip(), found[0]


def parse(text: str, unit: str | None = None) -> int | float:
    """A quantity in base units; a bare number is read in `unit`. `"1.5 GiB"` -> 1610612736; `"2e9 B"` -> 2e9.

    Raises KitError on anything else, also on infinity and NaN.
    """
    number, written = split_unit(text)
    name = written if written is not None else unit
    if name is None:
        raise KitError(f"{text!r} has no unit")
    found = unit_named(name)
    if DECIMAL.fullmatch(number) is None:
        raise KitError(f"{text!r} is not a number and a unit, as in '1.5 GiB'")
    return to_number(Fraction(number) * found.factor)


def to_number(value: Fraction) -> int | float:
    """An int where the value is whole. Raises KitError beyond what a float can hold."""
    if abs(value) >= 2**1024:
        raise KitError("the number is too large")
    return value.numerator if value.denominator == 1 else float(value)


def convert(value: int | float, unit: str, into: str) -> int | float:
    """`convert(1, "GiB", "GB")` -> 1.073741824. Raises KitError between dimensions."""
    source, target = unit_named(unit), unit_named(into)
    if source.dimension != target.dimension:
        raise KitError(f"{unit} is a unit of {source.dimension}, {into} is one of {target.dimension}")
    return to_number(Fraction(value) * source.factor / target.factor)


PREFIXES = {"bit": "KMGT", "bit/s": "KMGT", "B/s": "KMGT", "FLOP": "KMGTPEZ", "FLOP/s": "KMGTPE"}


def show(value: int | float, unit: str) -> str:
    """A quantity given in `unit`, as a person reads it; bytes in both conventions.

    `show(52.5e9, "B")` -> `52.5 GB (48.89 GiB)`; `show(3/8, "fraction")` -> `0.375 (37.5%)`.
    """
    if unit == "fraction":
        return f"{digits(value)} ({digits(100 * value)}%)"
    if unit == "count":
        return digits(value)
    if unit == "B" and abs(value) >= 1000:
        return f"{scaled(value, 'KMGTPE', 1000, 'B')} ({scaled(value, 'KMGTPE', 1024, 'iB')})"
    if unit in PREFIXES:
        return scaled(value, PREFIXES[unit], 1000, unit)
    if unit == "s":
        return duration(value)
    return f"{digits(value)}{'' if unit == '%' else ' '}{unit}"


def digits(value: int | float) -> str:
    """Whole numbers in full below 1e15, others with four significant digits."""
    if value == 0:
        return "0"
    if abs(value) < 10**15 and value == int(value):
        return f"{int(value):,}"
    return f"{float(value):,.4g}" if abs(value) < 10**4 else f"{float(value):.4g}"


def scaled(value: int | float, prefixes: str, step: int, unit: str) -> str:
    """With the largest prefix that leaves at least 1; `unit` "iB" without a prefix is "B"."""
    power = 0
    while power < len(prefixes) and float(f"{abs(value) / step**power:.4g}") >= step:
        power += 1
    if power == 0:
        return f"{digits(value)} {'B' if unit == 'iB' else unit}"
    return f"{float(value / step**power):.4g} {prefixes[power - 1]}{unit}"


def duration(value_s: int | float) -> str:
    steps = (("day", 2 * 86400), ("h", 2 * 3600), ("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 0))
    name = next(name for name, least in steps if abs(value_s) >= least) if value_s else "s"
    return f"{digits(float(value_s / UNITS[name].factor))} {name}"
