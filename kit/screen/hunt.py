"""A hunt in a terminal: the candidate's code, line by line, the questions, and guesses beside what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from kit.bank.hunted import SYMPTOMS, Seen
from kit.bank.mark import LETTERS
from kit.practice.hunt import NUM_HINTS, PARTS, Hunt, Points, end, ratio_at, reply
from kit.screen.code import folded, numbered_code
from kit.screen.page import Page
from kit.screen.quiz import read_line
from kit.screen.wrap import Prose, padded, widest

if TYPE_CHECKING:
    from kit.bank.hunted import Hunted
    from kit.bank.load import Header
    from kit.grading.result import GradeResult


def guess_all(page: Page, hunt: Hunt) -> Hunt:
    """Asks until all is guessed, or the learner wants no more."""
    show_question(page, hunt)
    while hunt.phase in PARTS:
        line = read_line(page)
        after = reply(hunt, line) if line is not None else end(hunt)
        if after.notice is not None:
            show_notice(page, after)
        if after.phase in PARTS and (after.phase != hunt.phase or after.notice is not None):
            show_question(page, after)
        hunt = after
    return hunt


def show_candidate(page: Page, hunted: Hunted, header: Header, command: str) -> None:
    """The whole file, and what to do with it."""
    page.fit()
    page.line(page.say("hunt_head", id=hunted.question_id, level=header.level), style="dim")
    page.line(header.title[page.language], style="bold")
    page.line(page.say("hunt_task", command=command))
    page.blank()
    for line in numbered_code(hunted.text, "python", page.terminal, page.width):
        page.print(line)


def show_question(page: Page, hunt: Hunt) -> None:
    if hunt.notice is None:
        page.blank()
    if hunt.phase == "symptom" and hunt.notice is None:
        for letter, symptom in zip(LETTERS, SYMPTOMS, strict=False):
            page.print(Prose(Text(page.say(f"symptom_{symptom}")), Text(f"  {letter}  "), Text(" " * 5)))
        page.blank()
    page.line(page.say(f"hunt_ask_{hunt.phase}"), style="dim")


def show_notice(page: Page, hunt: Hunt) -> None:
    if hunt.notice == "hint":
        page.line(page.say("hint", number=hunt.num_hints, count=NUM_HINTS), style="bold")
        page.line(hint(page, hunt), indent="  ")
    elif hunt.notice == "no_more_hints":
        page.line(page.say("no_more_hints"))
    elif hunt.notice == "not_taken":
        why = page.say(f"hunt_wants_{hunt.phase}", range=hunt.complaint)
        page.line(page.say("not_taken", why=why), style="yellow")


def hint(page: Page, hunt: Hunt) -> str:
    hunted = hunt.hunted
    if hunt.num_hints == 1:
        return (
            page.say("hunt_hint_function", name=hunted.function) if hunted.function else page.say("hunt_hint_outside")
        )
    first, last = hunted.surroundings
    return page.say("hunt_hint_lines", first=first, last=last)


# -- what was seen ----------------------------------------------------------------------------------------------------


def show_running(page: Page) -> None:
    page.blank()
    page.line(page.say("hunt_running"), style="dim")
    page.blank()
    page.file.flush()


def show_result(page: Page, result: GradeResult) -> None:
    from kit.screen.grade import show_grade

    show_grade(page, result, with_next=False)


def show_end(page: Page, hunt: Hunt, *, note: str = "") -> None:
    """The mistake, every guess beside what was seen, and the points. note: why it was not run."""
    if note or hunt.seen is None:
        page.blank()
        page.line(page.say(note or "hunt_passed"), style="yellow")
    page.heading(page.say("hunt_mistake"))
    what = hunt.hunted.mutant.what
    page.markdown(what.zh if page.language == "zh" else what.en, "  ")
    page.blank()
    show_changes(page, hunt.hunted)
    page.heading(page.say("hunt_guesses"))
    points = hunt.points()
    names = widest(page.say(f"hunt_part_{each.part}") for each in points)
    for each in points:
        show_points(page, hunt, each, names)
    page.blank()
    score = page.say("hunt_score", got=sum(each.got for each in points), most=sum(each.most for each in points))
    hints = page.say("comma") + page.say("hunt_hints", count=hunt.num_hints) if hunt.num_hints else ""
    page.line(score + hints, style="bold")


def show_changes(page: Page, hunted: Hunted) -> None:
    page.line(page.say("hunt_legend"), style="dim", indent="  ")
    digits = len(str(hunted.num_lines))
    for change in hunted.changes:
        for number, line in enumerate(change.shown, change.start):
            show_change(page, line, f"  - {number:>{digits}}  ", "red")
        for line in change.right:
            show_change(page, line, f"  + {'':>{digits}}  ", "green")


def show_change(page: Page, line: str, lead: str, style: str) -> None:
    for part in folded(Text(page.readable(line)), lead, page.width, style):
        page.print(part)


def show_points(page: Page, hunt: Hunt, points: Points, names: int) -> None:
    mark = ("✓", "green") if points.is_right else ("~", "yellow") if points.got else ("✗", "red")
    name = padded(page.say(f"hunt_part_{points.part}"), names)
    lead = Text.assemble("  ", (page.readable(mark[0]), mark[1]), f" {name}  {points.got}/{points.most}  ")
    page.print(Prose(Text(compared(page, hunt, points)), lead, Text(" " * lead.cell_len)))


def compared(page: Page, hunt: Hunt, points: Points) -> str:
    """`you: values; seen: hangs`."""
    guess, part, seen = hunt.guess, points.part, hunt.seen
    given, right = page.say("hunt_nothing"), ""
    if part == "line":
        given = str(guess.line) if part in guess.given else given
        return page.say("hunt_line_is", given=given, right=line_ranges(hunt.hunted.lines))
    assert seen is not None
    if part == "symptom":
        given = page.say(f"hunt_word_{guess.symptom}") if part in guess.given else given
        right = page.say(f"hunt_word_{seen.symptom}")
        if points.got and not points.is_right:
            return page.say("hunt_also", given=given, right=right)
    elif part == "rank":
        none = page.say("hunt_none")
        given = (none if guess.rank is None else str(guess.rank)) if part in guess.given else given
        right = ", ".join(map(str, seen.ranks)) or none
    else:
        given = ratio_text(page, guess.ratio, seen) if part in guess.given else given
        right = page.say("hunt_none") if seen.ratio is None else times(page, seen.ratio, seen)
    return page.say("hunt_is", given=given, right=right)


def ratio_text(page: Page, ratio: str | None, seen: Seen) -> str:
    return page.say("hunt_none") if ratio is None else times(page, ratio_at(ratio, seen.world_size), seen)


def times(page: Page, ratio: float, seen: Seen) -> str:
    return page.say("hunt_times", ratio=f"{ratio:.4g}", size=seen.world_size)


def line_ranges(lines: frozenset[int]) -> str:
    """{3, 4, 5, 9} -> `3-5, 9`."""
    runs: list[list[int]] = []
    for number in sorted(lines):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def show_way_on(page: Page) -> None:
    page.blank()
    page.line(page.say("hunt_ask_end"), style="dim")


def show_commands(page: Page, commands: dict[str, str]) -> None:
    """phrase -> command, one a line and whole, to be copied."""
    for phrase, command in commands.items():
        page.unbroken(page.say(phrase, command=command), style="dim")


def show_written(page: Page, path: str) -> None:
    page.line(page.say("hunt_wrote", path=path))
