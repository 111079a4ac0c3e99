"""`hunt`: a wrong answer is shown, its mistake guessed, and then it is run; or it is written, to be put right."""

from __future__ import annotations

import contextlib
import gc
import random
import secrets
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kit.bank.layout import Bank, find_bank
from kit.bank.load import Header, headers, load_header
from kit.cli import KITS_FAULT, PASSED
from kit.cli.language import chosen_language
from kit.errors import KitError
from kit.practice.selection import selected, selection

if TYPE_CHECKING:
    from kit.bank.hunted import Hunted, Seen
    from kit.grading.result import GradeResult
    from kit.screen.page import Page

SEEDS = 10**6


@dataclass(frozen=True, slots=True)
class HuntOptions:
    """As they were typed. fix: the folder that the file is written to, and nothing is asked."""

    bank: Path | None = None
    id: str | None = None
    mutant: str | None = None
    seed: int | None = None
    topics: Sequence[str] = ()
    levels: Sequence[str] = ()
    fix: str | None = None
    lang: str | None = None
    is_run: bool = True
    is_saved: bool = True

    def check(self) -> None:
        if self.fix == "":
            raise KitError("--fix names no folder", "`--fix .` writes here")
        if self.mutant is not None and self.id is None:
            raise KitError("--mutant names a wrong answer to one question", "shardkit hunt ID --mutant NAME")
        if self.id is not None and (self.topics or self.levels):
            raise KitError("--topic and --level draw a question; with an ID there is nothing to draw")

    @property
    def bank_option(self) -> str:
        return f" --bank {shlex.quote(str(self.bank))}" if self.bank is not None else ""


def hunt(options: HuntOptions) -> int:
    """Returns the exit code: guessing wrong is no failure."""
    from kit.grading.choices import require_choices

    options.check()
    require_choices(options.seed, "switchboard")
    language = chosen_language(options.lang)
    bank = find_bank(options.bank)
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed
    header = chosen(bank, options, seed)

    from kit.bank.hunted import hunted
    from kit.screen.page import Page

    prey = hunted(bank, header.id, options.mutant, seed)
    page = Page(language)
    if options.fix is not None:
        write_file(page, prey, Path(options.fix), options)
        return PASSED
    return ask(page, bank, header, prey, seed, options)


def chosen(bank: Bank, options: HuntOptions, seed: int) -> Header:
    """The question of that id, or one that the seed draws. Raises KitError where no wrong answer is at hand."""
    if options.id is not None:
        header = load_header(bank, options.id)
        if header.kind != "code":
            raise KitError(f"{header.id} is a {header.kind} question; only code is hunted", "`shardkit quiz` asks it")
        if not is_huntable(bank, header):
            raise no_wrong_answers(f"this bank has no wrong answers to {header.id}")
        return header
    found = selected(headers(bank), selection(bank, options.topics, ["code"], options.levels))
    there = [header for header in found if is_huntable(bank, header)]
    if not there:
        raise no_wrong_answers("this bank has no wrong answers to these questions")
    return random.Random(f"which {seed}").choice(there)


def no_wrong_answers(what: str) -> KitError:
    return KitError(what, "it may have been given out without answers")


def is_huntable(bank: Bank, header: Header) -> bool:
    return bank.mutants(header.id).is_file() and bank.reference(header.id).is_file()


