"""What an interviewer sees of a question: letters that fit the options, and a screen that is not all red flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from kit.bank.draw import draw, options_of
from kit.bank.layout import find_bank
from kit.bank.load import headers, load_question
from kit.bank.mark import mark
from kit.errors import KitError
from kit.interview.interviewer import begin, reply
from kit.interview.record import ItemRecord, Plan, PlanPart, Question
from kit.interview.rubric import red_flags
from kit.screen import interviewer as screen
from tests.cli.conftest import ROOT
from tests.interview.made import BANK, untouched
from tests.screen.pages import page, text_of

WHOLE = find_bank(ROOT)


@pytest.mark.parametrize("question_id", [h.id for h in headers(WHOLE) if h.kind in ("choice", "multi", "order")])
def test_the_right_answer_has_the_letters_that_are_taken_for_right(question_id: str) -> None:
    for seed in (1, 2):
        shown = draw(load_question(WHOLE, question_id), seed)
        out = page()
        screen.show_right(out, shown)
        letters = re.findall(r"^  (?:\d\. )?([a-z])  ", text_of(out), re.MULTILINE)
        assert mark(shown, " ".join(letters)).is_right
        assert not options_of(shown.question) or letters == sorted(letters)


def room(number_of_flags: int) -> screen.Room:
    def grade(question_id: str, path: str) -> tuple[Mapping[str, Any], Mapping[str, float]]:
        raise KitError("no grades here")

    return screen.Room(
        draw=lambda item: draw(load_question(BANK, item.question_id), item.seed),
        red_flags=lambda shown: tuple(f"flag {number}" for number in range(1, number_of_flags + 1)),
        clock_s=lambda: 0.0,
        save=lambda desk: None,
        grade=grade,
        require_card=lambda path: None,
    )


def test_many_red_flags_are_listed_when_asked_for_and_those_that_were_seen_always() -> None:
    plan = Plan(1, (PlanPart("design", 20, (Question("layout/design", 3),)),))
    here = room(20)
    desk = reply(begin(untouched(plan=plan)), "x 15", 0.0, here.showing)
    out = page()
    screen.show_question(out, desk, here)
    shown = text_of(out)
    assert re.findall(r"\[(.)\] (\d+)\. flag", shown) == [(" ", str(n)) for n in range(1, 9)] + [("x", "15")]
    assert "and 11 more; x lists them all" in shown
    assert shown.index("flag 15") < shown.index("Points, to be scored")
    out = page()
    screen.show_change(out, reply(desk, "x", 0.0, here.showing), here)
    assert len(re.findall(r"\] \d+\. flag", text_of(out))) == 20 and "more" not in text_of(out)


def test_a_question_of_the_bank_has_flags_that_fit_the_limit_or_are_cut() -> None:
    shown = draw(load_question(BANK, "layout/share"), 3)
    item = ItemRecord("layout/share", "code", 3)
    out = page()
    screen.show_red_flags(out, item, red_flags(shown, BANK, "en"))
    assert text_of(out).count("[ ]") == min(screen.MOST_FLAGS, len(red_flags(shown, BANK, "en")))
