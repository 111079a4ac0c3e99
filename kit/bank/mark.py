"""What a typed answer is worth, against a question as it was drawn."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kit.bank.draw import options_of, shown_answer
from kit.bank.refusal import Refused
from kit.bank.typed_number import TypedNumber, read_number
from kit.costmodel import units
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.bank.draw import Draw
    from kit.bank.schema import NumberQuestion, OpenQuestion

LETTERS = "abcdefghi"
SEPARATORS = re.compile(r"[\s,;、.。)(>&+和与及跟]+|->|然后|再")
JOINING_WORDS = {"and", "then"}
YES = {"y", "yes", "是", "有", "对"}
SLIPS = {
    "slip_unit": "right in {}, and you wrote {}",
    "slip_bits": "8 times too large: bits for bytes",
    "slip_bytes": "8 times too small: divided by 8 as if bytes were bits",
}
NO = {"n", "no", "否", "没有", "不", "不对"}


@dataclass(frozen=True, slots=True)
class Mark:
    """`expected` and `got` as a person reads them: letters of shown positions, or a number with its unit.

    `chosen` are the indices in the file of what was picked, in the order typed; empty for numbers.
    `note` says what probably went wrong, where that can be told; empty otherwise. Of a number `slip` is the same in
    parts: ("slip_unit", the unit meant, the one written), ("slip_bits",) or ("slip_bytes",).
    """

    is_right: bool
    expected: str
    got: str
    chosen: tuple[int, ...] = ()
    note: str = ""
    slip: tuple[str, ...] = ()


def mark(draw: Draw, typed: str) -> Mark:
    """The mark of `typed`. Raises KitError, with what is accepted, where it is no answer at all."""
    question = draw.question
    if question.kind == "number":
        return mark_number(draw, question, typed)
    right = {index for index, option in enumerate(options_of(question)) if option.correct}
    if right:
        return mark_options(draw, right, typed, is_single=question.kind != "multi")
    if question.kind == "order":
        return mark_order(draw, typed)
    raise KitError(f"{question.id} is of kind {question.kind}, which is not marked from a typed line")


def mark_options(draw: Draw, right: set[int], typed: str, *, is_single: bool) -> Mark:
    positions = read_positions(typed, len(draw.order))
    if is_single and len(positions) != 1:
        message = f"{typed.strip()!r} names {len(positions)} options; exactly one is right"
        raise Refused("several", message, count=len(positions))
    chosen = tuple(draw.order[position] for position in positions)
    expected = [position for position, index in enumerate(draw.order) if index in right]
    missed, wrong = right - set(chosen), set(chosen) - right
    note = "" if is_single else difference(len(missed), len(wrong))
    return Mark(set(chosen) == right, letters(expected), letters(sorted(positions)), chosen, note)


def difference(num_missed: int, num_wrong: int) -> str:
    parts = [f"{num_missed} missed"] * bool(num_missed) + [f"{num_wrong} wrong"] * bool(num_wrong)
    return ", ".join(parts)


def mark_order(draw: Draw, typed: str) -> Mark:
    positions = read_positions(typed, len(draw.order))
    missing = [position for position in range(len(draw.order)) if position not in positions]
    if missing:
        message = f"{typed.strip()!r} leaves out {letters(missing)}; name every item once, first to last"
        raise Refused("leaves_out", message, missing=letters(missing))
    chosen = tuple(draw.order[position] for position in positions)
    right = sorted(range(len(draw.order)), key=lambda position: draw.order[position])
    num_placed = sum(index == place for place, index in enumerate(chosen))
    note = "" if num_placed == len(chosen) else f"{num_placed} of {len(chosen)} in their place"
    return Mark(positions == right, letters(right), letters(positions), chosen, note)


def mark_points(question: OpenQuestion, are_met: Sequence[bool]) -> Mark:
    """The mark of an answer in words; `are_met` says of each point of the rubric whether the answer made it.

    `got` and `expected` are points, `chosen` the points that were made.
    """
    weights = [point.weight for point in question.rubric]
    chosen = tuple(index for index, is_met in enumerate(are_met) if is_met)
    got = sum(weights[index] for index in chosen)
    return Mark(got == sum(weights), str(sum(weights)), str(got), chosen)


def read_yes_or_no(typed: str) -> bool:
    """Raises KitError for what is neither."""
    text = unicodedata.normalize("NFKC", typed).strip().lower()
    if text not in YES | NO:
        raise Refused("yes_or_no", f"{typed.strip()!r} is neither y nor n")
    return text in YES


def read_positions(typed: str, count: int) -> list[int]:
    """Shown positions from letters or numbers: `b`, `a,c`, `acd`, `1 3`, `b and d`. Else raises KitError."""
    text = unicodedata.normalize("NFKC", typed).strip().lower()
    known = LETTERS[:count]
    accepted = f"letters {known[0]} to {known[-1]}, or numbers 1 to {count}"
    parts = [part for part in SEPARATORS.split(text) if part and part not in JOINING_WORDS]
    values = {"last": known[-1], "count": count}
    if not parts:
        raise Refused("no_option_named", "no answer", accepted, **values)
    picked = [sign for part in parts for sign in (part if part.isalpha() else [part])]
    positions = []
    for sign in picked:
        position = known.find(sign) if len(sign) == 1 and sign.isalpha() else number_of(sign) - 1
        if not 0 <= position < count:
            raise Refused("no_option", f"no option {sign!r}", accepted, sign=sign, **values)
        if position in positions:
            raise Refused("twice", f"{sign!r} is named twice", sign=sign)
        positions.append(position)
    return positions


def number_of(sign: str) -> int:
    return int(sign) if sign.isascii() and sign.isdigit() and len(sign) < 3 else 0


def letters(positions: list[int]) -> str:
    return ", ".join(LETTERS[position] for position in positions)


def mark_number(draw: Draw, question: NumberQuestion, typed: str) -> Mark:
    assert draw.answer is not None, "a drawn number question has its answer"
    number = read_number(typed, question.unit)
    is_right = is_close(number.value, draw.answer, question.tolerance)
    found = () if is_right else slip(number, draw.answer, question)
    note = SLIPS[found[0]].format(*found[1:]) if found else ""
    return Mark(is_right, shown_answer(question, draw.answer), shown_answer(question, number.value), (), note, found)


def is_close(got: int | float, expected: int | float, tolerance: float) -> bool:
    """Within `tolerance` of the expected magnitude; an expected zero has to be met exactly, up to float rounding."""
    slack = max(tolerance, 1e-9) * abs(expected)
    return abs(got - expected) <= slack


def slip(number: TypedNumber, expected: int | float, question: NumberQuestion) -> tuple[str, ...]:
    """The unit that was probably mistaken, where the same figure is right in another one, as in `Mark.slip`."""
    dimension = units.unit_named(question.unit).dimension
    written = number.unit or question.unit
    for unit in units.UNITS.values():
        if unit.dimension == dimension:
            value = units.convert(number.figure, unit.name, dimension)
            if value and is_close(value, expected, question.tolerance):
                return ("slip_unit", unit.name, written)
    if dimension == "B" and number.value:
        if is_close(number.value / 8, expected, question.tolerance):
            return ("slip_bits",)
        if is_close(number.value * 8, expected, question.tolerance):
            return ("slip_bytes",)
    return ()
