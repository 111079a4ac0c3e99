"""Programs that are shown fit the screen, and need nothing that a rank does not have."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kit.bank.lint.entry import Entry
from kit.bank.lint.finding import Finding
from kit.bank.lint.signatures import imported

if TYPE_CHECKING:
    from kit.bank.schema import Experiment

WIDEST = 76  # with the indent of a screen, in 80 columns


def program_findings(entry: Entry) -> Iterator[Finding]:
    question = entry.question
    if question.kind == "predict":
        yield from experiment_findings(entry, (), question.experiment)
    if question.proof is not None:
        yield from experiment_findings(entry, ("proof",), question.proof)


def experiment_findings(entry: Entry, location: tuple[str, ...], experiment: Experiment) -> Iterator[Finding]:
    for line, package in imported(ast.parse(experiment.program)):
        if package != "torch" and package not in sys.stdlib_module_names:
            what = f"line {line} of the program imports {package!r}"
            yield entry.finding((*location, "program"), what, "a program has torch and the standard library")
    for number, text in enumerate(experiment.program.split("\n"), 1):
        if len(text) > WIDEST:
            what = f"line {number} of the program has {len(text)} characters, {WIDEST} at most"
            yield entry.finding((*location, "program"), what, "break it, so that it is shown as it stands")
