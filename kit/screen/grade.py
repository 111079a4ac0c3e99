"""A grade as a reviewer would tell it: the verdict, the five proofs, the first cause with its evidence, what next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from kit.screen.page import Page
from kit.screen.wrap import Prose

if TYPE_CHECKING:
    from kit.grading.result import CheckResult, GradeResult, ProofRow

FEEDBACK = ("verdict", "hint", "full")
_VERDICTS = {
    "passed": ("passed", "bold green"),
    "wrong": ("wrong", "bold red"),
    "crashed": ("crashed", "bold red"),
    "hung": ("hung", "bold red"),
    "refused": ("refused", "bold red"),
    "not_started": ("not started", "bold yellow"),
    "kit_error": ("fault of the kit", "bold magenta"),
}
_STATES = {
    "passed": ("✓", "passed", "green"),
    "failed": ("✗", "failed", "red"),
    "not_run": ("·", "not run", "yellow"),
    "none": ("·", "no check", "dim"),
}
_MAX_ALSO = 4
_MAX_PRINTED_LINES = 8


def show_grade(page: Page, result: GradeResult, *, feedback: str = "full", bank_option: str = "") -> None:
    """feedback: "verdict" (verdict and proofs), "hint" (also which claim fails first) or "full" (also the evidence)."""
    word, style = _VERDICTS[result.verdict]
    page.line(Text.assemble((result.question, "bold"), "  ", result.solution))
    score = f"   {result.score} of {result.max_score} points" if result.max_score else ""
    page.line(Text.assemble((word, style), score))
    if result.message:
        page.line(result.message, indent="  ")
    page.blank()
    for row in result.rows():
        _show_row(page, row)
    if feedback != "verdict" and result.first_failure is not None:
        _show_cause(page, result, result.first_failure, is_full=feedback == "full")
    _show_next(page, result, bank_option)


def _show_row(page: Page, row: ProofRow) -> None:
    mark, word, style = _STATES[row.state]
    points = f"{row.points}/{row.max_points}" if row.max_points else ""
    failing = f"{row.num_failed} of {row.num_checks} runs of its checks fail" if row.num_failed else ""
    line = Text.assemble("  ", row.proof.ljust(12), (page.readable(mark), style), " ", (word.ljust(9), style))
    line.append(f"{points:>4}   {failing}")
    page.line(line)


def _show_cause(page: Page, result: GradeResult, first: CheckResult, *, is_full: bool) -> None:
    page.heading("First cause")
    page.line(first.title, indent="  ")
    if not is_full:
        return
    place = f"{first.name}, world_size={first.world_size}, {first.transport}"
    page.line(place + (f", {first.site}" if first.site else ""), style="dim", indent="  ")
    page.blank()
    for line in first.message.splitlines():
        if line.startswith("  "):  # columns, and lines of code
            page.unbroken(page.readable(f"  {line}"))
        else:
            page.line(line, indent="  ")
    if first.suspicions:
        page.blank()
        page.line("What the ranks said of themselves (advice, not proof):", indent="  ")
        for suspicion in first.suspicions:
            page.line(suspicion, indent="    ")
    _show_printed(page, result, first)
    also = _others(result, first)
    if also:
        page.heading("Also failing")
        for check in also[:_MAX_ALSO]:
            lead = Text(f"  {check.proof:<12}", style="dim")
            page.print(Prose(Text(page.readable(check.title)), lead, Text(" " * 14)))
        if len(also) > _MAX_ALSO:
            page.line(f"and {len(also) - _MAX_ALSO} more", indent="  ", style="dim")


def _others(result: GradeResult, first: CheckResult) -> Sequence[CheckResult]:
    """The other failing checks, each once, at its smallest size."""
    seen = {first.name}
    others = []
    for check in sorted(result.checks, key=lambda c: c.world_size):
        if check.verdict == "failed" and check.name not in seen:
            seen.add(check.name)
            others.append(check)
    return others


def _show_printed(page: Page, result: GradeResult, first: CheckResult) -> None:
    if not first.launch_kind:
        return
    for title, text in result.rank_output[:2]:
        lines = ["".join(c if c.isprintable() or c == "\t" else "?" for c in line) for line in text.splitlines()]
        page.blank()
        page.line(f"[{title}]", style="dim", indent="  ")
        for line in lines[-_MAX_PRINTED_LINES:]:
            page.line(line, indent="  ", style="dim")


def _show_next(page: Page, result: GradeResult, bank_option: str) -> None:
    command = f"shardkit grade {result.question} {shlex.quote(result.solution)}{bank_option}"
    page.blank()
    if result.verdict == "not_started":
        page.line(f"the question: shardkit show {result.question}{bank_option}", style="dim")
        return
    page.unbroken(f"the same inputs again: {command} --seed {result.seed}", style="dim")
    if result.verdict not in ("passed", "kit_error"):
        page.unbroken(f"a hint: {command} --hint 1", style="dim")
