"""Guesses of what a launch measured, as a state machine: lines of text go in, a new state comes out."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from typing import Literal

from kit.bank.quantities import MOST, Quantity
from kit.bank.refusal import Reason, reason_of
from kit.bank.typed_number import TypedNumber, read_number
from kit.errors import KitError

Phase = Literal["asking", "told", "over"]
Notice = Literal["not_taken", "nothing"]

QUIT = frozenset({"q", "quit", "exit"})
SKIP = frozenset({"s", "skip"})


@dataclass(frozen=True, slots=True)
class Foretelling:
    """asking: the next of `quantities` waits for a guess. told: all were. over: the learner has left.

    guesses: one for each quantity so far, None where it was skipped.
    """

    quantities: tuple[Quantity, ...]
    phase: Phase = "asking"
    guesses: tuple[TypedNumber | None, ...] = ()
    notice: Notice | None = None
    complaint: str = ""  # why a line was not taken, in English; such a line never counts
    reason: Reason | None = None  # the same, for a screen in another language
    is_negative: bool = False  # it was, which is why

    @property
    def asked(self) -> Quantity:
        return self.quantities[len(self.guesses)]

    def points(self) -> tuple[int, ...]:
        """Of each quantity, 0 where it was skipped."""
        guesses = (*self.guesses, *[None] * (len(self.quantities) - len(self.guesses)))
        return tuple(
            each.points(float(guess.value)) if guess is not None else 0
            for each, guess in zip(self.quantities, guesses, strict=True)
        )

    @property
    def score(self) -> float:
        """0 to 1."""
        return sum(self.points()) / (MOST * len(self.quantities))

    @property
    def is_skipped(self) -> bool:
        return all(guess is None for guess in self.guesses)


def begin(quantities: tuple[Quantity, ...]) -> Foretelling:
    return Foretelling(quantities, "asking" if quantities else "told")


def reply(state: Foretelling, line: str) -> Foretelling:
    """What the learner typed: a guess with its unit, or a command."""
    if state.phase != "asking":
        return state
    text = unicodedata.normalize("NFKC", line).strip()
    state = replace(state, notice=None, complaint="", reason=None, is_negative=False)
    if text.lower() in QUIT:
        return replace(state, phase="over")
    if text.lower() in SKIP:
        return guessed(state, None)
    if not text:
        return replace(state, notice="nothing")
    try:
        guess = read_number(text, state.asked.unit)
        if guess.value < 0:
            return replace(state, notice="not_taken", complaint=f"{text} is below zero", is_negative=True)
        return guessed(state, guess)
    except KitError as error:
        complaint = "; ".join(filter(None, [error.message, error.hint]))
        return replace(state, notice="not_taken", complaint=complaint, reason=reason_of(error))


def guessed(state: Foretelling, guess: TypedNumber | None) -> Foretelling:
    guesses = (*state.guesses, guess)
    return replace(state, guesses=guesses, phase="told" if len(guesses) == len(state.quantities) else "asking")


def end(state: Foretelling) -> Foretelling:
    """No more input: what was guessed is told, and without any guess it is over."""
    return replace(state, phase="told" if state.guesses else "over", notice=None, complaint="", reason=None)
