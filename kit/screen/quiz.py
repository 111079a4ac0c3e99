"""A quiz in a terminal: shows what the state machine of kit.practice holds, and reads lines for it."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from kit.bank.draw import Draw
from kit.bank.mark import LETTERS
from kit.practice.quiz import Outcome, Quiz, end, go_on, present, reply
from kit.screen.page import Page
from kit.screen.question import (
    show_explanation,
    show_follow_ups,
    show_hint,
    show_options_with_reasons,
    show_sources,
    show_task,
    tolerance,
)
from kit.screen.wrap import Prose, padded, widest

PROMPT = "> "
STYLES = {"right": "bold green", "wrong": "bold red", "skipped": "bold yellow"}


def play(page: Page, quiz: Quiz, draw: Callable[[str], Draw]) -> Quiz:
    """Runs a quiz to its end, or to the end of the input. `draw` gives the question of an id."""
    while quiz.phase != "over":
        if quiz.phase == "choosing":
            quiz = present(quiz, draw(quiz.wanted))
            show_question(page, quiz)
        elif quiz.phase == "told" and not page.terminal.is_interactive:
            quiz = go_on(quiz)
        else:
            quiz = step(page, quiz)
    return quiz


def step(page: Page, quiz: Quiz) -> Quiz:
    """One line of input and what it leads to."""
    line = read_line(page)
    if line is None:
        return end(quiz)
    after = reply(quiz, line)
    if after.phase == "told" and quiz.phase == "asking":
        show_outcome(page, after)
    elif after.notice is not None:
        show_notice(page, after)
    return after


def read_line(page: Page) -> str | None:
    """None at the end of the input. A line that did not come from a keyboard is repeated, for whoever reads along."""
    if page.terminal.is_interactive:
        import readline  # noqa: F401  editing of the line, also of wide characters

    try:
        line = input(PROMPT)
    except EOFError:
        page.blank()
        return None
    if not page.terminal.is_interactive:
        page.line(line)
    return line


def show_question(page: Page, quiz: Quiz) -> None:
    assert quiz.asked is not None
    page.fit()
    if quiz.number > 1:
        page.rule()
    page.line(page.say("question_of", number=quiz.number, count=len(quiz.plan)), style="dim")
    show_task(page, quiz.asked)
    page.blank()
    page.line(page.say(f"ask_{quiz.asked.question.kind}"), style="dim")


def show_notice(page: Page, quiz: Quiz) -> None:
    if quiz.phase == "told":
        show_way_on(page, quiz)
    elif quiz.notice == "hint":
        assert quiz.asked is not None
        show_hint(page, quiz.asked, quiz.num_hints)
    elif quiz.notice == "no_more_hints":
        page.line(page.say("no_more_hints"))
    else:
        assert quiz.asked is not None
        if quiz.notice == "not_taken":
            page.line(page.say("not_taken", why=complaint(page, quiz.asked, quiz.complaint)), style="yellow")
        page.line(page.say(f"ask_{quiz.asked.question.kind}"), style="dim")


def complaint(page: Page, draw: Draw, english: str) -> str:
    """Why a line was not taken, in Chinese as far as there is one."""
    options = draw.options(page.language)
    if page.language == "en" or not options:
        return english
    return page.say("accepted", last=LETTERS[len(options) - 1], count=len(options))


def show_outcome(page: Page, quiz: Quiz) -> None:
    """Right or wrong and why, the explanation, sources, and how an interviewer would go on."""
    outcome = quiz.last
    page.blank()
    show_verdict(page, outcome)
    if outcome.draw.question.kind in ("choice", "multi"):
        show_options_with_reasons(page, outcome.draw, outcome.mark.chosen if outcome.mark else ())
    show_explanation(page, outcome.draw)
    show_follow_ups(page, outcome.draw, with_answers=True)
    show_sources(page, outcome.draw.question.sources)
    if page.terminal.is_interactive:
        page.blank()
        show_way_on(page, quiz)


def show_way_on(page: Page, quiz: Quiz) -> None:
    """What Enter does; the verdict once more, since its first line may have scrolled away."""
    outcome = quiz.last
    answer = page.say("colon") + outcome.mark.expected if outcome.mark else ""
    word = (f"{page.say(outcome.verdict)}{answer}", STYLES[outcome.verdict])
    page.line(Text.assemble(word, page.say("stop"), (page.say("ask_end" if quiz.is_last else "ask_next"), "dim")))


def show_verdict(page: Page, outcome: Outcome) -> None:
    """The word, and for an answer what was given and what is right."""
    page.line(page.say(outcome.verdict), style=STYLES[outcome.verdict])
    given = outcome.mark
    if given is not None:
        page.line(page.say("your_answer", given=given.got))
        page.line(page.say("right_answer", answer=given.expected + tolerated(page, outcome)))
        if given.note and outcome.draw.question.kind == "number":
            page.line(given.note)
    elif outcome.draw.question.kind == "number":
        page.line(page.say("right_answer", answer=outcome.draw.values()["answer"]))


def tolerated(page: Page, outcome: Outcome) -> str:
    """How near a number has to be: `, within 2%`."""
    question = outcome.draw.question
    return tolerance(page, question) if question.kind == "number" else ""


def show_score(page: Page, quiz: Quiz, seed: int) -> None:
    """The last screen: how many were right, question by question, and how to have the same quiz again."""
    score = quiz.score()
    page.blank()
    if not quiz.outcomes:
        page.line(page.say("nothing_asked"))
        return
    width = widest(page.say(verdict) for verdict in STYLES)
    for outcome in quiz.outcomes:
        word = Text(padded(page.say(outcome.verdict), width), style=STYLES[outcome.verdict])
        page.print(Prose(Text(outcome.draw.question.id), word + Text("  "), Text(" " * (width + 2))))
    page.blank()
    parts = [
        page.say("score", right=score.right, asked=len(quiz.outcomes)),
        page.say("num_skipped", count=score.skipped) if score.skipped else "",
        page.say("num_left", count=score.not_asked) if score.not_asked else "",
        page.say("num_hints", count=score.num_hints) if score.num_hints else "",
    ]
    page.line(page.say("comma").join(filter(None, parts)), style="bold")
    page.line(page.say("again", seed=seed), style="dim")
