"""`predict`: one launch of a code question's file, whose figures are guessed before they are shown."""

from __future__ import annotations

import contextlib
import gc
import secrets
import shlex
from dataclasses import dataclass
from pathlib import Path

from kit.bank.layout import find_bank
from kit.bank.load import load_header
from kit.cli import NOT_PASSED, PASSED
from kit.cli.language import chosen_language
from kit.cli.solutions import named, reference
from kit.cli.torch_there import require_torch


@dataclass(frozen=True, slots=True)
class PredictOptions:
    bank: Path | None = None
    world_size: int | None = None
    scenario: str | None = None
    mark: str | None = None
    seed: int | None = None
    lang: str | None = None
    is_saved: bool = True


def predict(words: list[str], options: PredictOptions, *, with_reference: bool) -> int:
    """words: `[ID] FILE`, or `ID` alone with the reference. Returns the exit code: guessing wrong is no failure."""
    require_torch("predict runs the file on several ranks", "`shardkit hunt --no-run` needs no torch")
    bank = find_bank(options.bank)
    question_id, path = named(words, bank, "predict", with_reference=with_reference)
    language = chosen_language(options.lang)

    from kit.grading.choices import MAX_SEED, require_choices
    from kit.grading.preflight import prepare
    from kit.screen.page import Page

    require_choices(options.seed, "switchboard")
    page = Page(language)
    assignment = prepare(question_id, path if path is not None else reference(bank, question_id), bank)
    not_started = assignment.not_started()
    if not_started is not None:
        page.line(not_started.message)
        return NOT_PASSED
    gc.disable()  # importing torch makes very many objects and no garbage
    from kit.grading.grader import ranks_ready
    from kit.grading.timelines import launch_once

    with ranks_ready() as zygote:
        gc.enable()
        seed = options.seed if options.seed is not None else secrets.randbelow(MAX_SEED)
        scenario, size, launch = launch_once(assignment, options.scenario, options.world_size, seed=seed, zygote=zygote)
    if launch.error is not None:
        from kit.cli.timeline import show_failure

        show_failure(assignment, launch.error, language)
        return NOT_PASSED
    assert launch.run is not None

    from kit.cli.progress import open_progress
    from kit.cli.record import Stopwatch, keep_guesses
    from kit.grading.measured import facts, part_of, quantities
    from kit.practice.foretell import begin
    from kit.screen import foretell as screen
    from kit.screen.hunt import show_commands
    from kit.screen.timeline import show_timeline
    from kit.world.picture import axis

    result = launch.run.result
    first, last = part_of(result, options.mark)
    state = begin(quantities(result, options.mark))
    title = f"{assignment.question}, {scenario.name}, world_size={size}, profile {result.timeline.profile}"
    with open_progress(language) if options.is_saved else contextlib.nullcontext() as store:
        since = Stopwatch()
        if state.quantities:
            screen.show_facts(page, facts(launch.run, options.mark), title)
        state = screen.guess_all(page, state)
        if state.phase == "over":
            return PASSED
        if store is not None and state.quantities:
            header = load_header(bank, assignment.question)
            score = None if state.is_skipped else state.score
            keep_guesses(store, header, since, mode="predict", seed=seed, score=score)
    screen.show_end(page, state)
    timeline = result.timeline.between(first, last) if first else result.timeline
    if timeline.makespan_s > 0:
        page.blank()
        show_timeline(page, timeline, axis, f"{assignment.question}, {first}" if first else assignment.question)
    page.blank()
    command = again(assignment.question, None if with_reference else str(assignment.solution.path), options, seed)
    show_commands(page, {"hunt_again": command})
    return PASSED


def again(question_id: str, path: str | None, options: PredictOptions, seed: int) -> str:
    words = ["shardkit", "predict", question_id, path if path is not None else "--reference"]
    for name in ("bank", "world_size", "scenario", "mark"):
        value = getattr(options, name)
        words += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    return " ".join(shlex.quote(word) for word in [*words, "--seed", str(seed)])
