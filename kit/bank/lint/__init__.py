"""The rules of the content that can be held by reading it. What has to run is held by the grading."""

from __future__ import annotations

from collections.abc import Iterable

from kit.bank.layout import Bank, require_id
from kit.bank.lint.code import code_findings
from kit.bank.lint.covers import covers_findings
from kit.bank.lint.drawn import number_findings, stray_placeholder_findings
from kit.bank.lint.entry import Entry, read_entry
from kit.bank.lint.files import file_findings, question_file_findings
from kit.bank.lint.finding import Finding
from kit.bank.lint.habits import habit_findings
from kit.bank.lint.links import cycle_findings, link_findings
from kit.bank.lint.options import option_findings
from kit.bank.lint.programs import program_findings
from kit.bank.lint.readmes import readme_findings
from kit.bank.lint.sources import source_findings
from kit.bank.lint.texts import text_findings
from kit.bank.load import question_problems

__all__ = ["Finding", "lint"]


def lint(bank: Bank, question_ids: Iterable[str] | None = None) -> list[Finding]:
    """Every broken rule, in the order of files and lines; of the whole bank, or of the named questions only.

    Raises KitError for an id that the bank does not have.
    """
    ids = bank.ids() if question_ids is None else [require_id(bank, each) for each in question_ids]
    findings: list[Finding] = []
    entries: list[Entry] = []
    for question_id in ids:
        problems = question_problems(bank, question_id)
        findings += [Finding(problem.path, problem.line, problem.what) for problem in problems]
        findings += question_file_findings(bank, question_id)
        if not problems:
            entries.append(read_entry(bank, question_id))
    known = set(bank.ids())
    for entry in entries:
        findings += text_findings(entry)
        findings += link_findings(entry, known)
        findings += option_findings(entry)
        findings += number_findings(entry)
        findings += stray_placeholder_findings(entry)
        findings += program_findings(entry)
        findings += source_findings(entry)
        findings += covers_findings(bank, entry)
        findings += code_findings(bank, entry)
    if question_ids is None:
        findings += file_findings(bank)
        findings += readme_findings(bank)
        findings += cycle_findings(entries)
        findings += habit_findings(entries)
    return sorted(set(findings))
