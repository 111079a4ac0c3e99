"""A grade as a reviewer would tell it: the verdict, the five proofs, the first cause with its evidence, what next."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
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
_MAX_PRINTED = 2  # ranks whose output is shown
_MAX_PRINTED_LINES = 8
_COLUMN = re.compile(r" {2,}")


def show_grade(
    page: Page, result: GradeResult, *, feedback: str = "full", bank_option: str = "", with_next: bool = True
) -> None:
    """feedback: "verdict" (verdict and proofs), "hint" (also which claim fails first) or "full" (also the evidence).

    with_next: also what can be done now.
    """
    show_verdict_and_proofs(page, result)
    if feedback != "verdict" and result.first_failure is not None:
        _show_cause(page, result, result.first_failure, is_full=feedback == "full")
    if with_next:
        _show_next(page, result, bank_option)


def show_verdict_and_proofs(page: Page, result: GradeResult) -> None:
    word, style = _VERDICTS[result.verdict]
    page.line(Text.assemble((result.question, "bold"), "  ", visible(result.solution)))
    score = f"   {result.score} of {result.max_score} points" if result.max_score else ""
    page.line(Text.assemble((word, style), score))
    for line in visible(result.message).splitlines():
        page.line(line, indent="  ")
    page.blank()
    rows = result.rows()
    for row in rows:
        _show_row(page, result, row)
    if rows[0].state == "failed" and any(row.points for row in rows):
        page.line("without values the score is 0", style="dim", indent=" " * 14)


def show_cause_briefly(page: Page, result: GradeResult, first: CheckResult) -> None:
    """What fails first and where, with the first sentence of the evidence."""
    _show_cause(page, result, first, is_full=False)
    found = first.diagnosis
    sentence = found.headline if found is not None else first.message.partition("\n")[0]
    place = ": ".join(filter(None, [first.site, found.place if found is not None else "", sentence]))
    page.blank()
    page.line(visible(place), indent="  ")


def show_broken_launch(page: Page, verdict: str, message: str) -> None:
    """A launch that did not come to its end: the verdict, and the diagnosis as a grade shows it."""
    word, style = _VERDICTS[verdict]
    page.line(word, style=style)
    page.blank()
    for line in visible(message).splitlines():
        _show_line(page, line)


def visible(text: str) -> str:
    """`text` without characters that move the cursor, change colours or reverse the line: they show as escapes."""
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
        else character.encode("unicode_escape").decode()
        for character in text
    )


# -- the five proofs --------------------------------------------------------------------------------------------------


def _show_row(page: Page, result: GradeResult, row: ProofRow) -> None:
    mark, word, style = _STATES[row.state]
    points = f"{row.points}/{row.max_points}" if row.max_points else ""
    lead = Text.assemble("  ", f"{row.proof:<12}", (page.readable(mark), style), " ", (f"{word:<9}", style))
    lead.append(f"{points:>4}   ")
    checks = [check for check in result.checks if check.proof == row.proof]
    page.print(Prose(Text(page.readable(_about(row, checks))), lead, Text(" " * lead.cell_len)))


def _about(row: ProofRow, checks: Sequence[CheckResult]) -> str:
    names = {check.name for check in checks}
    if row.state == "failed":
        failing = {check.name for check in checks if check.verdict in ("failed", "kit_error")}
        return f"{len(failing)} of {_count(len(names), 'check')} fail{'s' if len(failing) == 1 else ''}"
    reasons = [check.message for check in checks if check.verdict == "not_run"]
    if row.state == "passed":
        note = f"; not tried on gloo: {visible(reasons[0])}" if reasons else ""
        return _count(len(names), "check") + note
    return visible(reasons[0]) if row.state == "not_run" and reasons else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# -- the first cause --------------------------------------------------------------------------------------------------


def _show_cause(page: Page, result: GradeResult, first: CheckResult, *, is_full: bool) -> None:
    page.heading("First cause")
    page.line(first.title, indent="  ")
    place = [first.name, f"world_size={first.world_size}", first.transport, first.site if is_full else ""]
    page.line(visible(", ".join(filter(None, place))), style="dim", indent="  ")
    spread = _spread(result, first)
    if spread:
        page.line(spread, style="dim", indent="  ")
    if not is_full:
        return
    page.blank()
    _show_evidence(page, first)
    if first.suspicions:
        page.blank()
        page.line("Advice, from what the ranks said of themselves (it is not scored):", indent="  ")
        for suspicion in first.suspicions:
            page.print(Prose(Text(page.readable(visible(suspicion))), Text("    "), Text("      ")))
    _show_printed(page, first)
    _show_others(page, result, first)


def _spread(result: GradeResult, first: CheckResult) -> str:
    """Where else this check fails, and where it holds."""
    same = [check for check in result.checks if check.name == first.name]
    fails = _sizes(check for check in same if check.verdict == "failed" and check.transport == first.transport)
    holds = _sizes(check for check in same if check.verdict == "passed" and check.transport == "switchboard")
    if first.transport == "gloo" and str(first.world_size) in holds.split(", "):
        return "it holds on the switchboard, and fails on gloo alone"
    others = fails if fails != str(first.world_size) else ""
    parts = [f"fails at world sizes {others}"] if others else []
    parts += [f"holds at {holds}"] if holds else []
    return ", ".join(parts)


def _sizes(checks: Iterable[CheckResult]) -> str:
    return ", ".join(map(str, sorted({check.world_size for check in checks})))


def _show_evidence(page: Page, first: CheckResult) -> None:
    """The message: its sentence, then what stands in columns below it."""
    found = first.diagnosis
    if found is None:
        for line in visible(first.message).splitlines():
            _show_line(page, line)
        return
    page.line(visible(f"{found.place}: {found.headline}" if found.place else found.headline), indent="  ")
    for line in found.lines(page.width - 4):
        page.print(Prose(Text(page.readable(visible(line))), Text("    "), Text("      ")))


def _show_line(page: Page, line: str) -> None:
    """Prose wraps; a row of a table that is too wide gives up its columns first."""
    if not line.startswith("  "):
        page.line(line, indent="  ")
        return
    text = page.readable(line)
    if len(text) + 2 > page.width:
        text = text[: len(text) - len(text.lstrip())] + _COLUMN.sub("  ", text.strip())
    page.print(Prose(Text(text), Text("  "), Text("      ")))


def _show_printed(page: Page, first: CheckResult) -> None:
    """What ranks printed, the end of it: each line with whose it is, so that none passes for the kit's own."""
    for title, text in first.printed[:_MAX_PRINTED]:
        lines = visible(text).splitlines()
        page.blank()
        cut = f", its last {_MAX_PRINTED_LINES} lines of {len(lines)}" if len(lines) > _MAX_PRINTED_LINES else ""
        page.line(f"{title}{cut}:", style="dim", indent="  ")
        for line in lines[-_MAX_PRINTED_LINES:]:
            page.print(Prose(Text(page.readable(line), style="dim"), Text("    | "), Text("    | ")))
    left = len(first.printed) - _MAX_PRINTED
    if left > 0:
        page.line(f"and {left} more printed something", style="dim", indent="  ")


