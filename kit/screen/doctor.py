"""What `doctor` found, line by line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rich.text import Text

from kit.screen.page import Page
from kit.screen.wrap import Prose, padded

State = Literal["ok", "note", "problem"]

STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}
STATE_WIDTH = max(map(len, STYLES)) + 2
NAME_WIDTH = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """`note`: works, but less well. `problem`: something needed is missing. `advice` says what to do."""

    name: str
    state: State
    detail: str
    advice: str = ""


def show_findings(page: Page, findings: Iterable[Finding]) -> list[Finding]:
    """Prints each as soon as it is known. Returns them all."""
    shown = []
    for finding in findings:
        shown.append(finding)
        first = Text.assemble(
            (padded(finding.state, STATE_WIDTH), STYLES[finding.state]), (padded(finding.name, NAME_WIDTH), "bold")
        )
        rest = Text(" " * first.cell_len)
        page.print(Prose(Text(page.readable(finding.detail)), first, rest))
        if finding.advice:
            page.print(Prose(Text(page.readable(f"to do: {finding.advice}")), rest, rest))
    num_problems = sum(finding.state == "problem" for finding in shown)
    page.blank()
    page.line(
        f"{num_problems} problem{'s' if num_problems != 1 else ''}" if num_problems else "all that is needed is here"
    )
    return shown
