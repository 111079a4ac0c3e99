"""A hunt as a state machine: what a line of text leads to, and what guesses are worth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.bank.hunted import Seen, as_candidate
from kit.bank.schema import Edit, Mutant, Text
from kit.practice.hunt import NUM_HINTS, Hunt, end, finish, ratio_at, reply

MUTANT = Mutant(
    name="wrong",
    what=Text(en="It is wrong.", zh="错了。"),
    edits=(Edit(find="x + 1", replace="x + 2"),),
    caught_by=("test_it_adds",),
)
SHOWN = as_candidate("sums/add", MUTANT, "def add(x):\n    y = x + 1\n    return y\n")
WRONG_LINE = 3
SEEN = Seen("values", frozenset({"values", "traffic"}), 2, (1,), 2.0)


def after(*lines: str, hunt: Hunt | None = None) -> Hunt:
    hunt = hunt or Hunt(SHOWN)
    for line in lines:
        hunt = reply(hunt, line)
    return hunt


def worth(*lines: str, seen: Seen | None = SEEN) -> dict[str, int]:
    guessed = after(*lines)
    assert guessed.phase == "guessed"
    return {each.part: each.got for each in finish(guessed, seen, is_run=seen is not None).points()}


def test_everything_right() -> None:
    assert worth("3", "e", "1", "n") == {"line": 3, "symptom": 2, "rank": 1, "ratio": 1}
    assert finish(after("3", "e", "1", "n"), SEEN, is_run=True).score == 1


def test_everything_wrong() -> None:
    assert worth("4", "a", "0") == {"line": 0, "symptom": 0, "rank": 0}
    assert finish(after("4", "e", "0", "1/n"), SEEN, is_run=True).score == 2 / 7


def test_a_symptom_that_shows_too_is_worth_half() -> None:
    assert worth("4", "traffic", "-")["symptom"] == 1


@pytest.mark.parametrize(
    ("symptom", "phases"),
    [("values", ["rank", "ratio", "guessed"]), ("hang", ["rank", "guessed"]), ("refused", ["guessed"])],
)
def test_what_is_asked_follows_from_the_symptom(symptom: str, phases: list[str]) -> None:
    hunt, seen = after("3", symptom), []
    while hunt.phase != "guessed":
        seen.append(hunt.phase)
        hunt = reply(hunt, "-")
    assert [*seen, "guessed"] == phases


@pytest.mark.parametrize("typed", ["e", "E", "5", "values", "Ｅ"])
def test_a_symptom_by_letter_number_or_name(typed: str) -> None:
    assert after("3", typed).guess.symptom == "values"


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (("0",), "1-4"),
        (("5",), "1-4"),
        (("three",), "1-4"),
        (("3", "z"), "a-i"),
        (("3", "0"), "a-i"),
        (("3", "10"), "a-i"),
        (("3", "e", "left"), "0-63"),
    ],
)
def test_what_is_no_guess_is_not_taken(lines: tuple[str, ...], complaint: str) -> None:
    *before, last = lines
    hunt = after(*before)
    refused = reply(hunt, last)
    assert (refused.notice, refused.complaint) == ("not_taken", complaint)
    assert replace(refused, notice=None, complaint="") == hunt


@pytest.mark.parametrize("typed", ["m", "n +", "1/0", "sqrt(m)", "every one", ""])
def test_what_is_no_ratio_is_not_taken(typed: str) -> None:
    assert after("3", "e", "0", typed).phase == "ratio"


@pytest.mark.parametrize(
    ("typed", "at_3"),
    [("n", 3), ("N x", 3), ("1/n", 1 / 3), ("2n", 6), ("n^2", 9), ("sqrt(n)", 3**0.5), ("1/√n", 3**-0.5), ("0", 0),
     ("-1", -1), ("n-1", 2), ("(n-1)/n", 2 / 3), ("0.5×", 0.5), ("2(n-1)", 4), ("50%", 0.5), ("37.5 ％", 0.375)],
)  # fmt: skip
def test_ratios_as_people_write_them(typed: str, at_3: float) -> None:
    ratio = after("3", "e", "0", typed).guess.ratio
    assert ratio is not None and ratio_at(ratio, 3) == pytest.approx(at_3)


def test_a_ratio_is_held_against_the_world_size_that_failed() -> None:
    three = replace(SEEN, world_size=3, ratio=3.0)
    assert worth("3", "e", "1", "n", seen=three)["ratio"] == 1
    assert worth("3", "e", "1", "2", seen=three)["ratio"] == 0
    assert worth("3", "e", "1", "-", seen=three)["ratio"] == 0


def test_none_is_right_where_there_is_none() -> None:
    no_rank = replace(SEEN, ranks=(), ratio=None)
    assert worth("3", "e", "-", "none", seen=no_rank) == {"line": 3, "symptom": 2, "rank": 1, "ratio": 1}
    assert worth("3", "e", "0", "n", seen=no_rank) == {"line": 3, "symptom": 2, "rank": 0, "ratio": 0}


def test_what_is_skipped_counts_for_nothing() -> None:
    assert worth("s", "e", "s", "n") == {"line": 0, "symptom": 2, "rank": 0, "ratio": 1}
    nothing = after("s", "s")
    assert nothing.phase == "guessed" and nothing.is_skipped


@pytest.mark.parametrize("is_run", [True, False])
def test_without_a_failure_the_line_alone_counts(is_run: bool) -> None:
    told = finish(after("3", "e", "0", "n"), None, is_run=is_run)
    assert [each.part for each in told.points()] == ["line"] and told.score == 1


def test_hints_come_one_by_one_and_end() -> None:
    hunt = Hunt(SHOWN)
    for number in range(NUM_HINTS):
        hunt = reply(hunt, "？")
        assert (hunt.notice, hunt.num_hints, hunt.phase) == ("hint", number + 1, "line")
    assert reply(hunt, "?").notice == "no_more_hints"


def test_a_hunt_can_be_left_or_the_file_be_wanted_instead() -> None:
    assert (after("q").phase, after("q").wants_file) == ("over", False)
    assert (after("3", "fix").phase, after("3", "fix").wants_file) == ("over", True)
    told = finish(after("3", "a", "0"), SEEN, is_run=True)
    assert (reply(told, "f").phase, reply(told, "f").wants_file) == ("over", True)
    assert (reply(told, "").phase, reply(told, "").wants_file) == ("over", False)


def test_the_end_of_the_input_runs_what_was_guessed() -> None:
    assert end(Hunt(SHOWN)).phase == "over"
    assert end(after("3")).phase == "guessed"
    refused = end(after("3", "zz"))
    assert (refused.phase, refused.notice, refused.complaint) == ("guessed", None, "")
    assert end(finish(after("3", "a", "0"), SEEN, is_run=True)).phase == "over"
