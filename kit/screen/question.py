"""One question on the screen: what is asked, and, apart from it, what answers it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.text import Text

from kit.bank.draw import Draw, options_of
from kit.bank.mark import LETTERS
from kit.bank.schema import CodeQuestion, NumberQuestion, OpenQuestion, PredictQuestion, Source
from kit.screen.page import Page
from kit.screen.wrap import Prose

UNITS_OF_PHRASES = {
    "unit_B": ("B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"),
    "unit_s": ("s", "ms", "us"),
    "unit_fraction": ("fraction", "%"),
    "unit_count": ("count",),
}


def show_task(page: Page, draw: Draw, *, is_examined: bool = False) -> None:
    """Title, prompt, interface or options, and in which unit a number is wanted. Gives nothing away.

    is_examined: without title, id and what it builds on, which may say what the matter is.
    """
    question = draw.question
    facts = [page.say(question.kind), page.say("level", level=question.level)]
    if not is_examined:
        page.line(question.title.get(page.language), style="bold")
        facts.insert(0, question.id)
    page.line(", ".join(facts), style="dim")
    page.blank()
    page.markdown(draw.prompt(page.language))
    if question.kind == "code":
        show_interface(page, question)
    elif question.kind == "number":
        show_units(page, draw, question)
    else:
        if question.kind == "predict":
            show_program(page, question)
        show_options(page, draw)
    if question.requires and not is_examined:
        page.blank()
        page.line(page.say("requires", ids=", ".join(question.requires)))
    if question.as_of:
        page.blank()
        page.line(page.say("as_of", month=question.as_of), style="dim")


def show_program(page: Page, question: PredictQuestion) -> None:
    page.blank()
    page.source(question.program)
    page.blank()
    page.line(page.say("on_ranks", count=question.world_size), style="dim")


def show_interface(page: Page, question: CodeQuestion) -> None:
    page.heading(page.say("interface"))
    for line in question.interface:
        page.line(line, indent="  ")
    if question.forbidden:
        page.heading(page.say("forbidden"))
        for module, names in forbidden_names(question).items():
            page.print(Prose(Text(", ".join(names)), Text(f"  {module}: "), Text("    ")))
    page.heading(page.say("points"))
    page.line(", ".join(f"{proof} {points}" for proof, points in question.points.items()), indent="  ")


def forbidden_names(question: CodeQuestion) -> dict[str, list[str]]:
    """`torch.distributed.reduce` -> {"torch.distributed": ["reduce"]}"""
    found: dict[str, list[str]] = {}
    for name in question.forbidden:
        module, _, key = name.rpartition(".")
        found.setdefault(module, []).append(key)
    return found


def show_units(page: Page, draw: Draw, question: NumberQuestion) -> None:
    page.heading(page.say("convention"))
    page.markdown(draw.text(question.convention, page.language), "  ")
    page.blank()
    page.line(unit_wanted(page, question) + tolerance(page, question), style="dim")


def unit_wanted(page: Page, question: NumberQuestion) -> str:
    """In which form the answer is taken."""
    phrase = next((name for name, units in UNITS_OF_PHRASES.items() if question.unit in units), "unit")
    return page.say(phrase, unit=question.unit)


def tolerance(page: Page, question: NumberQuestion) -> str:
    """How near a number has to be: ` (accepted within 2%)`; empty where it has to be exact."""
    return page.say("within", percent=f"{100 * question.tolerance:g}") if question.tolerance else ""


def show_options(page: Page, draw: Draw) -> None:
    options = draw.options(page.language)
    if options:
        page.blank()
    for letter, option in zip(LETTERS, options, strict=False):
        page.markdown(option, f"  {letter}  ", "     ")


def show_hint(page: Page, draw: Draw, number: int) -> None:
    """The hint with that number, counted from 1."""
    hints = draw.question.hints
    page.line(page.say("hint", number=number, count=len(hints)), style="bold")
    page.markdown(draw.text(hints[number - 1], page.language), "  ")


def show_follow_ups(page: Page, draw: Draw, *, with_answers: bool) -> None:
    page.heading(page.say("follow_ups"))
    for number, follow_up in enumerate(draw.question.follow_ups, 1):
        if number > 1 and with_answers:
            page.blank()
        page.markdown(draw.text(follow_up.question, page.language), f"  {number}. ", "     ")
        if with_answers:
            page.markdown(draw.text(follow_up.answer, page.language), "     ", style="dim")


def show_explanation(page: Page, draw: Draw) -> None:
    if draw.question.kind == "number":
        page.heading(page.say("working"))
        page.markdown(draw.working(page.language), "  ")
    page.heading(page.say("explanation"))
    page.markdown(draw.text(draw.question.explanation, page.language), "  ")


def show_sources(page: Page, sources: Sequence[Source]) -> None:
    page.heading(page.say("sources"))
    for source in sources:
        line = ", ".join(filter(None, [source.title, source.where, source.date]))
        page.print(Prose(Text(page.readable(line)), Text("  - "), Text("    ")))
        if source.url:
            page.unbroken(f"    {source.url}", style="dim")


def show_options_with_reasons(page: Page, draw: Draw, chosen: Collection[int] = ()) -> None:
    """Every option with whether it is right, and why. `chosen`: indices in the file, which are marked."""
    question = draw.question
    options = options_of(question)
    assert options, question.kind
    for position, (index, text) in enumerate(zip(draw.order, draw.options(page.language), strict=True)):
        option = options[index]
        page.blank()
        mark = ">" if index in chosen else " "
        page.markdown(text, f"{mark} {LETTERS[position]}  ", "     ")
        verdict = page.say("option_right" if option.correct else "option_wrong")
        lead = Text(verdict, style="bold green" if option.correct else "bold red")
        page.markdown(draw.text(option.why, page.language), "     ", lead=lead)


def show_right_order(page: Page, draw: Draw) -> None:
    """Items first to last, each with the letter that it was shown with."""
    question = draw.question
    assert question.kind == "order", question.kind
    for index, item in enumerate(question.items):
        page.markdown(draw.text(item, page.language), f"  {LETTERS[draw.order.index(index)]}  ", "     ")


def show_rubric(page: Page, draw: Draw, question: OpenQuestion, chosen: Collection[int] | None = None) -> None:
    """The points of an answer in words. `chosen`: those that were made, which are ticked; None where nobody looked."""
    page.heading(page.say("rubric"))
    for index, point in enumerate(question.rubric):
        first = "  - " if chosen is None else "  [x] " if index in chosen else "  [ ] "
        page.markdown(f"{draw.text(point.point, page.language)} {weight(page, point.weight)}", first, " " * len(first))


def weight(page: Page, count: int) -> str:
    return page.say("weight", weight=count)


def show_model_answer(page: Page, draw: Draw, question: OpenQuestion) -> None:
    page.heading(page.say("answer"))
    page.markdown(draw.text(question.model_answer, page.language), "  ")


def show_what_happens(page: Page, question: PredictQuestion) -> None:
    page.heading(page.say(f"happens_{question.outcome}"))
    page.source(question.expect, "")


def show_answer(page: Page, draw: Draw, reference: str | None) -> None:
    """All that `show` keeps back unless asked; `reference` is the source of a code question's answer."""
    question = draw.question
    if question.kind == "open":
        show_model_answer(page, draw, question)
        show_rubric(page, draw, question)
        show_explanation(page, draw)
        show_sources(page, question.sources)
        return
    page.heading(page.say("answer"))
    if options_of(question):
        show_options_with_reasons(page, draw)
        if question.kind == "predict":
            show_what_happens(page, question)
    elif question.kind == "number":
        page.line(str(draw.values()["answer"]), indent="  ")
    elif question.kind == "order":
        show_right_order(page, draw)
    elif reference is None:
        page.line(page.say("no_reference"), indent="  ")
    else:
        page.source(reference)
    show_explanation(page, draw)
    show_sources(page, question.sources)
