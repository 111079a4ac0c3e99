"""What ages carries its date, and a dated source."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kit.bank.lint.entry import Entry
from kit.bank.lint.finding import Finding

VERSION = re.compile(
    r"\b(PyTorch|torch|DeepSpeed|Megatron(?:-LM|-Core| Core)?|Transformers|Accelerate|NCCL|CUDA|Transformer Engine)"
    r" ?v?\d+\.\d+"
)


def source_findings(entry: Entry) -> Iterator[Finding]:
    question = entry.question
    if question.as_of is not None and not any(source.date for source in question.sources):
        what = f"as_of says {question.as_of}, and no source has a date"
        yield entry.finding(("as_of",), what, "give the source of what ages its 'date'")
    if question.as_of is None:
        for location, text in entry.texts():
            found = VERSION.search(text.en)
            if found:
                what = f"speaks of {found[0]}, and the question has no 'as_of'"
                yield entry.finding((*location, "en"), what, "say as of when, as 2026-12")
                return
