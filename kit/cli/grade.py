"""`grade`: a file against a question's checks, on several ranks."""

from __future__ import annotations

import gc
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kit.bank.layout import Bank, find_bank
from kit.bank.load import load_question
from kit.cli import KITS_FAULT, NOT_PASSED, PASSED
from kit.cli.solutions import named, reference
from kit.cli.timeline import require_suffix, write_timeline
from kit.cli.torch_there import require_torch
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.grading.scenario import Run


@dataclass(frozen=True, slots=True)
class GradeOptions:
    bank: Path | None
    seed: int | None
    transport: str
    json: Path | None
    junit: Path | None
    feedback: str
    hint: int | None
    timeline: Path | None = None


def grade_file(words: list[str], options: GradeOptions, *, with_reference: bool) -> int:
    """words: `[ID] FILE`, or `ID` alone with the reference. Returns the exit code."""
    require_torch("grade runs the file on several ranks", "`shardkit quiz` needs no torch")
    bank = find_bank(options.bank)
    question_id, path = named(words, bank, "grade", with_reference=with_reference)
    _check_options(options)
    if options.hint is not None:
        return _show_hint(bank, question_id, path, options.hint)

    from kit.grading.preflight import prepare

    target = path if path is not None else reference(bank, question_id)
    # What the user has to put right is said at once, without torch; and a starter is not run.
    assignment = prepare(question_id, target, bank)
    result = assignment.not_started()
    runs: list[Run] = []
    if result is None:
        gc.disable()  # importing torch makes very many objects and no garbage: half a second of looking for it
        from kit.grading.grader import ranks_ready, run_checks

        # torch is imported once, and the zygote forked, before a seed is drawn.
        with ranks_ready() as zygote:
            gc.enable()
            result = run_checks(assignment, seed=options.seed, transport=options.transport, zygote=zygote, runs=runs)
    if options.timeline is not None:
        _write_timeline(assignment.question, runs, options.timeline)
    _report(result, options)
    if result.verdict == "kit_error":
        return KITS_FAULT
    return PASSED if result.verdict == "passed" else NOT_PASSED


def _check_options(options: GradeOptions) -> None:
    from kit.screen.grade import FEEDBACK

    if options.feedback not in FEEDBACK:
        raise KitError(f"no feedback {options.feedback!r}; there are {', '.join(FEEDBACK)}")
    from kit.grading.choices import require_choices
    from kit.grading.report import require_writable

    require_choices(options.seed, options.transport)
    if options.timeline is not None:
        require_suffix(options.timeline)
    for path in (options.json, options.junit, options.timeline):
        if path is not None and str(path) != "-":
            require_writable(path)


def _write_timeline(question_id: str, runs: list[Run], path: Path) -> None:
    """Of the launch that tells most; where none came to its end there is no file, and that is said."""
    from kit.grading.timelines import telling_run

    run = telling_run(runs)
    if run is None:
        print(f"note: no launch on the switchboard came to its end, so {path} was not written", file=sys.stderr)
        return
    write_timeline(run.result.timeline, f"{question_id}, {run.scenario.name}, world_size={run.world_size}", path)


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
