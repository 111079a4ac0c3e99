"""What can be said about a file and its question before torch is imported and a rank is started.

A question's own file is open to whoever answers it, so having read it gives nothing away to ranks that are forked
later. The seed is drawn after that fork, and expected values come last.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kit.bank.layout import Bank, find_bank, require_id
from kit.errors import KitError
from kit.grading.interface import Asked, parse_interface, problem_in_text
from kit.grading.result import GradeResult
from kit.grading.solution import Solution, read_solution

if TYPE_CHECKING:
    from kit.bank.schema import CodeQuestion


@dataclass(frozen=True, slots=True)
class Assignment:
    """A file that can be held against a question.

    interface: the question's lines; points: proof -> most points; forbidden: names that the file may not use.
    """

    bank: Bank
    question: str
    solution: Solution
    interface: tuple[str, ...]
    points: dict[str, int]
    forbidden: tuple[str, ...] = ()

    def not_started(self) -> GradeResult | None:
        """The grade of an untouched starter, for which nothing is run; None for any other file."""
        if not self.solution.is_untouched(self.bank.starter(self.question)):
            return None
        message = "the file is still the starter; nothing was run"
        return GradeResult(self.question, str(self.solution.path), "not_started", 0, self.points, (), 0.0, message)


def prepare(question_id: str | None, path: Path, bank: Bank | None = None) -> Assignment:
    """Read both files. Raises KitError for whatever the user has to put right.

    question_id: None takes it from the file's first line (`# shardkit: ID`).
    """
    solution = read_solution(path)
    bank = bank or find_bank()
    question_id = _question_of(bank, question_id, solution)
    asked = _code_question(bank, question_id)
    interface, points = tuple(asked.interface), {str(proof): int(most) for proof, most in asked.points.items()}
    assignment = Assignment(bank, question_id, solution, interface, points, tuple(asked.forbidden))
    if not solution.is_untouched(bank.starter(question_id)):
        problem = problem_in_text(_parsed(question_id, interface), solution.tree, solution.name)
        if problem:
            raise KitError(problem, f"`shardkit show {question_id}` says what the file must define")
    return assignment


def _question_of(bank: Bank, question_id: str | None, solution: Solution) -> str:
    if question_id is not None:
        return require_id(bank, question_id)
    if not solution.marked_id:
        raise KitError(
            f"{solution.path} does not say which question it answers",
            "name it: `shardkit grade ID FILE`, or begin the file with `# shardkit: ID`",
        )
    return require_id(bank, solution.marked_id)


def _code_question(bank: Bank, question_id: str) -> CodeQuestion:
    from kit.bank.load import load_question

    question = load_question(bank, question_id)
    if question.kind != "code":
        raise KitError(f"{question_id} is a {question.kind} question; only code is graded", "`shardkit quiz` asks it")
    if not bank.checks(question_id).is_file():
        raise KitError(f"{question_id} has no checks ({bank.shown(bank.checks(question_id))})", "run `shardkit lint`")
    return question


def _parsed(question_id: str, interface: tuple[str, ...]) -> tuple[Asked, ...]:
    try:
        return parse_interface(interface)
    except ValueError as error:
        raise KitError(f"{question_id}: {error}", "run `shardkit lint`") from None
