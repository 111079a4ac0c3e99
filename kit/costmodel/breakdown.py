"""A calculation as something to print: inputs, convention, results, and each formula with the numbers put in."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kit.costmodel.arguments import exact

Number = int | float
Input = int | float | str | bool

FUNCTIONS = ("ceil", "floor", "max", "min", "round", "sqrt")
NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass(frozen=True, slots=True)
class Quantity:
    """In base units: B, s, FLOP, FLOP/s, B/s, fraction, count; a word has the unit "word"."""

    value: Number | str
    unit: str


@dataclass(frozen=True, slots=True)
class Line:
    """`formula` in names of inputs and of lines before it, `numbers` the same with their values: it comes to `value`.

    Both are arithmetic: + - * / **, brackets and `FUNCTIONS`.
    """

    name: str
    formula: str
    numbers: str
    value: Number
    unit: str


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence on what is counted, and how."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True)
class Table:
    """Several things side by side; `units` names the columns in order, a word column has the unit "word"."""

    units: Mapping[str, str]
    rows: tuple[tuple[Number | str, ...], ...]


@dataclass(frozen=True, slots=True)
class Calculation:
    """What one `calc` command has to say. `inputs` hold what was given and what a model's name stands for."""

    command: str
    inputs: Mapping[str, Input]
    convention: tuple[Note, ...]
    results: Mapping[str, Quantity]
    breakdown: tuple[Line, ...]
    table: Table | None = None

    def to_json(self) -> dict[str, object]:
        """The shape in docs/json.md, without `schema`. Infinity becomes null, which JSON has."""
        shown: dict[str, object] = {
            "command": self.command,
            "inputs": {name: finite(value) for name, value in self.inputs.items()},
            "convention": " ".join(note.en for note in self.convention),
            "results": {name: {"value": finite(it.value), "unit": it.unit} for name, it in self.results.items()},
            "breakdown": [
                {"name": it.name, "formula": it.formula, "numbers": it.numbers, "value": finite(it.value),
                 "unit": it.unit}
                for it in self.breakdown
            ],
        }  # fmt: skip
        if self.table is not None:
            names = tuple(self.table.units)
            rows = [dict(zip(names, map(finite, row), strict=True)) for row in self.table.rows]
            shown["table"] = {"units": dict(self.table.units), "rows": rows}
        return shown


@dataclass(slots=True)
class Working:
    """Collects lines; each may use, by name, what is known: inputs, constants and the lines before it.

    num_digits: of long fractions in expressions.
    """

    known: dict[str, Number] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    num_digits: int = 9

    def given(self, **values: Number) -> None:
        """Names that formulas may use without a line of their own."""
        self.known.update(values)

    def line(self, name: str, formula: str, value: Number, unit: str) -> Number:
        """Adds a line, and its name to what is known. Returns `value`, whole numbers as int."""
        value = exact(value)
        self.lines.append(Line(name, formula, put_in(formula, self.known, self.num_digits), value, unit))
        self.known[name] = value
        return value

    def quantities(self, names: Iterable[str]) -> dict[str, Quantity]:
        """Results that are lines."""
        found = {it.name: Quantity(it.value, it.unit) for it in self.lines}
        return {name: found[name] for name in names if name in found}


def put_in(formula: str, known: Mapping[str, Number], num_digits: int = 9) -> str:
    """`put_in("2 * hidden / tp", {"hidden": 8, "tp": 2})` -> `2 * 8 / 2`. Raises KeyError for an unknown name."""

    def value(found: re.Match[str]) -> str:
        return found[0] if found[0] in FUNCTIONS else figure(known[found[0]], num_digits)

    return re.sub(rf"(?<![\w.]){NAME.pattern}", value, formula)


def figure(value: Number, num_digits: int = 9) -> str:
    """A number in an expression: counts in full, what is long with `num_digits`."""
    value = exact(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**15 else f"{float(value):.{num_digits}g}"
    text = repr(value)
    return text if len(text) <= num_digits + 1 else f"{value:.{num_digits}g}"


def finite(value: Number | str) -> Number | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value
