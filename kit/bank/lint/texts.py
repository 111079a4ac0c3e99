"""Both languages say something, each in its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kit.bank.document import Document, Location
from kit.bank.lint.entry import Entry
from kit.bank.lint.finding import Finding

if TYPE_CHECKING:
    from kit.bank.schema import Text

# Ideographs, and the punctuation that Chinese text is set with.
CHINESE = re.compile(r"[\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef]")
IDEOGRAPH = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")

# Words that make an English sentence of a line of terms and formulas.
ENGLISH_WORD = re.compile(
    r"(?<![\w-])(a|an|the|is|are|of|and|or|in|on|to|for|with|that|which|it|its|each|every|by|no|not|from|as|at|all|one|only)(?![\w-])",
    re.IGNORECASE,
)
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


def text_findings(entry: Entry) -> Iterator[Finding]:
    return language_findings(entry.document, entry.texts())


def language_findings(document: Document, texts: Iterable[tuple[Location, Text]]) -> Iterator[Finding]:
    """What is written in the other language, at its line of the document."""
    for location, text in texts:
        foreign = CHINESE.search(CODE.sub("", text.en))
        if foreign:
            line = document.line([*location, "en"], of_key=True)
            yield Finding(document.path, line, f"Chinese in the English text: {foreign[0]!r}", "write it in English")
        if not IDEOGRAPH.search(text.zh) and not is_language_neutral(text.en, text.zh):
            line = document.line([*location, "zh"], of_key=True)
            yield Finding(document.path, line, "no Chinese in the Chinese text", "translate it")


def is_language_neutral(english: str, chinese: str) -> bool:
    """A formula, a number or a term that both languages write the same."""
    return english == chinese and not ENGLISH_WORD.search(CODE.sub("", english))
