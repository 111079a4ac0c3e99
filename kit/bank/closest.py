"""The known word that somebody meant."""

from __future__ import annotations

from collections.abc import Iterable

LEAST_LIKENESS = 0.6


def closest(word: str, known: Iterable[str], limit: int = 3, least: float = LEAST_LIKENESS) -> list[str]:
    """Known words near `word`, best first.

    Ids are compared by their last part, since a topic that they share makes no two questions alike:
    `bucketed`, `dp/buckted` and `zero/bucketed` -> `dp/bucketed`, and `dp/overlap` is near none of them.
    """
    from difflib import SequenceMatcher

    def likeness(one: str, other: str) -> float:
        return SequenceMatcher(None, one, other).ratio()

    scored = []
    for name in sorted(set(known)):
        by_last_part = likeness(last_part(word), last_part(name))
        if by_last_part >= least:
            scored.append((by_last_part, likeness(word, name), name))
    return [name for *_, name in sorted(scored, key=lambda each: (-each[0], -each[1]))][:limit]


def last_part(name: str) -> str:
    return name.rsplit("/", 1)[-1]
