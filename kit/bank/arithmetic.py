"""Small arithmetic as text: + - * / ** over numbers and names, evaluated without eval."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Mapping

from kit.errors import KitError

MAX_LENGTH = 200
MAX_BITS = 1024  # of a result, so that no power fills the memory

Value = int | float | str


class NotArithmetic(KitError):
    """A text that is no expression at all, rather than one without a usable value."""


class DividesByZero(KitError):
    """An expression with a quotient that has no value."""


class TooLarge(KitError):
    """An expression whose value is beyond what a float holds, or that would fill the memory."""


def evaluate(expression: str, names: Mapping[str, Value]) -> int | float:
    """The number that `expression` stands for. Whole quotients stay whole: `"h / 2"` with h = 8 -> 4.

    Raises KitError for anything but + - * / **, brackets, numbers and the given names, and for a result that is not
    a finite number.
    """
    return number(parse(expression).body, names, expression)


def names_in(expression: str) -> set[str]:
    """The names that `expression` uses. Raises KitError where it is not arithmetic."""
    body = parse(expression).body
    for node in ast.walk(body):
        if not isinstance(node, ALLOWED):
            raise not_arithmetic(expression)
    return {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}


ALLOWED = (
    ast.BinOp,
    ast.UnaryOp,
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.Pow,
    ast.UAdd,
    ast.USub,
)


def parse(expression: str) -> ast.Expression:
    if len(expression) > MAX_LENGTH:
        raise NotArithmetic(f"an expression of {len(expression)} characters; {MAX_LENGTH} at most")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise not_arithmetic(expression) from None


def not_arithmetic(expression: str) -> NotArithmetic:
    return NotArithmetic(f"{expression!r} is not arithmetic: numbers, names, brackets and + - * / ** only")


def number(node: ast.expr, names: Mapping[str, Value], expression: str) -> int | float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return finite(node.value, expression)
    if isinstance(node, ast.Name):
        return named(node.id, names, expression)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        operand = number(node.operand, names, expression)
        return -operand if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.BinOp):
        left, right = number(node.left, names, expression), number(node.right, names, expression)
        return finite(combined(node.op, left, right, expression), expression)
    raise not_arithmetic(expression)


def named(name: str, names: Mapping[str, Value], expression: str) -> int | float:
    if name not in names:
        raise KitError(f"{expression!r} uses {name!r}; known here: {', '.join(names) or 'no name'}")
    value = names[name]
    if isinstance(value, str):
        raise KitError(f"{expression!r} calculates with {name}, which is the text {value!r}")
    return finite(value, expression)


def combined(operator: ast.operator, left: int | float, right: int | float, expression: str) -> int | float:
    try:
        if isinstance(operator, ast.Add):
            return left + right
        if isinstance(operator, ast.Sub):
            return left - right
        if isinstance(operator, ast.Mult):
            return left * right
        if isinstance(operator, ast.Div):
            is_exact = isinstance(left, int) and isinstance(right, int) and right and left % right == 0
            return left // right if is_exact else left / right
        if isinstance(operator, ast.Pow):
            return power(left, right, expression)
    except ZeroDivisionError:
        raise DividesByZero(f"{expression!r} divides by zero") from None
    except OverflowError:
        raise too_large(expression) from None
    raise not_arithmetic(expression)


def power(base: int | float, exponent: int | float, expression: str) -> int | float:
    if base < 0 and not float(exponent).is_integer():
        raise KitError(f"{expression!r} is not a real number")
    if abs(base) > 1 and exponent * math.log2(abs(base)) > MAX_BITS:
        raise too_large(expression)
    result = base**exponent
    assert isinstance(result, int | float), "a negative base has a whole exponent"
    return result


def finite(value: int | float, expression: str) -> int | float:
    is_finite = abs(value).bit_length() <= MAX_BITS if isinstance(value, int) else math.isfinite(value)
    if not is_finite:
        raise too_large(expression)
    return value


def too_large(expression: str) -> TooLarge:
    return TooLarge(f"{expression!r} is too large a number")
