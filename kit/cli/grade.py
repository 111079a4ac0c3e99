"""`grade`: a file against a question's checks, on several ranks."""

from __future__ import annotations

import gc
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from kit.bank.layout import ID, Bank, find_bank
from kit.bank.load import load_question
from kit.cli import KITS_FAULT, NOT_PASSED, PASSED
from kit.cli.torch_there import require_torch
from kit.errors import KitError


@dataclass(frozen=True, slots=True)
class GradeOptions:
    bank: Path | None
    seed: int | None
    transport: str
    json: Path | None
    junit: Path | None
    feedback: str
    hint: int | None


def grade_file(words: list[str], options: GradeOptions, *, with_reference: bool) -> int:
    """words: `[ID] FILE`, or `ID` alone with the reference. Returns the exit code."""
    require_torch("grade runs the file on several ranks", "`shardkit quiz` needs no torch")
    bank = find_bank(options.bank)
    question_id, path = _named(words, bank, with_reference=with_reference)
    _check_options(options)
    if options.hint is not None:
        return _show_hint(bank, question_id, path, options.hint)

    from kit.grading.preflight import prepare

    target = path if path is not None else _reference(bank, question_id)
    # What the user has to put right is said at once, without torch; and a starter is not run.
    assignment = prepare(question_id, target, bank)
    result = assignment.not_started()
    if result is None:
        gc.disable()  # importing torch makes very many objects and no garbage: half a second of looking for it
        from kit.grading.grader import ranks_ready, run_checks

        # torch is imported once, and the zygote forked, before a seed is drawn.
        with ranks_ready() as zygote:
            gc.enable()
            result = run_checks(assignment, seed=options.seed, transport=options.transport, zygote=zygote)
    _report(result, options)
    if result.verdict == "kit_error":
        return KITS_FAULT
    return PASSED if result.verdict == "passed" else NOT_PASSED


def _named(words: list[str], bank: Bank, *, with_reference: bool) -> tuple[str | None, Path | None]:
    if with_reference:
        if len(words) != 1:
            raise KitError("--reference grades the bank's own answer", "shardkit grade ID --reference")
        return words[0], None
    if not 1 <= len(words) <= 2:
        raise KitError(f"{len(words)} arguments where [ID] FILE belongs", "shardkit grade ID FILE")
    for word in words[1:]:
        if _is_question(bank, word) and not Path(word).exists():
            raise KitError(f"{word} is a question; the file comes after it", f"shardkit grade {word} FILE")
    if len(words) == 1:
        if _is_question(bank, words[0]) and not Path(words[0]).exists():
            raise KitError(f"which file answers {words[0]}?", f"shardkit grade {words[0]} FILE")
        return None, Path(words[0])
    return words[0], Path(words[1])


def _is_question(bank: Bank, word: str) -> bool:
    """Looks for the file and reads none."""
    return ID.fullmatch(word) is not None and bank.question(word).is_file()


def _check_options(options: GradeOptions) -> None:
    from kit.screen.grade import FEEDBACK

    if options.feedback not in FEEDBACK:
        raise KitError(f"no feedback {options.feedback!r}; there are {', '.join(FEEDBACK)}")
    from kit.grading.choices import require_choices
    from kit.grading.report import require_writable

    require_choices(options.seed, options.transport)
    for path in (options.json, options.junit):
        if path is not None and str(path) != "-":
            require_writable(path)


def _reference(bank: Bank, question_id: str | None) -> Path:
    from kit.bank.layout import require_id

    assert question_id is not None
    path = bank.reference(require_id(bank, question_id))
    if not path.is_file():
        raise KitError(f"this bank has no reference for {question_id}", "it may have been given out without answers")
    return path


def _show_hint(bank: Bank, question_id: str | None, path: Path | None, number: int) -> int:
    """One hint of the question; nothing is run."""
    from kit.bank.layout import require_id
    from kit.grading.solution import read_solution
    from kit.screen.page import Page

    if question_id is None:
        assert path is not None
        question_id = read_solution(path).marked_id
        if not question_id:
            raise KitError(f"{path} does not say which question it answers", "shardkit grade ID FILE --hint N")
    hints = load_question(bank, require_id(bank, question_id)).hints
    if not 1 <= number <= len(hints):
        raise KitError(f"{question_id} has hints 1 to {len(hints)}, not {number}")
    from kit.cli.language import chosen_language

    page = Page(chosen_language(None))
    text = hints[number - 1]
    page.heading(page.say("hint", number=number, count=len(hints)))
    page.markdown(text.zh if page.language == "zh" else text.en)
    if number < len(hints):
        page.blank()
        file = shlex.quote(str(path)) if path is not None else ""
        page.unbroken(f"shardkit grade {question_id} {file} --hint {number + 1}", style="dim")
    return PASSED


def _report(result: object, options: GradeOptions) -> None:
    from kit.grading import report
    from kit.grading.result import GradeResult
    from kit.screen.grade import show_grade
    from kit.screen.page import Page

    assert isinstance(result, GradeResult)
    if options.junit is not None:
        report.write(options.junit, report.junit_text(result))
    if options.json is not None and str(options.json) == "-":
        sys.stdout.write(report.json_text(result))
        return
    if options.json is not None:
        report.write(options.json, report.json_text(result))
    bank_option = f" --bank {shlex.quote(str(options.bank))}" if options.bank is not None else ""
    show_grade(Page(), result, feedback=options.feedback, bank_option=bank_option)
