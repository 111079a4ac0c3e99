"""What `predict` shows before and after the guesses."""

from __future__ import annotations

import pytest

from kit.bank.quantities import Facts, Quantity
from kit.bank.typed_number import EXAMPLES
from kit.practice.foretell import begin, reply
from kit.screen.foretell import complaint, plain, show_facts
from tests.screen.pages import page, text_of

LONG = "def run(stage):\n    return stage.first(one, two, three) + stage.second(four, five, six) + stage.third(seven)\n"


def test_a_long_line_of_the_program_goes_on_deeper_and_nothing_is_padded() -> None:
    shown = page(width=60)
    show_facts(shown, Facts(sources=(LONG,), part="", inputs=(), computes=(), operations=(), communication_s=0.0), "t")
    lines = text_of(shown).splitlines()
    first = next(number for number, line in enumerate(lines) if "return" in line)
    assert lines[first].startswith("    return") and lines[first + 1].startswith("      stage.")
    assert not any(line.endswith(" ") for line in lines) and max(map(len, lines)) <= 60


@pytest.mark.parametrize(
    ("value", "text"),
    [(1390.4, "1390"), (12.345, "12.3"), (0.5, "0.5"), (2e7, "20000000"), (1.2e-5, "0.000012"), (0.0, "0")],
)
def test_numbers_have_no_exponent(value: float, text: str) -> None:
    assert plain(value) == text


def test_a_guess_below_zero_gets_its_own_complaint_in_both_languages() -> None:
    state = reply(begin((Quantity("bubble", "fraction", 0.4, 0.02),)), "-3%")
    assert complaint(page("en"), state) == "nothing measured here is below zero"
    assert complaint(page("zh"), state) == "这里的量都不会是负数"


def test_the_question_and_its_complaint_have_the_same_examples() -> None:
    assert EXAMPLES["B"].removeprefix("as ") in page().say("foretell_how_B")
    assert EXAMPLES["s"].removeprefix("as ") in page().say("foretell_how_s")
