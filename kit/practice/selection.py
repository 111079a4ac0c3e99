"""Which questions: by topic, kind and level, with what was meant where a word is unknown."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from kit.bank.closest import closest
from kit.bank.layout import Bank, require_topic
from kit.bank.load import KINDS, LEVELS, Header
from kit.errors import KitError


@dataclass(frozen=True, slots=True)
class Selection:
    """Empty means every one."""

    topics: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()

    def takes(self, header: Header) -> bool:
        return (
            (not self.topics or header.topic in self.topics)
            and (not self.kinds or header.kind in self.kinds)
            and (not self.levels or header.level in self.levels)
        )

    def __str__(self) -> str:
        """As it was asked for: `--topic a --level 2`."""
        return " ".join(
            [
                *(f"--topic {topic}" for topic in self.topics),
                *(f"--kind {kind}" for kind in self.kinds),
                *(f"--level {level}" for level in self.levels),
            ]
        )


def selection(bank: Bank, topics: Sequence[str], kinds: Sequence[str], levels: Sequence[str]) -> Selection:
    """From words; each may hold several, `1,2`. Raises KitError for a word that names nothing."""
    return Selection(
        tuple(require_topic(bank, in_small_letters(topic, bank.topics())) for topic in words("topic", topics)),
        tuple(require_kind(in_small_letters(kind, KINDS)) for kind in words("kind", kinds)),
        tuple(map(require_level, words("level", levels))),
    )


def words(what: str, texts: Sequence[str]) -> list[str]:
    """Raises KitError for a text without any: an option that was given is never as if it were not there."""
    found: list[str] = []
    for text in texts:
        inside = [word.strip() for word in text.replace("，", ",").split(",") if word.strip()]
        if not inside:
            raise KitError(f"{text!r} names no {what}", hint="leave the option out for every one")
        found += inside
    return list(dict.fromkeys(found))


def in_small_letters(word: str, known: Sequence[str]) -> str:
    """`DP` as `dp`, where only that is known."""
    return word.lower() if word not in known and word.lower() in known else word


def require_kind(kind: str) -> str:
    if kind in KINDS:
        return kind
    near = closest(kind, KINDS)
    raise KitError(f"no kind {kind!r}; {'closest' if near else 'there are'}: {', '.join(near or KINDS)}")


def require_level(level: str) -> int:
    if level in map(str, LEVELS):
        return int(level)
    raise KitError(f"no level {level!r}; levels are {', '.join(map(str, LEVELS))}, from junior to staff")


def selected(headers: Sequence[Header], wanted: Selection) -> list[Header]:
    """The headers that are wanted. Raises KitError where none is left."""
    found = [header for header in headers if wanted.takes(header)]
    if not found:
        raise KitError(
            f"no question is {wanted}" if str(wanted) else "the bank has no questions", hint="`shardkit list` shows all"
        )
    return found


def shuffled_ids(headers: Sequence[Header], count: int, seed: int) -> tuple[str, ...]:
    """At most `count` ids in an order that the seed alone decides."""
    from kit.bank.draw import shuffled

    ids = sorted(header.id for header in headers)
    order = shuffled(len(ids), random.Random(f"order {seed}"))
    return tuple(ids[index] for index in order[:count])
