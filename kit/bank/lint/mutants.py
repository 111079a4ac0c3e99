"""Wrong answers apply, compile, and together need every check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kit.bank.closest import closest
from kit.bank.hunted import as_candidate
from kit.bank.layout import Bank
from kit.bank.lint.checks import Check
from kit.bank.lint.entry import Entry, texts_below
from kit.bank.lint.finding import Finding
from kit.bank.lint.texts import language_findings
from kit.bank.mutants import load_mutant_document, mutant_problems, read_mutants, read_reference, replaced
from kit.errors import KitError

LEAST_MUTANTS = 6


def mutant_findings(bank: Bank, entry: Entry, checks: Sequence[Check]) -> Iterator[Finding]:
    question_id = entry.question.id
    problems = mutant_problems(bank, question_id)
    yield from (Finding(problem.path, problem.line, problem.what) for problem in problems)
    if problems:
        return
    mutants = read_mutants(bank, question_id)
    reference = read_reference(bank, question_id)
    document = load_mutant_document(bank, question_id)
    yield from language_findings(document, texts_below(mutants, ("mutants",)))
    if len(mutants) < LEAST_MUTANTS:
        advice = "write more wrong answers that people give"
        yield Finding(document.path, 0, f"{len(mutants)} mutants, at least {LEAST_MUTANTS} are needed", advice)
    names = [check.name for check in checks]
    written: dict[str, str] = {}
    for index, mutant in enumerate(mutants):
        line = document.line(["mutants", index])
        try:
            as_candidate(question_id, mutant, reference)
        except KitError as error:
            yield Finding(
                document.path, line, error.message, "give a piece of it, without comments, that stands in it once"
            )
        text = replaced(mutant, reference)
        if text in written:
            yield Finding(document.path, line, f"{mutant.name} is the same file as {written[text]}", "remove one")
        written.setdefault(text, mutant.name)
        for place, name in enumerate(mutant.caught_by):
            where = document.line(["mutants", index, "caught_by", place])
            if name in mutant.caught_by[:place]:
                yield Finding(document.path, where, f"{mutant.name} names {name} twice", "once is enough")
            elif name not in names:
                near = closest(name, names, limit=1)
                advice = f"did you mean {near[0]}?" if near else f"the checks are {', '.join(names)}"
                yield Finding(document.path, where, f"{mutant.name} is caught by {name}, which is no check", advice)
    caught = {name for mutant in mutants for name in mutant.caught_by}
    for check in checks:
        if check.name not in caught:
            advice = "add a mutant that it catches, or remove the check"
            yield Finding(bank.shown(bank.checks(question_id)), check.line, f"no mutant needs {check.name}", advice)
