"""Guesses of what a launch measured: what a line leads to, and what guesses are worth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.bank.quantities import Quantity
from kit.practice.foretell import Foretelling, begin, end, reply

TRAFFIC = Quantity("traffic", "B", 12288, 0.02, 0)
BUBBLE = Quantity("bubble", "fraction", 0.375, 0.02)
EXPOSED = Quantity("exposed", "s", 1.5, 0.02, 0)
ALL = (TRAFFIC, BUBBLE, EXPOSED)


def after(*lines: str) -> Foretelling:
    state = begin(ALL)
    for line in lines:
        state = reply(state, line)
    return state


def test_guesses_come_with_their_units_in_any_spelling() -> None:
    for lines in (("12 KiB", "3/8", "1500 ms"), ("12,288 B", "37.5%", "1.5 s"), ("１２ KiB", "0.375", "1.5e3 ms")):
        state = after(*lines)
        assert (state.phase, state.points(), state.score) == ("told", (2, 2, 2), 1), lines


@pytest.mark.parametrize(
    ("guess", "points"),
    [(12288, 2), (12288 * 1.02, 2), (12288 * 0.98, 2), (12288 * 1.03, 1), (12288 * 0.76, 1), (12288 * 1.26, 0),
     (12288 * 0.74, 0), (0, 0)],
)  # fmt: skip
def test_nearer_is_worth_more(guess: float, points: int) -> None:
    assert TRAFFIC.points(guess) == points


def test_a_zero_has_to_be_met() -> None:
    nothing = replace(EXPOSED, measured=0.0)
    assert (nothing.points(0.0), nothing.points(1e-6)) == (2, 0)


@pytest.mark.parametrize(
    ("lines", "says"),
    [(("12",), "of what?"), (("12 s",), "asks for"), (("many",), "is not a number"), (("12 KiB", "38"), "fraction")],
)
def test_what_is_no_guess_never_counts(lines: tuple[str, ...], says: str) -> None:
    state = after(*lines)
    assert state.notice == "not_taken" and says in state.complaint and len(state.guesses) == len(lines) - 1
    assert end(state).notice is None


@pytest.mark.parametrize("lines", [("-5 B",), ("12 KiB", "-3%"), ("s", "s", "−1 ms")])
def test_what_is_below_zero_is_not_taken_and_said_so(lines: tuple[str, ...]) -> None:
    state = after(*lines)
    assert state.is_negative and state.notice == "not_taken" and len(state.guesses) == len(lines) - 1
    assert not reply(state, "").is_negative


def test_what_is_skipped_counts_as_nothing_and_all_skipped_is_skipped() -> None:
    state = after("s", "3/8", "s")
    assert (state.phase, state.points(), state.is_skipped) == ("told", (0, 2, 0), False)
    assert state.score == 2 / 6
    assert after("s", "s", "s").is_skipped
    assert not after("0 B", "s", "s").is_skipped


def test_leaving_and_the_end_of_the_input() -> None:
    assert after("12 KiB", "q").phase == "over"
    assert end(begin(ALL)).phase == "over"
    early = end(after("12 KiB"))
    assert (early.phase, early.points()) == ("told", (2, 0, 0))
    assert after("").notice == "nothing"


def test_with_nothing_measured_nothing_is_asked() -> None:
    assert begin(()).phase == "told"
