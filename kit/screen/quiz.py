"""A quiz in a terminal: shows what the state machine of kit.practice holds, and reads lines for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from rich.text import Text

from kit.bank.draw import Draw, options_of
from kit.bank.refusal import Reason
from kit.errors import KitError
from kit.practice.quiz import Outcome, Quiz, edited, end, go_on, is_answered_by_letter, present, reply
from kit.screen.editor import edit
from kit.screen.page import Page
from kit.screen.question import (
    show_explanation,
    show_follow_ups,
    show_hint,
    show_model_answer,
    show_options_with_reasons,
    show_right_order,
    show_rubric,
    show_sources,
    show_task,
    show_what_happens,
    tolerance,
    unit_wanted,
    weight,
)
from kit.screen.quiz_words import REASONS_ZH
from kit.screen.wrap import Prose, padded, widest

PROMPT = "> "
STYLES = {
    "right": "bold green",
    "wrong": "bold red",
    "marked": "bold green",
    "unmarked": "bold yellow",
    "skipped": "bold yellow",
}


Watch = Callable[[Quiz, Quiz], None]


def play(page: Page, quiz: Quiz, draw: Callable[[str], Draw], watch: Watch | None = None) -> Quiz:
    """Runs a quiz to its end, or to the end of the input. `draw` gives the question of an id.

    `watch` is told of every change (the quiz before it, and after) before the screen shows it.
    """
    watch = watch or (lambda before, after: None)
    while quiz.phase != "over":
        if quiz.phase == "choosing":
            before, quiz = quiz, present(quiz, draw(quiz.wanted))
            watch(before, quiz)
            show_question(page, quiz)
        elif quiz.phase == "told" and not page.terminal.is_interactive:
            quiz = go_on(quiz)
        else:
            quiz = step(page, quiz, watch)
    return quiz


def step(page: Page, quiz: Quiz, watch: Watch) -> Quiz:
    """One line of input and what it leads to."""
    line = read_line(page)
    after = reply(quiz, line) if line is not None else end(quiz)
    if after.notice == "edit":
        after = through_editor(page, after)
    watch(quiz, after)
    if len(after.outcomes) > len(quiz.outcomes):
        show_outcome(page, after)
    elif len(after.outcomes) < len(quiz.outcomes):
        show_question(page, after)
    elif after.notice is not None:
        show_notice(page, after)
    elif after.turn == "leaving":
        page.line(page.say("leaving"), style="yellow")
    elif after.turn == "back":
        show_written(page, after)
    elif after.phase == "weighing":
        page.line(page.say("ask_confidence"), style="dim")
    elif after.phase == "marking":
        show_next_point(page, after)
    elif after.phase == "asking" and not after.written:
        show_question(page, after)  # an answer was taken back
    return after


def through_editor(page: Page, quiz: Quiz) -> Quiz:
    """The answer so far in the user's editor, and what comes back; said where there is none to be had."""
    try:
        text = edit("\n".join(quiz.written), say=page.say)
    except KitError as error:
        page.line(error.message, style="yellow")
        return quiz
    after = edited(quiz, text)
    for line in after.written:
        page.line(line, style="dim", indent="  ")
    return after


def show_next_point(page: Page, quiz: Quiz) -> None:
    """The next point of the rubric; before the first one a whole answer to compare with."""
    draw, number = quiz.asked, len(quiz.are_met)
    assert draw is not None and draw.question.kind == "open"
    if not number:
        show_model_answer(page, draw, draw.question)
        page.blank()
        page.line(page.say("compare", count=len(draw.question.rubric)))
    point = draw.question.rubric[number]
    page.blank()
    text = f"{draw.text(point.point, page.language)} {weight(page, point.weight)}"
    page.markdown(text, f"  {number + 1}. ", "     ")
    page.line(page.say("ask_point"), style="dim")


def read_line(page: Page, prompt: str = PROMPT) -> str | None:
    """None at the end of the input. A line that did not come from a keyboard is repeated, for whoever reads along."""
    if page.terminal.is_interactive:
        import readline  # noqa: F401  editing of the line, also of wide characters

    try:
        line = input(prompt)
    except EOFError:
        page.blank()
        return None
    if not page.terminal.is_interactive:
        page.line(line)
    return line


