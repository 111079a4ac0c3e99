"""The rules of the content that only running can hold: starters fail, references pass, each mutant dies for its reason.

For every program that a question asks about or proves itself by: it does what the question says.
For every code question: the untouched starter passes no check; the reference and every variant pass every check, the
reference at several seeds; each mutant fails exactly the checks that it names, and its failure says what it must.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from kit.bank.layout import Bank
from kit.bank.lint import Finding, lint
from kit.bank.lint.entry import read_entry
from kit.bank.load import load_question
from kit.bank.mutants import apply, load_mutants, read_reference
from kit.errors import KitError
from kit.grading.experiments import experiment_finding, experiments
from kit.grading.forbidden import problem_of
from kit.grading.grader import grade, ranks_ready
from kit.grading.result import GradeResult
from kit.world import Zygote

SEEDS = (1, 2, 3)
_MAX_JOBS = 4


@dataclass(frozen=True, slots=True)
class Trial:
    """One file that a rule of the content runs.

    kind: "starter", "reference", "variant" or "mutant" of a code question; "program" or "proof" of any other.
    """

    question: str
    kind: str
    name: str
    seed: int
    problem: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class _Plan:
    """A trial before it is run. shown: the file of the bank that a finding is about."""

    question: str
    kind: str
    name: str
    file: Path
    shown: Path
    seed: int = SEEDS[0]
    caught_by: frozenset[str] = field(default_factory=frozenset)
    says: str = ""


def lint_bank(
    bank: Bank,
    question_ids: Sequence[str] | None = None,
    *,
    is_static: bool = False,
    tell: Callable[[Trial], None] = lambda trial: None,
    jobs: int | None = None,
) -> list[Finding]:
    """Every broken rule of the content; the static ones first, and running only where those hold.

    tell: called after each file that was run. jobs: files that are run at the same time, each by a process of its
    own; None takes one a core, at most four. Raises KitError for an id that the bank does not have.
    """
    findings = list(lint(bank, question_ids))
    if is_static:
        return findings
    ids = list(question_ids) if question_ids is not None else bank.ids()
    whole = [question_id for question_id in ids if not _is_broken(bank, question_id)]
    findings += _experiment_findings(bank, whole, tell)
    codes = [question_id for question_id in whole if _is_code(bank, question_id)]
    findings += _forbidden_findings(bank, codes)
    if not codes or not bank.answers.is_dir():
        return findings
    with tempfile.TemporaryDirectory(prefix="shardkit-lint-") as folder:
        plans = []
        for question_id in codes:
            try:
                plans += list(_plans(bank, question_id, Path(folder)))
            except KitError as error:
                if not any(str(finding) in error.message or error.message in str(finding) for finding in findings):
                    findings.append(Finding(bank.shown(bank.mutants(question_id)), 0, error.message))
        for plan, (problem, spent) in zip(plans, _outcomes(bank, plans, jobs), strict=True):
            tell(Trial(plan.question, plan.kind, plan.name, plan.seed, problem, spent))
            if problem:
                what = plan.kind if plan.kind == plan.name else f"{plan.kind} {plan.name}"
                findings.append(Finding(bank.shown(plan.shown), 0, f"{what}: {problem}"))
    return findings


def _is_broken(bank: Bank, question_id: str) -> bool:
    try:
        load_question(bank, question_id)
    except KitError:
        return True
    return False


def _is_code(bank: Bank, question_id: str) -> bool:
    return load_question(bank, question_id).kind == "code"


def _experiment_findings(bank: Bank, question_ids: Sequence[str], tell: Callable[[Trial], None]) -> Iterator[Finding]:
    """Programs that do not do what is said of them; one after the other, each takes a fraction of a second."""
    entries = [read_entry(bank, question_id) for question_id in question_ids]
    to_run = [(entry, *each) for entry in entries for each in experiments(entry)]
    if not to_run:
        return
    with ranks_ready() as zygote:
        for entry, name, location, experiment in to_run:
            started = time.monotonic()
            finding = experiment_finding(entry, location, experiment, zygote)
            problem = finding.message if finding else ""
            tell(Trial(entry.question.id, name, name, SEEDS[0], problem, time.monotonic() - started))
            if finding:
                yield finding


def _forbidden_findings(bank: Bank, question_ids: Sequence[str]) -> Iterator[Finding]:
    """Names that mean nothing to the torch that is installed, or cannot be made to refuse."""
    for question_id in question_ids:
        entry = read_entry(bank, question_id)
        names = entry.question.forbidden if entry.question.kind == "code" else ()
        if names:
            _preload()
        for index, name in enumerate(names):
            problem = problem_of(name)
            if problem:
                yield entry.finding(("forbidden", index), f"forbidden: {problem}")


def _plans(bank: Bank, question_id: str, folder: Path) -> Iterator[_Plan]:
    """All that has to be run for a question; starters and mutants are written below `folder`."""
    reference, own = bank.reference(question_id), folder / question_id
    starter = own / "starter" / reference.name
    starter.parent.mkdir(parents=True)
    # One statement more, so that it is run and not recognised.
    starter.write_text(bank.starter(question_id).read_text(encoding="utf-8") + "\n\n_ = None\n", encoding="utf-8")
    yield _Plan(question_id, "starter", "starter", starter, bank.starter(question_id))
    for seed in SEEDS:
        yield _Plan(question_id, "reference", "reference", reference, reference, seed)
    for variant in bank.variants(question_id):
        yield _Plan(question_id, "variant", variant.stem, variant, variant)
    text = read_reference(bank, question_id)
    for mutant in load_mutants(bank, question_id):
        file = own / mutant.name / reference.name
        file.parent.mkdir()
        file.write_text(apply(mutant, text), encoding="utf-8")
        caught_by, says = frozenset(mutant.caught_by), mutant.says or ""
        shown = bank.mutants(question_id)
        yield _Plan(question_id, "mutant", mutant.name, file, shown, caught_by=caught_by, says=says)


# -- running ----------------------------------------------------------------------------------------------------------


def _outcomes(bank: Bank, plans: Sequence[_Plan], jobs: int | None) -> Iterator[tuple[str, float]]:
    """For each plan the rule that it breaks (empty where it breaks none), and how long it took."""
    most = jobs if jobs is not None else min(os.cpu_count() or 1, _MAX_JOBS)
    most = max(1, min(most, len(plans)))
    if most == 1 or sys.platform != "linux":
        with ranks_ready() as zygote:
            for plan in plans:
                yield _outcome(bank, plan, zygote)
        return
    # torch is imported here, once; the workers are forks, and so are the zygotes that each of them makes.
    _preload()
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(most, context, initializer=_begin_worker, initargs=(bank,)) as workers:
        yield from workers.map(_in_worker, plans)


def _preload() -> None:
    from kit.world.preload import preload

    preload(("kit.grading.entry",))


_worker: list[tuple[Bank, Zygote]] = []


def _begin_worker(bank: Bank) -> None:
    _worker.append((bank, ranks_ready()))


def _in_worker(plan: _Plan) -> tuple[str, float]:
    return _outcome(_worker[0][0], plan, _worker[0][1])


def _outcome(bank: Bank, plan: _Plan, zygote: Zygote) -> tuple[str, float]:
    # What is wrong is wrong on the switchboard; only right answers have to hold on gloo as well.
    is_right = plan.kind in ("reference", "variant")
    transport = "both" if is_right else "switchboard"
    try:
        result = grade(plan.question, plan.file, bank=bank, seed=plan.seed, transport=transport, zygote=zygote)
    except KitError as error:
        return error.message, 0.0
    if plan.kind == "mutant":
        return _dies_of(result, plan.caught_by, plan.says), result.duration_s
    return (_passes(result) if is_right else _passes_nothing(result)), result.duration_s


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
