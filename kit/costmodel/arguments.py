"""Arguments held against what a formula takes, so that nonsense ends as a sentence and not as a number."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches

from kit.errors import KitError


def whole(name: str, value: object, at_least: int = 1, at_most: int | None = None) -> int:
    """`value` as an int; 8.0 counts as 8. Raises KitError outside the bounds or off the whole numbers."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        is_within = value >= at_least and (at_most is None or value <= at_most)
        if is_within:
            return value
    bounds = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    raise KitError(f"{name} must be a whole number {bounds}, got {value!r}")


def quantity(name: str, value: object, at_least: float = 0) -> int | float:
    """A finite number. Raises KitError below `at_least`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        is_finite = isinstance(value, int) or math.isfinite(value)
        if is_finite and value >= at_least:
            return value
    raise KitError(f"{name} must be a number of at least {at_least:g}, got {value!r}")


def one_of(name: str, value: object, known: Iterable[str]) -> str:
    """`value` if it is among `known`. Raises KitError that lists them, with the closest as its hint."""
    choices = list(known)
    if value not in choices:
        lower = {choice.lower(): choice for choice in choices}
        close = get_close_matches(str(value).lower(), lower, n=1)
        hint = f"did you mean {lower[close[0]]!r}?" if close else None
        raise KitError(f"{name} must be one of {', '.join(choices)}, got {value!r}", hint)
    return str(value)


def exact(value: int | float) -> int | float:
    """An int where the value is whole, so that counts of bytes stay exact. 6.0 -> 6, 0.5 -> 0.5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def quotient(numerator: int | float, denominator: int) -> int | float:
    """numerator / denominator, exact where it divides, also beyond 2^53."""
    if isinstance(numerator, int) and numerator % denominator == 0:
        return numerator // denominator
    return exact(numerator / denominator)


def evenly(name: str, value: int, ranks_name: str, ranks: int) -> int:
    """value / ranks. Raises KitError where it does not divide: "num_heads=6 cannot be split over tensor_parallel=4"."""
    if value % ranks:
        raise KitError(f"{name}={value} cannot be split over {ranks_name}={ranks} ranks")
    return value // ranks
