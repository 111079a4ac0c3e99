"""The rules of the content that only running can hold: starters fail, references pass, each mutant dies for its reason.

For every code question: the untouched starter passes no check; the reference and every variant pass every check, the
reference at several seeds; each mutant fails exactly the checks that it names, and its failure says what it must.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kit.bank.layout import Bank
from kit.bank.lint import Finding, lint
from kit.bank.load import load_question
from kit.bank.mutants import apply, load_mutants, read_reference
from kit.errors import KitError
from kit.grading.grader import grade, ranks_ready
from kit.grading.result import GradeResult
from kit.world import Zygote

SEEDS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Trial:
    """One file that a rule of the content runs. kind: "starter", "reference", "variant" or "mutant"."""

    question: str
    kind: str
    name: str
    seed: int
    problem: str
    duration_s: float


Held = tuple[Trial, Finding | None]


def lint_bank(
    bank: Bank,
    question_ids: Sequence[str] | None = None,
    *,
    is_static: bool = False,
    tell: Callable[[Trial], None] = lambda trial: None,
) -> list[Finding]:
    """Every broken rule of the content; the static ones first, and running only where those hold.

    tell: called after each file that was run. Raises KitError for an id that the bank does not have.
    """
    findings = list(lint(bank, question_ids))
    if is_static:
        return findings
    ids = list(question_ids) if question_ids is not None else bank.ids()
    codes = [question_id for question_id in ids if not _is_broken(bank, question_id) and _is_code(bank, question_id)]
    if not codes or not bank.answers.is_dir():
        return findings
    with ranks_ready() as zygote:
        for question_id in codes:
            for trial, finding in _trials(bank, question_id, zygote):
                tell(trial)
                if finding is not None:
                    findings.append(finding)
    return findings


def _is_broken(bank: Bank, question_id: str) -> bool:
    try:
        load_question(bank, question_id)
    except KitError:
        return True
    return False


def _is_code(bank: Bank, question_id: str) -> bool:
    return load_question(bank, question_id).kind == "code"


def _trials(bank: Bank, question_id: str, zygote: Zygote) -> Iterator[Held]:
    def held(kind: str, name: str, file: Path, seed: int, rule: Callable[[GradeResult], str], shown: Path) -> Held:
        # What is wrong is wrong on the switchboard; only right answers have to hold on gloo as well.
        transport = "both" if kind in ("reference", "variant") else "switchboard"
        problem, spent = "", 0.0
        try:
            result = grade(question_id, file, bank=bank, seed=seed, transport=transport, zygote=zygote)
            problem, spent = rule(result), result.duration_s
        except KitError as error:
            problem = error.message
        finding = Finding(bank.shown(shown), 0, f"{name}: {problem}") if problem else None
        return Trial(question_id, kind, name, seed, problem, spent), finding

    reference = bank.reference(question_id)
    with tempfile.TemporaryDirectory(prefix="shardkit-lint-") as folder:
        starter = Path(folder, bank.starter(question_id).name)
        # One statement more, so that it is run and not recognised.
        starter.write_text(bank.starter(question_id).read_text(encoding="utf-8") + "\n\n_ = None\n", encoding="utf-8")
        yield held("starter", "starter", starter, SEEDS[0], _passes_nothing, bank.starter(question_id))
        for seed in SEEDS:
            yield held("reference", "reference", reference, seed, _passes, reference)
        for variant in bank.variants(question_id):
            yield held("variant", f"variant {variant.stem}", variant, SEEDS[0], _passes, variant)
        text = read_reference(bank, question_id)
        for mutant in load_mutants(bank, question_id):
            file = Path(folder, reference.name)
            file.write_text(apply(mutant, text), encoding="utf-8")
            rule = partial(_dies_of, caught_by=frozenset(mutant.caught_by), says=mutant.says or "")
            yield held("mutant", f"mutant {mutant.name}", file, SEEDS[0], rule, bank.mutants(question_id))


def _passes(result: GradeResult) -> str:
    if result.verdict == "passed":
        return ""
    first = result.first_failure
    return f"a right answer is {result.verdict}: {first.name}: {first.message}" if first else result.message


def _passes_nothing(result: GradeResult) -> str:
    if result.verdict == "kit_error":
        return result.message or "a check is at fault"
    passed = sorted({check.name for check in result.checks if check.verdict == "passed"})
    return f"the starter passes {', '.join(passed)}" if passed else ""


def _dies_of(result: GradeResult, caught_by: frozenset[str], says: str) -> str:
    """Empty where exactly these checks fail, and one of them says so."""
    if result.verdict == "kit_error":
        return result.message or "a check is at fault"
    failed = result.failed_checks
    if failed != caught_by:
        survived, extra = sorted(caught_by - failed), sorted(failed - caught_by)
        parts = ([f"survives {', '.join(survived)}"] if survived else []) + (
            [f"also fails {', '.join(extra)}"] if extra else []
        )
        return "; ".join(parts) + f" (caught_by says {', '.join(sorted(caught_by))})"
    if says and not any(says.lower() in check.message.lower() for check in result.checks if check.verdict == "failed"):
        first = result.first_failure
        return f"no failure says {says!r}; the first says: {first.message if first else ''}"
    return ""
