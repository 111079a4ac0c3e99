"""`interview --share`: prompts alone, of a plan one after the other, or of the interview that goes on."""

from __future__ import annotations

import select
import sys
from typing import TYPE_CHECKING

from kit.bank.layout import Bank
from kit.bank.load import load_question
from kit.cli.language import Language
from kit.cli.left import chosen, open_ones
from kit.cli.progress import open_progress
from kit.errors import KitError
from kit.interview.record import Plan, from_json

if TYPE_CHECKING:
    from kit.progress.store import Store
    from kit.screen.page import Page

QUIT = ("q", "quit", "exit")
LOOK_S = 0.5  # how often a screen that follows looks at what is asked


def leaf_through(bank: Bank, language: Language, plan: Plan) -> None:
    """Enter, `b` and numbers go from one prompt to another."""
    from kit.screen.page import Page
    from kit.screen.quiz import read_line

    page = Page(language)
    count, place = sum(len(part.questions) for part in plan.parts), 0
    line: str | None = ""
    while line is not None and line not in QUIT:
        show(page, bank, plan, place, "share_keys")
        line = read_line(page)
        if line is not None:
            line = line.strip().lower()
            place = next_place(line, place, count)


def follow(bank: Bank, language: Language, name: str) -> None:
    """The latest interview that goes on, or that of `name`, as it goes on."""
    from kit.screen.page import Page

    page = Page(language)
    with open_progress(language) as store:
        found = open_ones(store)
        if not found:
            raise KitError("no interview goes on", hint="--share --plan FILE shows the prompts of a plan")
        going_on = chosen(found, name).id
        asked = what_is_asked(store, going_on)
        while asked is not None:
            show(page, bank, *asked, "share_follow")
            if not wait(page, store, going_on, asked):
                return
            asked = what_is_asked(store, going_on)
    page.blank()
    page.line(page.say("share_over"))


def wait(page: Page, store: Store, going_on: str, asked: tuple[Plan, int]) -> bool:
    """Until something else is asked, or a line is typed; False where that says to end, or there are no more lines."""
    from kit.screen.quiz import PROMPT, read_line

    if not page.terminal.is_interactive:
        line = read_line(page)
    else:
        print(PROMPT, end="", flush=True)
        while not select.select([sys.stdin], [], [], LOOK_S)[0]:
            if what_is_asked(store, going_on) != asked:
                return True
        line = sys.stdin.readline() or None
    return line is not None and line.strip().lower() not in QUIT


def show(page: Page, bank: Bank, plan: Plan, place: int, keys: str) -> None:
    from kit.bank.draw import draw
    from kit.screen.candidate import show_shared

    questions = [question for part in plan.parts for question in part.questions]
    show_shared(page, draw(load_question(bank, questions[place].id), questions[place].seed), place + 1, len(questions))
    page.line(page.say(keys), style="dim")


def what_is_asked(store: Store, interview_id: str) -> tuple[Plan, int] | None:
    """Its plan and the question that is asked now; None once it is over."""
    for kept in store.interviews():
        if kept.id == interview_id and kept.finished is None:
            return from_json(kept.state["record"]).plan, int(kept.state["place"])
    return None


def next_place(word: str, place: int, count: int) -> int:
    if word in ("b", "back"):
        return max(0, place - 1)
    if word.isascii() and word.isdigit() and 1 <= int(word) <= count:
        return int(word) - 1
    return min(count - 1, place + 1) if not word else place
