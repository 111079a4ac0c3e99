"""What `lint` found, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

from rich.cells import cell_len

from kit.screen.page import Page


class Finding(Protocol):
    """A broken rule; as a text it says where, what, and what to do."""

    def __str__(self) -> str: ...


def show_findings(page: Page, findings: Sequence[Finding], *, num_questions: int, is_static: bool) -> None:
    """A line for each, which editors and grep understand, and their number."""
    for finding in findings:
        page.unbroken(page.readable(str(finding)))
    done = "read" if is_static else "read and run"
    what = f"{num_questions} question{'s' if num_questions != 1 else ''} {done}"
    if findings:
        page.blank()
        page.line(f"{what}: {len(findings)} finding{'s' if len(findings) != 1 else ''}", style="bold red")
    else:
        page.line(f"{what}: nothing to say", style="bold green")


class Progress:
    """One line that is overwritten, on a terminal only."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.shown = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.show("")

    def show(self, text: str) -> None:
        if not self.page.terminal.is_terminal:
            return
        line = self.page.readable(text)[: self.page.width - 1]
        self.page.file.write("\r" + line + " " * max(self.shown - cell_len(line), 0) + ("" if line else "\r"))
        self.page.file.flush()
        self.shown = cell_len(line)
