"""`lint`: the rules of the content, by reading and by running."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kit.bank.layout import find_bank
from kit.cli import NOT_PASSED, PASSED
from kit.cli.torch_there import require_torch
from kit.errors import KitError
from kit.screen.lint import Progress, show_findings
from kit.screen.page import Page

if TYPE_CHECKING:
    from kit.grading.lint import Trial


def lint_questions(directory: Path | None, question_ids: Sequence[str], *, is_static: bool) -> int:
    """Prints every broken rule. Returns the exit code: 1 where there is one."""
    bank = find_bank(directory)
    ids = list(question_ids) or None
    page = Page()
    if is_static:
        from kit.bank.lint import lint

        findings = lint(bank, ids)
    else:
        require_torch("lint runs code questions and programs", "`shardkit lint --static` only reads")
        from kit.grading import lint_bank

        with Progress(Page(file=sys.stderr)) as progress:

            def tell(trial: Trial) -> None:
                progress.show(f"{trial.question}: {trial.kind} {trial.name}")

            findings = lint_bank(bank, ids, tell=tell)
    show_findings(page, findings, num_questions=len(ids or bank.ids()), is_static=is_static)
    return NOT_PASSED if findings else PASSED


def write_coverage(directory: Path | None, path: Path) -> None:
    """Writes the table of what the whole bank covers. Raises KitError where a question is wrong."""
    from kit.bank.coverage import coverage

    text = coverage(find_bank(directory))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise KitError(f"{path}: cannot be written: {error.strerror}") from error
    Page().line(f"wrote {path}")
