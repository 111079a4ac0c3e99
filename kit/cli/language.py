"""The language that was asked for."""

from __future__ import annotations

from typing import Literal

from kit.errors import KitError

Language = Literal["en", "zh"]


def chosen_language(asked: str | None) -> Language:
    """What --lang says, else what the locale says. Raises KitError for a language that the bank lacks."""
    if asked is None:
        from kit.screen.terminal import preferred_language

        asked = preferred_language()
    languages: dict[str, Language] = {"en": "en", "zh": "zh"}
    if asked in languages:
        return languages[asked]
    raise KitError(f"no language {asked!r}; there are en and zh")