def _show_others(page: Page, result: GradeResult, first: CheckResult) -> None:
    seen = {first.name}
    others = []
    for check in sorted(result.checks, key=lambda c: c.world_size):
        if check.verdict == "failed" and check.name not in seen:
            seen.add(check.name)
            others.append(check)
    if not others:
        return
    page.heading("Also failing")
    for check in others[:_MAX_ALSO]:
        lead = Text(f"  {check.proof:<12}", style="dim")
        page.print(Prose(Text(page.readable(check.title)), lead, Text(" " * 14)))
    if len(others) > _MAX_ALSO:
        page.line(f"and {len(others) - _MAX_ALSO} more", indent="  ", style="dim")


# -- what next --------------------------------------------------------------------------------------------------------


def _show_next(page: Page, result: GradeResult, bank_option: str) -> None:
    command = visible(f"shardkit grade {result.question} {shlex.quote(result.solution)}{bank_option}")
    page.blank()
    if result.verdict == "kit_error":
        page.line("Nothing is held against your file. Please report this, with the seed below.")
    if result.verdict == "not_started":
        page.unbroken(f"the question: shardkit show {result.question}{bank_option}", style="dim")
    if result.checks:
        page.unbroken(f"the same inputs again: {command} --seed {result.seed}", style="dim")
    if result.verdict not in ("passed", "kit_error"):
        page.unbroken(f"a hint: {command} --hint 1", style="dim")