def line_or_end(page: Page, prompt: str = PROMPT) -> tuple[str | None, bool]:
    """A line, None at the end of the input and after Ctrl-C; and whether it was Ctrl-C."""
    try:
        return read_line(page, prompt), False
    except KeyboardInterrupt:
        page.blank()
        return None, True


def show_question(page: Page, quiz: Quiz) -> None:
    assert quiz.asked is not None
    page.fit()
    if quiz.number > 1:
        page.rule()
    page.line(page.say("question_of", number=quiz.number, count=len(quiz.plan)), style="dim")
    show_task(page, quiz.asked)
    page.blank()
    if quiz.written:
        show_written(page, quiz)
    else:
        show_keys(page, quiz)


def show_written(page: Page, quiz: Quiz) -> None:
    """An answer in words that goes on."""
    page.line(page.say("back"))
    for line in quiz.written:
        page.line(line, style="dim", indent="  ")
    show_keys(page, quiz)


def show_keys(page: Page, quiz: Quiz) -> None:
    """What may be typed now."""
    if quiz.phase == "weighing":
        page.line(page.say("ask_confidence"), style="dim")
        return
    if quiz.phase == "marking":
        page.line(page.say("ask_point"), style="dim")
        return
    assert quiz.asked is not None
    keys = [page.say(f"ask_{quiz.asked.question.kind}")]
    if quiz.written or quiz.outcomes:
        keys.append(page.say("key_undo"))
    if quiz.bookmarks is not None:
        keys.append(page.say("key_bookmark_in_full" if is_answered_by_letter(quiz) else "key_bookmark"))
    page.line(page.say("comma").join(keys), style="dim")


def show_notice(page: Page, quiz: Quiz) -> None:
    if quiz.notice in ("bookmarked", "unbookmarked", "keeps_none", "nothing_to_undo", "line_gone", "no_more_hints"):
        page.line(page.say(quiz.notice))
        if quiz.phase in ("weighing", "marking"):
            show_keys(page, quiz)
    elif quiz.phase == "told":
        show_way_on(page, quiz)
    elif quiz.notice == "hint":
        assert quiz.asked is not None
        show_hint(page, quiz.asked, quiz.num_hints)
    else:
        if quiz.notice == "not_taken":
            page.line(page.say("not_taken", why=complaint(page, quiz)), style="yellow")
        show_keys(page, quiz)


def complaint(page: Page, quiz: Quiz) -> str:
    """Why a line was not taken."""
    assert quiz.asked is not None
    if quiz.phase == "marking":
        return page.say("accepted_point")
    question = quiz.asked.question
    return why(page, quiz.reason, quiz.complaint, unit_wanted(page, question) if question.kind == "number" else "")


def why(page: Page, reason: Reason | None, english: str, wanted: str) -> str:
    """A refusal in the page's language; `wanted` says in it how an answer is written."""
    if page.language == "en" or reason is None:
        return english
    return page.readable(REASONS_ZH[reason.code].format(wanted=wanted, **dict(reason.values)))


def show_outcome(page: Page, quiz: Quiz) -> None:
    """Right or wrong and why, the explanation, sources, and how an interviewer would go on."""
    outcome = quiz.last
    page.blank()
    show_verdict(page, outcome)
    question, chosen = outcome.draw.question, outcome.mark.chosen if outcome.mark else ()
    if options_of(question):
        show_options_with_reasons(page, outcome.draw, chosen)
    if question.kind == "predict":
        show_what_happens(page, question)
    elif question.kind == "order":
        page.heading(page.say("right_order"))
        show_right_order(page, outcome.draw)
    elif question.kind == "open":
        if outcome.verdict == "skipped":
            show_model_answer(page, outcome.draw, question)
        show_rubric(page, outcome.draw, question, chosen if outcome.mark else None)
    show_explanation(page, outcome.draw)
    show_follow_ups(page, outcome.draw, with_answers=True)
    show_sources(page, outcome.draw.question.sources)
    if page.terminal.is_interactive and quiz.phase == "told":
        page.blank()
        show_way_on(page, quiz)