def ask(page: Page, bank: Bank, header: Header, prey: Hunted, seed: int, options: HuntOptions) -> int:
    from kit.cli.progress import open_progress
    from kit.cli.record import Stopwatch, keep_guesses
    from kit.practice.hunt import Hunt, end, finish, reply
    from kit.screen import hunt as screen
    from kit.screen.quiz import read_line

    with open_progress(page.language) if options.is_saved else contextlib.nullcontext() as store:
        since = Stopwatch()
        screen.show_candidate(page, prey, header, f"shardkit show {header.id}{options.bank_option}")
        why_not_run = reason_not_to_run(options)
        state = screen.guess_all(page, Hunt(prey, is_line_only=bool(why_not_run)))
        if state.wants_file:
            write_file(page, prey, Path("."), options)
        if state.phase == "over":
            return PASSED
        result = run(page, bank, prey, seed) if not why_not_run else None
        state = finish(state, seen(result), is_run=result is not None)
        if store is not None:
            score = None if state.is_skipped else state.score
            keep_guesses(
                store, header, since, mode="hunt", seed=seed, score=score, num_hints=state.num_hints
            )  # before the screen shows it
    if result is not None:
        screen.show_result(page, result)
    screen.show_end(page, state, note=why_not_run)
    named = f"shardkit hunt {header.id} --mutant {prey.mutant.name}{options.bank_option}"
    page.blank()
    screen.show_commands(page, {"hunt_again": f"{named} --seed {seed}"})
    if not page.terminal.is_interactive:
        screen.show_commands(page, {"hunt_fix": f"{named} --fix ."})
        return PASSED if result is None or result.verdict != "kit_error" else KITS_FAULT
    screen.show_way_on(page)
    line = read_line(page)
    state = end(state) if line is None else reply(state, line)
    if state.wants_file:
        write_file(page, prey, Path("."), options)
    return PASSED if result is None or result.verdict != "kit_error" else KITS_FAULT


def seen(result: GradeResult | None) -> Seen | None:
    if result is None or result.verdict == "kit_error":
        return None
    from kit.grading.symptoms import seen_in

    return seen_in(result)


# -- the run ----------------------------------------------------------------------------------------------------------


def reason_not_to_run(options: HuntOptions) -> str:
    """The phrase that says it, or nothing."""
    from importlib.util import find_spec

    if not options.is_run:
        return "hunt_not_run"
    return "hunt_no_torch" if find_spec("torch") is None else ""


def run(page: Page, bank: Bank, prey: Hunted, seed: int) -> GradeResult:
    from kit.screen.hunt import show_running

    show_running(page)
    with tempfile.TemporaryDirectory(prefix="shardkit-") as folder:
        path = Path(folder, file_name(prey))
        path.write_text(prey.text, encoding="utf-8")
        return replace(graded(bank, prey.question_id, path, seed), solution=path.name)


def graded(bank: Bank, question_id: str, path: Path, seed: int) -> GradeResult:
    """As `grade` does it: on the switchboard, and on gloo where that let it pass."""
    from kit.grading.preflight import prepare

    assignment = prepare(question_id, path, bank)
    gc.disable()  # importing torch makes very many objects and no garbage
    from kit.grading.grader import ranks_ready, run_checks

    with ranks_ready() as zygote:
        gc.enable()
        result = run_checks(assignment, seed=seed, transport="switchboard", zygote=zygote)
        if result.verdict == "passed":
            result = run_checks(assignment, seed=seed, zygote=zygote)
    return result


# -- the file ---------------------------------------------------------------------------------------------------------


def file_name(prey: Hunted) -> str:
    return f"{prey.question_id.rsplit('/', 1)[-1]}.py"


def write_file(page: Page, prey: Hunted, folder: Path, options: HuntOptions) -> None:
    """The candidate's file, and how to go on with it. Raises KitError rather than touch what is there."""
    from kit.cli.start import write_new
    from kit.screen.hunt import show_commands, show_written

    target = folder / file_name(prey)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_new(target, prey.text)
    except FileExistsError:
        what = f"{target} is there already" if folder.is_dir() else f"{folder} is not a folder"
        raise KitError(what, "--fix DIR writes elsewhere") from None
    except OSError as error:
        raise KitError(f"{error.filename or target}: {error.strerror}") from None
    show_written(page, str(target))
    file, bank = shlex.quote(str(target)), options.bank_option
    commands = {
        "hunt_read": f"shardkit show {prey.question_id}{bank}",
        "hunt_watch": f"shardkit watch {file}{bank}",
        "hunt_grade": f"shardkit grade {file}{bank}",
    }
    show_commands(page, commands)
