"""From a checks file to what it is held against: the solution that was given, or the reference."""

from __future__ import annotations

from pathlib import Path

from kit.bank.layout import Bank
from kit.errors import KitError
from kit.grading.launches import Subject


def question_of(checks: Path) -> tuple[Bank, str] | None:
    """`.../questions/a/test_b.py` -> (bank, "a/b"); None for a checks file that lies elsewhere."""
    checks = checks.resolve()
    topic = checks.parent
    if topic.parent.name != "questions" or not checks.stem.startswith("test_"):
        return None
    bank, question_id = Bank(topic.parent.parent), f"{topic.name}/{checks.stem.removeprefix('test_')}"
    return (bank, question_id) if bank.question(question_id).is_file() else None


def subject_of(checks: Path, solution: Path | None) -> Subject:
    """KitError where there is nothing to hold the checks against."""
    from kit.bank.load import load_question
    from kit.grading.solution import read_solution

    found = question_of(checks)
    interface: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    if found is not None:
        bank, question_id = found
        question = load_question(bank, question_id)
        if question.kind == "code":
            interface, forbidden = question.interface, question.forbidden
        solution = solution or bank.reference(question_id)
        if not solution.is_file() and solution == bank.reference(question_id):
            raise KitError(f"{question_id} has no reference here", "give a file with --solution FILE")
    if solution is None:
        raise KitError(f"{checks} belongs to no question", "give a file with --solution FILE")
    return Subject(checks.resolve(), read_solution(solution).path.resolve(), interface, forbidden)
