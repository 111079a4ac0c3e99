"""`timeline`: one launch of a file on the switchboard, drawn in virtual time."""

from __future__ import annotations

import gc
import json
import secrets
import shlex
import sys
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.bank.layout import find_bank
from kit.cli import NOT_PASSED, PASSED
from kit.cli.language import Language, chosen_language
from kit.cli.solutions import named, reference
from kit.cli.torch_there import require_torch
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.grading.preflight import Assignment
    from kit.world import WorldError
    from kit.world.timeline import Timeline

SCHEMA = 1
SUFFIXES = (".json", ".svg", ".txt")


@dataclass(frozen=True, slots=True)
class TimelineOptions:
    bank: Path | None
    world_size: int | None
    profile: str | None
    scenario: str | None
    mark: str | None
    seed: int | None
    json: Path | None
    svg: Path | None
    chrome: Path | None
    lang: str | None


def draw(words: list[str], options: TimelineOptions, *, with_reference: bool) -> int:
    """words: `[ID] FILE`, or `ID` alone with the reference. Returns the exit code."""
    require_torch("timeline runs the file on several ranks", "`shardkit quiz` needs no torch")
    bank = find_bank(options.bank)
    question_id, path = named(words, bank, "timeline", with_reference=with_reference)
    language = _checked(options)

    from kit.grading.preflight import prepare

    assignment = prepare(question_id, path if path is not None else reference(bank, question_id), bank)
    not_started = assignment.not_started()
    if not_started is not None:
        from kit.screen.page import Page

        Page().line(not_started.message)
        return NOT_PASSED
    gc.disable()  # importing torch makes very many objects and no garbage
    from kit.grading.grader import ranks_ready
    from kit.grading.timelines import launch_once

    with ranks_ready() as zygote:
        gc.enable()
        seed = options.seed if options.seed is not None else _drawn_seed()
        scenario, size, launch = launch_once(assignment, options.scenario, options.world_size, seed=seed, zygote=zygote)
    if launch.error is not None:
        show_failure(assignment, launch.error, language)
        _show_next(assignment, options, seed, [], is_reference=with_reference)
        return NOT_PASSED
    assert launch.run is not None
    result = launch.run.result
    timeline = result.timeline if options.profile is None else result.timeline_under(options.profile)
    marks = list(dict.fromkeys(mark.name for mark in timeline.marks))
    if options.mark is not None:
        end = f"{options.mark} done"
        timeline = timeline.between(options.mark, end if end in marks else None)
    title = f"{assignment.question}, {scenario.name}, world_size={size}"
    if options.mark is not None:
        title += f", {options.mark}"
    _write(timeline, title, options)
    if options.json is not None:
        facts = {"question": assignment.question, "solution": str(assignment.solution.path),
                 "scenario": scenario.name, "seed": seed, "mark": options.mark}  # fmt: skip
        text = json.dumps({"schema": SCHEMA, **facts, **metrics(timeline)}, indent=2, ensure_ascii=False) + "\n"
        if str(options.json) == "-":
            sys.stdout.write(text)
            return PASSED
        _write_text(options.json, text)
    _show(timeline, title, language)
    _show_next(assignment, options, seed, marks, is_reference=with_reference)
    return PASSED


def _checked(options: TimelineOptions) -> Language:
    """Everything that can be wrong with the options is said before anything runs."""
    from kit.grading.choices import require_choices
    from kit.grading.report import require_writable
    from kit.hardware import profile

    require_choices(options.seed, "switchboard")
    if options.profile is not None:
        profile(options.profile)
    for path in (options.json, options.svg, options.chrome):
        if path is not None and not (path is options.json and str(path) == "-"):
            require_writable(path)
    return chosen_language(options.lang)


def _drawn_seed() -> int:
    from kit.grading.choices import MAX_SEED

    return secrets.randbelow(MAX_SEED)