def show_way_on(page: Page, quiz: Quiz) -> None:
    """What Enter does; the verdict once more, since its first line may have scrolled away."""
    outcome = quiz.last
    said = verdict_of(page, outcome)
    if outcome.verdict == "wrong" and outcome.mark is not None:
        said = page.say("right_is", verdict=said, answer=outcome.mark.expected)
    elif outcome.verdict == "right" and outcome.mark is not None:
        said += page.say("colon") + outcome.mark.expected
    word = (said, STYLES[outcome.verdict])
    page.line(Text.assemble(word, page.say("stop"), (page.say("ask_end" if quiz.is_last else "ask_next"), "dim")))


def show_verdict(page: Page, outcome: Outcome) -> None:
    """The word, and for an answer what was given and what is right."""
    page.line(verdict_of(page, outcome), style=STYLES[outcome.verdict])
    given = outcome.mark
    if given is not None and outcome.verdict != "marked":
        page.line(page.say("your_answer", given=given.got))
        page.line(page.say("right_answer", answer=given.expected + tolerated(page, outcome)))
        if given.slip:
            page.line(page.say(*given.slip))
        elif outcome.verdict == "wrong" and outcome.draw.question.kind == "order":
            placed = sum(index == place for place, index in enumerate(given.chosen))
            page.line(page.say("in_place", placed=placed, count=len(given.chosen)))
    elif outcome.draw.question.kind == "number":
        page.line(page.say("right_answer", answer=outcome.draw.values()["answer"]))


def verdict_of(page: Page, outcome: Outcome) -> str:
    """`Right`, or what an answer in words was worth: `5 of 7 points`."""
    if outcome.verdict == "marked" and outcome.mark is not None:
        return points_of(page, int(outcome.mark.got), int(outcome.mark.expected))
    return page.say(outcome.verdict)


def points_of(page: Page, points: int, most: int) -> str:
    return page.say("points_of_one" if most == 1 else "points_of", points=points, most=most)


def tolerated(page: Page, outcome: Outcome) -> str:
    """How near a number has to be: `, within 2%`."""
    question = outcome.draw.question
    return tolerance(page, question) if question.kind == "number" else ""


def show_saving(page: Page, why: str | None) -> None:
    """Why an answer is not in the file; None: all are again."""
    page.line(page.say("saved_now") if why is None else page.say("not_saved_yet", why=why), style="yellow")


def show_nothing_to_ask(page: Page, wanted: Literal["due", "new", "bookmarked"]) -> None:
    says = {"due": "nothing_due", "new": "nothing_new", "bookmarked": "nothing_bookmarked"}
    page.line(page.say(says[wanted]))


def show_score(page: Page, quiz: Quiz, seed: int | None) -> None:
    """The last screen: how many were right, question by question, and how to have the same quiz again.

    `seed` is None where no seed would bring the same questions.
    """
    score = quiz.score()
    page.blank()
    if not quiz.outcomes:
        page.line(page.say("nothing_asked"))
        return
    width = widest(verdict_of(page, outcome) for outcome in quiz.outcomes)
    for outcome in quiz.outcomes:
        word = Text(padded(verdict_of(page, outcome), width), style=STYLES[outcome.verdict])
        page.print(Prose(Text(outcome.draw.question.id), word + Text("  "), Text(" " * (width + 2))))
    page.blank()
    num_closed = len(quiz.outcomes) - score.marked - score.unmarked
    parts = [
        page.say("score", right=score.right, asked=num_closed) if num_closed else "",
        page.say("open_points", reached=points_of(page, score.points, score.most_points)) if score.marked else "",
        page.say("num_skipped", count=score.skipped) if score.skipped else "",
        page.say("num_unmarked", count=score.unmarked) if score.unmarked else "",
        page.say("num_left", count=score.not_asked) if score.not_asked else "",
        page.say("num_hints", count=score.num_hints) if score.num_hints else "",
    ]
    page.line(page.say("comma").join(filter(None, parts)), style="bold")
    if seed is not None:
        page.line(page.say("again", seed=seed), style="dim")
