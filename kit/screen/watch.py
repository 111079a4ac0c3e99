"""What `watch` shows: a grade as short as it can be told, and the keys that tell more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from kit.screen.grade import show_cause_briefly, show_verdict_and_proofs, visible
from kit.screen.page import Page

if TYPE_CHECKING:
    from pathlib import Path

    from kit.bank.schema import Text as BothLanguages
    from kit.grading.result import CheckResult, GradeResult

KEYS = "h hint, f full report, r again, q quit"


def show_beginning(page: Page, path: Path, *, has_keys: bool) -> None:
    page.unbroken(f"every save is graded: {visible(str(path))}")
    page.line(f"keys: {KEYS}" if has_keys else "Ctrl-C ends it", style="dim")
    flush(page)


def show_start(page: Page, time_of_day: str) -> None:
    """A fresh screen where there is one, else a line across."""
    if page.terminal.is_terminal:
        page.fit()
        page.console.clear()
    else:
        page.rule()
    page.line(f"{time_of_day}  grading", style="dim")
    flush(page)


def show_early(page: Page, check: CheckResult, *, is_known: bool) -> None:
    """The first check that fails, before the rest has run."""
    mark = page.readable("✗")
    page.line(
        Text.assemble(
            (f"{mark} ", "red"), page.readable(visible(check.title)), (f"  world_size={check.world_size}", "dim"),
            "  still" if is_known else "",
        )
    )  # fmt: skip
    flush(page)


def show_regrade(page: Page, result: GradeResult, *, seconds: float, has_keys: bool) -> None:
    show_verdict_and_proofs(page, result)
    if result.first_failure is not None:
        show_cause_briefly(page, result, result.first_failure)
    page.blank()
    seed = f", seed {result.seed}" if result.checks else ""
    page.line(f"{seconds:.1f} s{seed}", style="dim")
    if has_keys:
        page.line(KEYS, style="dim")
    flush(page)


def show_passed_so_far(page: Page, seconds: float) -> None:
    page.line(Text.assemble(("passed", "bold green"), f" on the switchboard in {seconds:.1f} s; now on gloo"))
    flush(page)


def show_problem(page: Page, message: str, hint: str | None) -> None:
    """What has to be put right before ranks can run; the next save is graded all the same."""
    page.line(visible(message), style="bold red")
    if hint:
        page.line(visible(hint), style="dim")
    flush(page)


def show_next_hint(page: Page, hint: BothLanguages, number: int, count: int) -> None:
    page.heading(f"Hint {number} of {count}")
    page.markdown(hint.zh if page.language == "zh" else hint.en)
    flush(page)


def show_note(page: Page, note: str) -> None:
    page.line(note, style="dim")
    flush(page)


def flush(page: Page) -> None:
    page.file.flush()