def metrics(timeline: Timeline) -> dict[str, Any]:
    """The numbers of a timeline, in seconds; docs/json.md has the shape."""
    ranks = [
        {
            "rank": rank,
            "busy_s": timeline.busy_s(rank),
            "idle_s": timeline.idle_s(rank),
            "bubble_fraction": timeline.bubble_fraction(rank),
            "communication_s": timeline.communication_s(rank),
            "exposed_s": timeline.exposed_s(rank),
            "in_flight": timeline.in_flight(rank),
        }
        for rank in range(timeline.world_size)
    ]
    head = {"profile": timeline.profile, "world_size": timeline.world_size, "makespan_s": timeline.makespan_s}
    return {**head, "ranks": ranks}


def require_suffix(path: Path) -> None:
    """KitError for a file whose name does not say in which form a timeline is wanted."""
    if path.suffix not in SUFFIXES:
        raise KitError(
            f"{path}: a timeline is written as .json (Chrome and Perfetto), .svg or .txt", "name the file accordingly"
        )


def write_timeline(timeline: Timeline, title: str, path: Path) -> None:
    """In the form that the file's name asks for (see `require_suffix`)."""
    from kit.screen.page import Page
    from kit.screen.terminal import Terminal
    from kit.screen.timeline import show_timeline
    from kit.world.export_chrome import chrome_text
    from kit.world.export_svg import svg
    from kit.world.picture import axis

    if path.suffix == ".json":
        return _write_text(path, chrome_text(timeline))
    if path.suffix == ".svg":
        return _write_text(path, svg(timeline, title))
    plain = Terminal(80, False, True, False, False, "utf-8")
    page = Page("en", StringIO(), plain)
    show_timeline(page, timeline, axis, title)
    assert isinstance(page.file, StringIO)
    return _write_text(path, page.file.getvalue())


def _write(timeline: Timeline, title: str, options: TimelineOptions) -> None:
    from kit.world.export_chrome import chrome_text
    from kit.world.export_svg import svg

    if options.chrome is not None:
        _write_text(options.chrome, chrome_text(timeline))
    if options.svg is not None:
        _write_text(options.svg, svg(timeline, title))


def _write_text(path: Path, text: str) -> None:
    from kit.grading.report import write

    write(path, text.encode("utf-8", "backslashreplace").decode("utf-8"))


def _show(timeline: Timeline, title: str, language: Language) -> None:
    from kit.screen.page import Page
    from kit.screen.timeline import show_timeline
    from kit.world.picture import axis

    show_timeline(Page(language), timeline, axis, title)


def _show_next(
    assignment: Assignment, options: TimelineOptions, seed: int, marks: list[str], *, is_reference: bool
) -> None:
    """The run again, and what its marks are."""
    from kit.screen.page import Page

    page = Page()
    words = ["shardkit", "timeline", assignment.question]
    words.append("--reference" if is_reference else str(assignment.solution.path))
    for name in ("bank", "world_size", "profile", "scenario"):
        value = getattr(options, name)
        words += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    again = " ".join(shlex.quote(word) for word in [*words, "--seed", str(seed)])
    begins = [name for name in marks if f"{name} done" in marks]
    page.blank()
    if options.mark is None and begins:
        page.unbroken(f"one part alone: {again} --mark {shlex.quote(begins[0])}", style="dim")
    else:
        mark = f" --mark {shlex.quote(options.mark)}" if options.mark is not None else ""
        page.unbroken(f"the same inputs again: {again}{mark}", style="dim")


def show_failure(assignment: Assignment, error: WorldError, language: Language) -> None:
    """The diagnosis, as `grade` would tell it."""
    from kit.grading.result import launch_verdict
    from kit.grading.sentences import is_not_written, launch_failure
    from kit.screen.grade import show_broken_launch
    from kit.screen.page import Page

    solution = str(assignment.solution.path.resolve())
    if error.kind == "interface":
        raise KitError(error.message)
    if is_not_written(error, solution):
        Page().line(f"{error.frames[-1][2]} is not written yet ({error.site})")
        return
    show_broken_launch(Page(language), launch_verdict(error.kind), launch_failure(error, solution))
