"""Options that do not give the answer away by their looks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kit.bank.draw import options_of
from kit.bank.lint.entry import Entry
from kit.bank.lint.finding import Finding

if TYPE_CHECKING:
    from kit.bank.schema import Language

LANGUAGES: tuple[Language, Language] = ("en", "zh")
SHORTER = "shorten it, or say more in a wrong one"

# The right option may be the longest by as much as a word or two.
LONGEST_BY = 1.1

CATCH_ALL = re.compile(
    r"\b(all|none|both|neither) of the (above|below|others|other options|these)\b"
    r"|(以上|上述|前面)(各项|选项|说法)?(都|皆|全|均)|(都|均)不?(对|是|正确)$",
    re.IGNORECASE,
)


def option_findings(entry: Entry) -> Iterator[Finding]:
    question = entry.question
    if question.kind == "order":
        for language in LANGUAGES:
            yield from repeated(entry, "items", [item.get(language) for item in question.items])
    options = options_of(question)
    for language in LANGUAGES:
        texts = [option.text.get(language) for option in options]
        yield from repeated(entry, "options", texts)
        for index, text in enumerate(texts):
            if CATCH_ALL.search(text):
                yield entry.finding(
                    ("options", index, "text", language),
                    "the option speaks of other options, which are shuffled",
                    "name a misconception instead",
                )
    if question.kind == "choice":
        for language in LANGUAGES:
            index, ratio = longest(entry, language)
            if question.options[index].correct and ratio > LONGEST_BY:
                yield entry.finding(
                    ("options", index, "text", language),
                    f"the right option is the longest one in {language!r}, by {ratio - 1:.0%}",
                    SHORTER,
                )


def repeated(entry: Entry, key: str, texts: Sequence[str]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, text in enumerate(texts):
        same = " ".join(text.split()).lower()
        if same in seen:
            yield entry.finding(
                (key, index), f"{key}[{index}] says what {key}[{seen[same]}] says", "change one of them"
            )
        seen.setdefault(same, index)


def longest(entry: Entry, language: Language) -> tuple[int, float]:
    """(index of the longest option, its length over the next one's)."""
    assert entry.question.kind == "choice"
    lengths = [len(option.text.get(language).strip()) for option in entry.question.options]
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return order[0], lengths[order[0]] / max(lengths[order[1]], 1)
