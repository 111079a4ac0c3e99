"""The known word that somebody meant."""

from __future__ import annotations

from collections.abc import Iterable


def closest(word: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Known words near `word`, best first; ids are also compared by their last part (`bucketed` -> `dp/bucketed`)."""
    import difflib

    candidates = sorted(set(known))
    same_slug = [name for name in candidates if "/" in name and name.rsplit("/", 1)[1] == word]
    near = difflib.get_close_matches(word, candidates, n=limit, cutoff=0.6)
    by_slug = {name.rsplit("/", 1)[-1]: name for name in candidates}
    near_slug = [by_slug[slug] for slug in difflib.get_close_matches(word, by_slug, n=limit, cutoff=0.7)]
    return list(dict.fromkeys([*same_slug, *near, *near_slug]))[:limit]
