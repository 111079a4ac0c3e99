"""The screen of a mock by a clock of our own: whose time it is while an editor or a grade runs."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kit.bank.draw import Draw, draw
from kit.bank.load import load_question
from kit.interview.candidate import Mock, begin
from kit.interview.record import ItemRecord, Plan
from kit.screen import candidate as screen
from tests.interview.made import BANK, PLAN, untouched
from tests.screen.pages import page, text_of

FOUND = {"verdict": "passed", "score": 4, "max_score": 4, "solution": "share.py"}


@dataclass(slots=True)
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def held(monkeypatch: pytest.MonkeyPatch, plan: Plan, lines: str, took_s: float) -> tuple[Mock, str]:
    """An editor and a grade take so long, and typing no time."""
    clock = Clock()

    def edited(text: str, **_: object) -> str:
        clock.now += took_s
        return f"{text}\nwritten"

    def grade(question_id: str, path: str) -> Mapping[str, Any]:
        clock.now += took_s
        return FOUND

    def drawn(item: ItemRecord) -> Draw:
        return draw(load_question(BANK, item.question_id), item.seed)

    monkeypatch.setattr(screen, "edit", edited)
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    out = page()
    monkeypatch.setattr("sys.stdout", out.file)
    saved: list[Mock] = []
    room = screen.Room(drawn, clock, saved.append, lambda name: ("share.py", True), grade)
    mock = screen.hold(out, begin(replace(untouched(plan=plan), role="candidate")), room)
    assert saved[-1] == mock
    return mock, text_of(out)


def plan_of(*places: int) -> Plan:
    return replace(PLAN, parts=tuple(PLAN.parts[place] for place in places))


def test_the_time_in_an_editor_is_that_of_the_question_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    mock, shown = held(monkeypatch, plan_of(2, 3), "e\ne\ns\nq\n", 100.0)
    design, share = mock.items
    assert (design.answer, design.seconds) == ("\nwritten", 200.0)
    assert share.seconds == 0.0 and [part.seconds_used for part in mock.record.parts] == [200.0, 0.0]
    assert "\n20:00 > " in f"\n{shown}"


def test_after_the_time_was_used_up_in_an_editor_nothing_more_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    mock, shown = held(monkeypatch, plan_of(2, 3), "e\nq\n", 2000.0)
    assert mock.items[0].follow_ups == () and mock.items[0].verdict == "unmarked"
    assert mock.place == 1 and "A follow-up" not in shown


def test_the_time_of_a_grade_is_that_of_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    mock, shown = held(monkeypatch, plan_of(3, 1), "g\nd\nq\n", 90.0)
    assert [item.seconds for item in mock.items] == [90.0, 0.0] and mock.items[0].verdict == "right"
    assert "18:30 > " in shown  # the grade's time is off the clock that is shown after it


def test_questions_that_no_time_was_left_for_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    mock, shown = held(monkeypatch, two_in_one_part(), "e\nq\n", 2000.0)
    assert "The time of this part is used up. Questions of it that are not asked: 1." in " ".join(shown.split())
    assert mock.place == 2 and mock.items[1].verdict == ""


def two_in_one_part() -> Plan:
    """The answer in words first, then one of its part that time will not be left for."""
    first, second = PLAN.parts[2], PLAN.parts[0]
    part = replace(first, questions=(*first.questions, second.questions[0]))
    return replace(PLAN, parts=(part, PLAN.parts[3]))
