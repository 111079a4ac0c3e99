"""What a question says that it covers is on the list."""

from __future__ import annotations

from collections.abc import Iterator

from kit.bank.coverage import read_asked
from kit.bank.layout import Bank
from kit.bank.lint.entry import Entry
from kit.bank.lint.finding import Finding


def covers_findings(bank: Bank, entry: Entry) -> Iterator[Finding]:
    if not entry.question.covers or not bank.asked.is_file():
        return
    known = read_asked(bank)
    for index, number in enumerate(entry.question.covers):
        if number not in known:
            what = f"covers {number}, which {bank.shown(bank.asked)} does not list"
            yield entry.finding(("covers", index), what, "look the number up there")
