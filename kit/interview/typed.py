"""Words, numbers and scores as an interviewer types them."""

from __future__ import annotations

import unicodedata
from fractions import Fraction

from kit.bank.mark import NO, YES


def first_word(text: str) -> tuple[str, str]:
    """It and the rest, whatever kind of space is between."""
    words = text.split(None, 1)
    return (words[0] if words else "", words[1].strip() if len(words) > 1 else "")


def whole_number(text: str) -> int | None:
    plain = unicodedata.normalize("NFKC", text).strip()
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) <= 3 else None


def points_typed(text: str, most: float) -> float | None:
    """All for y, none for n, else a number up to `most`: `1.5`, `1/2`. None for anything else."""
    plain = unicodedata.normalize("NFKC", text).strip().lower()
    if plain in YES | NO:
        return float(most) if plain in YES else 0.0
    try:
        points = Fraction(plain) if len(plain) <= 12 and "e" not in plain else None
    except (ValueError, ZeroDivisionError):
        return None
    return float(points) if points is not None and 0 <= points <= most else None
