"""A code question is whole: starter, checks, reference, wrong answers that need every check, right ones that fit."""

from __future__ import annotations

import ast
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kit.bank.document import read_text
from kit.bank.layout import Bank
from kit.bank.lint.checks import COMPLETES, Check, bare_asserts, read_checks
from kit.bank.lint.entry import Entry
from kit.bank.lint.finding import Finding
from kit.bank.lint.mutants import mutant_findings
from kit.bank.lint.signatures import Asked, find, imported, read_interface
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.bank.schema import CodeQuestion

LEAST_VARIANTS = 2
MOST_SCENARIOS = 3

ALLOWED_IN_ANSWERS = {*sys.stdlib_module_names, "torch"}
ALLOWED_IN_CHECKS = {*ALLOWED_IN_ANSWERS, "kit"}


def code_findings(bank: Bank, entry: Entry) -> Iterator[Finding]:
    question = entry.question
    if question.kind != "code":
        return
    yield from answer_findings(bank, entry, question)
    checks = yield from all_check_findings(bank, entry, question)
    if checks and bank.mutants(question.id).is_file() and bank.reference(question.id).is_file():
        yield from mutant_findings(bank, entry, checks)


def parsed(bank: Bank, path: Path) -> Generator[Finding, None, ast.Module | None]:
    """The file's tree; None, after saying why, where there is none."""
    if not path.is_file():  # another rule says so
        return None
    try:
        return ast.parse(read_text(path, bank.shown(path)))
    except SyntaxError as error:
        yield Finding(bank.shown(path), error.lineno or 0, f"not Python: {error.msg}", "correct it")
    except (KitError, ValueError, RecursionError):  # unreadable or not UTF-8: another rule says so
        pass
    return None


# --- starter, reference, variants ---------------------------------------------------------------------------


def answer_findings(bank: Bank, entry: Entry, question: CodeQuestion) -> Iterator[Finding]:
    interface = yield from read_whole_interface(entry, question)
    starter = yield from parsed(bank, bank.starter(question.id))
    if starter is not None:
        yield from file_findings(bank.shown(bank.starter(question.id)), starter, interface)
        if not raises_not_implemented(starter):
            shown = bank.shown(bank.starter(question.id))
            yield Finding(shown, 0, "the starter raises no NotImplementedError", "leave the work to the learner")
    if not bank.answers.is_dir():
        return
    variants = bank.variants(question.id)
    if len(variants) < LEAST_VARIANTS:
        folder = bank.shown(bank.variants_folder(question.id))
        advice = "write a right answer in another style"
        yield Finding(folder, 0, f"{len(variants)} variants, at least {LEAST_VARIANTS} are needed", advice)
    for path in (bank.reference(question.id), *variants):
        tree = yield from parsed(bank, path)
        if tree is not None:
            yield from file_findings(bank.shown(path), tree, interface)


def read_whole_interface(entry: Entry, question: CodeQuestion) -> Generator[Finding, None, list[Asked]]:
    interface = []
    for index, line in enumerate(question.interface):
        try:
            interface.append(read_interface(line))
        except ValueError:
            advice = "write 'def f(x)', 'class C(x)' or 'C.method(x)'"
            yield entry.finding(("interface", index), f"{line!r} is no interface", advice)
    return interface


def file_findings(shown: str, tree: ast.Module, interface: Sequence[Asked]) -> Iterator[Finding]:
    yield from import_findings(shown, tree, ALLOWED_IN_ANSWERS, "import torch and the standard library only")
    for asked in interface:
        defined = find(tree, asked)
        if defined is None:
            yield Finding(shown, 0, f"does not define {asked.name}", f"the interface says {asked.line!r}")
        elif defined.arguments is not None and defined.arguments != asked.arguments:
            message = f"{asked.name} takes ({defined.arguments}), and the interface says ({asked.arguments})"
            yield Finding(shown, defined.line, message, "make them equal; annotations may differ")


def import_findings(shown: str, tree: ast.Module, allowed: set[str], advice: str) -> Iterator[Finding]:
    for line, package in imported(tree):
        if package not in allowed:
            yield Finding(shown, line, f"imports {package!r}", advice)


def raises_not_implemented(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Raise) and node.exc is not None and "NotImplementedError" in ast.unparse(node.exc)
        for node in ast.walk(tree)
    )


# --- checks -------------------------------------------------------------------------------------------------


def all_check_findings(bank: Bank, entry: Entry, question: CodeQuestion) -> Generator[Finding, None, list[Check]]:
    path = bank.checks(question.id)
    shown = bank.shown(path)
    tree = yield from parsed(bank, path)
    if tree is None:
        return []
    yield from import_findings(shown, tree, ALLOWED_IN_CHECKS, "ranks import this file and have torch and kit only")
    for line in bare_asserts(tree):
        yield Finding(shown, line, "a bare assert in a check", "say it with compare or fail")
    checks = read_checks(tree)
    if not checks:
        yield Finding(shown, 0, "no check", "write functions test_* with @SCENARIO.check(...)")
    yield from check_findings(shown, checks)
    yield from points_findings(entry, question, checks)
    return checks


def check_findings(shown: str, checks: Sequence[Check]) -> Iterator[Finding]:
    names: dict[str, int] = {}
    for check in checks:
        if check.name in names:
            yield Finding(shown, check.line, f"{check.name} is defined again, first on line {names[check.name]}")
        names.setdefault(check.name, check.line)
        if not check.title:
            yield Finding(shown, check.line, f"{check.name} has no docstring", "write the line that a learner reads")
        if not check.proof:
            advice = 'decorate it with @SCENARIO.check("values") or @SCENARIO.completes'
            yield Finding(shown, check.line, f"{check.name} belongs to no scenario", advice)
    scenarios = list(dict.fromkeys(check.scenario for check in checks if check.scenario))
    if len(scenarios) > MOST_SCENARIOS:
        message = f"{len(scenarios)} scenarios: {', '.join(scenarios)}"
        yield Finding(shown, 0, message, f"{MOST_SCENARIOS} at most: each costs its launches")
    for scenario in scenarios:
        count = sum(check.proof == COMPLETES for check in checks if check.scenario == scenario)
        if count != 1:
            message = f"{count} checks are decorated with @{scenario}.completes"
            yield Finding(shown, 0, message, "exactly one says that every rank finishes")


def points_findings(entry: Entry, question: CodeQuestion, checks: Sequence[Check]) -> Iterator[Finding]:
    """A proof without points, or points without a check."""
    proven = {"discipline" if check.proof == COMPLETES else check.proof for check in checks if check.proof}
    for proof in sorted(proven - set(question.points)):
        yield entry.finding(("points",), f"no points for {proof!r}, which a check proves", "give it points")
    for proof in sorted(set(question.points) - proven):
        yield entry.finding(("points", proof), f"no check proves {proof!r}", "write one, or drop its points")
