"""`predict` in a terminal: what is known of a launch, the questions, and guesses beside measurements."""

from __future__ import annotations

from rich.text import Text

from kit.bank.quantities import MOST, Facts, Quantity
from kit.costmodel.units import duration, show
from kit.practice.foretell import Foretelling, end, reply
from kit.screen.code import folded, highlighted
from kit.screen.page import Page
from kit.screen.quiz import read_line, why
from kit.screen.wrap import Prose, padded, widest

MOST_INPUTS = 24


def show_facts(page: Page, facts: Facts, title: str) -> None:
    page.fit()
    page.line(title, style="bold")
    part = page.say("foretell_part", mark=facts.part) if facts.part else page.say("foretell_whole")
    page.line(page.say("foretell_what", part=part))
    page.heading(page.say("foretell_program"))
    for source in facts.sources:
        page.blank()
        for code in highlighted(source, "python", page.terminal).split("\n", allow_blank=False):
            for piece in folded(code, "", page.width):
                page.print(piece)
    page.heading(page.say("foretell_inputs"))
    for line in facts.inputs[:MOST_INPUTS]:
        page.line(line, indent="  ")
    if len(facts.inputs) > MOST_INPUTS:
        page.line(page.say("foretell_more", count=len(facts.inputs) - MOST_INPUTS), style="dim", indent="  ")
    if facts.computes:
        page.heading(page.say("foretell_computes"))
        for what, count, seconds in facts.computes:
            page.line(page.say("foretell_each", count=count, what=what, time=duration(seconds)), indent="  ")
    if facts.operations:
        page.heading(page.say("foretell_operations"))
        for operation in facts.operations:
            page.line(operation, indent="  ")
    if facts.communication_s > 0:
        page.line(page.say("foretell_communication", time=duration(facts.communication_s)), indent="  ")


def guess_all(page: Page, state: Foretelling) -> Foretelling:
    if state.phase == "asking":
        show_question(page, state)
    while state.phase == "asking":
        line = read_line(page)
        after = reply(state, line) if line is not None else end(state)
        if after.notice == "not_taken":
            page.line(page.say("not_taken", why=complaint(page, after)), style="yellow")
        if after.notice is not None:
            page.line(page.say(f"foretell_how_{after.asked.unit}"), style="dim")
        elif after.phase == "asking":
            show_question(page, after)
        state = after
    return state


def complaint(page: Page, state: Foretelling) -> str:
    """Why a line was not taken, in the page's language."""
    if state.is_negative:
        return page.say("foretell_negative")
    return why(page, state.reason, state.complaint, page.say(f"unit_{state.asked.unit}"))


def show_question(page: Page, state: Foretelling) -> None:
    asked = state.asked
    page.blank()
    page.line(page.say(f"foretell_ask_{asked.name}", rank=asked.rank, since=asked.since))
    page.line(page.say(f"foretell_how_{asked.unit}"), style="dim")


def show_end(page: Page, state: Foretelling) -> None:
    """Each guess beside its measurement, and the points."""
    if not state.quantities:
        page.blank()
        page.line(page.say("foretell_nothing"), style="yellow")
        return
    page.heading(page.say("foretell_measured"))
    names = widest(page.say(f"foretell_{each.name}") for each in state.quantities)
    points = state.points()
    for index, (each, got) in enumerate(zip(state.quantities, points, strict=True)):
        guess = state.guesses[index] if index < len(state.guesses) else None
        mark = ("✓", "green") if got == MOST else ("~", "yellow") if got else ("✗", "red")
        name = padded(page.say(f"foretell_{each.name}"), names)
        lead = Text.assemble("  ", (page.readable(mark[0]), mark[1]), f" {name}  {got}/{MOST}  ")
        text = compared(page, each, float(guess.value) if guess is not None else None, got)
        page.print(Prose(Text(text), lead, Text(" " * lead.cell_len)))
    page.blank()
    percent = " / ".join(f"{100 * each:g}%" for each in sorted({each.tolerance for each in state.quantities}))
    score = page.say("foretell_score", got=sum(points), most=MOST * len(points), percent=percent)
    page.line(score, style="bold")


def compared(page: Page, quantity: Quantity, guess: float | None, got: int) -> str:
    measured = shown(quantity.measured, quantity.unit)
    if guess is None:
        return page.say("foretell_skipped", measured=measured)
    typed = shown(guess, quantity.unit)
    if got == MOST or not quantity.measured:
        return page.say("foretell_right", guess=typed, measured=measured)
    times = plain(quantity.times(guess))
    return page.say("foretell_off", guess=typed, measured=measured, times=times)


def plain(value: float) -> str:
    """Three digits that count, and no exponent: 1390, 0.125, 0.0000123."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:.0f}" if abs(rounded) >= 100 else f"{rounded:.12f}".rstrip("0").rstrip(".")


def shown(value: float, unit: str) -> str:
    """`1.5 KB (1.465 KiB)`, `37.5%`, `1.2 s`."""
    if unit == "fraction":
        return f"{100 * value:.4g}%"
    if unit == "s":
        return duration(value)
    return show(round(value), "B")
