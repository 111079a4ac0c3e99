"""A hunt as a state machine: lines of text go in, a new state comes out; nothing is read, run or printed."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Literal

from kit.bank.arithmetic import evaluate
from kit.bank.hunted import SYMPTOMS, Hunted, Seen, Symptom
from kit.bank.mark import LETTERS
from kit.errors import KitError

Phase = Literal["line", "symptom", "rank", "ratio", "guessed", "told", "over"]
Notice = Literal["hint", "no_more_hints", "not_taken", "nothing"]
Part = Literal["line", "symptom", "rank", "ratio"]

PARTS: tuple[Part, ...] = ("line", "symptom", "rank", "ratio")
POINTS: dict[Part, int] = {"line": 3, "symptom": 2, "rank": 1, "ratio": 1}
ALSO_SEEN = 1  # points for a symptom that shows too, but not first
NUM_HINTS = 2  # the function, then a few lines
NONE_WORDS = frozenset({"-", "none", "no", "无", "没有"})
PROBE_WORLD_SIZE = 3
NEAR_RATIO = 0.02

HINT = frozenset({"?", "hint"})
QUIT = frozenset({"q", "quit", "exit"})
SKIP = frozenset({"s", "skip"})
FIX = frozenset({"fix"})


@dataclass(frozen=True, slots=True)
class Guess:
    """A part that was skipped is not among `given`. rank and ratio None: the guess is that there is none.

    ratio: as typed, an expression of `n`, the world size.
    """

    given: frozenset[Part] = frozenset()
    line: int = 0
    symptom: Symptom = "values"
    rank: int | None = None
    ratio: str | None = None


@dataclass(frozen=True, slots=True)
class Points:
    """Of one part. is_right: the whole of it."""

    part: Part
    got: int
    most: int

    @property
    def is_right(self) -> bool:
        return self.got == self.most


@dataclass(frozen=True, slots=True)
class Hunt:
    """line, symptom, rank, ratio: that guess is asked for. guessed: nothing more is asked, and the file is to be run;
    `finish` then takes what was seen. told: all is on the screen. over: nothing more is taken.

    is_line_only: the file will not be run, so that there is nothing else to guess.
    wants_file: the learner would rather put the file right. is_run: it was run; `seen` is None where it came through.
    """

    hunted: Hunted
    is_line_only: bool = False
    phase: Phase = "line"
    guess: Guess = Guess()
    num_hints: int = 0
    notice: Notice | None = None
    complaint: str = ""  # what a line would have to be; such a line never counts
    wants_file: bool = False
    is_run: bool = False
    seen: Seen | None = None

    def points(self) -> tuple[Points, ...]:
        """Of each part that was asked for and can be told from what was seen; a part that was skipped gives none."""
        asked = [part for part in PARTS if part in self.asked_parts() and self.is_known(part)]
        return tuple(Points(part, self.got(part), POINTS[part]) for part in asked)

    def asked_parts(self) -> tuple[Part, ...]:
        if self.is_line_only:
            return ("line",)
        if "symptom" not in self.guess.given:
            return ("line", "symptom")
        return ("line", "symptom", *after_symptom(self.guess.symptom))

    def is_known(self, part: Part) -> bool:
        return part == "line" or self.seen is not None

    def got(self, part: Part) -> int:
        guess, seen = self.guess, self.seen
        if part not in guess.given:
            return 0
        if part == "line":
            return POINTS[part] * (guess.line in self.hunted.lines)
        assert seen is not None
        if part == "symptom":
            if guess.symptom == seen.symptom:
                return POINTS[part]
            return ALSO_SEEN * (guess.symptom in seen.symptoms)
        if part == "rank":
            is_right = guess.rank in seen.ranks if seen.ranks else guess.rank is None
        else:
            is_right = is_ratio(guess.ratio, seen)
        return POINTS[part] * is_right

    @property
    def score(self) -> float:
        """0 to 1."""
        points = self.points()
        return sum(each.got for each in points) / sum(each.most for each in points)

    @property
    def is_skipped(self) -> bool:
        return not self.guess.given


def after_symptom(symptom: Symptom) -> tuple[Part, ...]:
    """What else can be foretold of it."""
    if symptom == "refused":
        return ()
    return ("rank", "ratio") if symptom == "values" else ("rank",)


def reply(hunt: Hunt, line: str) -> Hunt:
    """What the learner typed: a command, or the guess that is asked for."""
    text = unicodedata.normalize("NFKC", line).strip()
    word = text.lower()
    hunt = replace(hunt, notice=None, complaint="")
    if hunt.phase == "told":
        return replace(hunt, phase="over", wants_file=word in FIX | {"f"})
    if hunt.phase not in PARTS:
        return hunt
    if word in QUIT:
        return replace(hunt, phase="over")
    if word in FIX:
        return replace(hunt, phase="over", wants_file=True)
    if word in HINT:
        if hunt.num_hints == NUM_HINTS:
            return replace(hunt, notice="no_more_hints")
        return replace(hunt, notice="hint", num_hints=hunt.num_hints + 1)
    if word in SKIP:
        return next_part(hunt)
    if not text:
        return replace(hunt, notice="nothing")
    try:
        guess = read_guess(hunt, word)
    except KitError as error:
        return replace(hunt, notice="not_taken", complaint=error.message)
    return next_part(replace(hunt, guess=replace(guess, given=guess.given | {hunt.phase})))


def end(hunt: Hunt) -> Hunt:
    """No more input: what was guessed so far is run, and without any guess the hunt is over."""
    is_begun = hunt.phase in PARTS and hunt.guess.given
    return replace(hunt, phase="guessed" if is_begun else "over", notice=None, complaint="")


def next_part(hunt: Hunt) -> Hunt:
    parts = hunt.asked_parts()
    place = next(number for number, part in enumerate(parts, 1) if part == hunt.phase)
    return replace(hunt, phase=parts[place] if place < len(parts) else "guessed")


def finish(hunt: Hunt, seen: Seen | None, *, is_run: bool) -> Hunt:
    """The file was run and this was seen, or (not is_run) it could not be; then the line alone counts."""
    assert hunt.phase == "guessed"
    return replace(hunt, phase="told", seen=seen, is_run=is_run)


# -- guesses ----------------------------------------------------------------------------------------------------------


def read_guess(hunt: Hunt, word: str) -> Guess:
    """Raises KitError with what is wanted instead."""
    guess = hunt.guess
    if hunt.phase == "line":
        return replace(guess, line=whole_number(word, 1, hunt.hunted.num_lines))
    if hunt.phase == "symptom":
        return replace(guess, symptom=read_symptom(word))
    if hunt.phase == "rank":
        return replace(guess, rank=None if word in NONE_WORDS else whole_number(word.removeprefix("rank"), 0, 63))
    return replace(guess, ratio=None if word in NONE_WORDS else read_ratio(word))


def whole_number(word: str, least: int, most: int) -> int:
    digits = word.strip()
    if digits.isascii() and digits.isdigit() and len(digits) < 9 and least <= int(digits) <= most:
        return int(digits)
    raise KitError(f"{least}-{most}")


def read_symptom(word: str) -> Symptom:
    """By letter, number or name."""
    if word in SYMPTOMS:
        return SYMPTOMS[SYMPTOMS.index(word)]
    letters = LETTERS[: len(SYMPTOMS)]
    if len(word) == 1 and word in letters:
        return SYMPTOMS[letters.index(word)]
    if word.isascii() and word.isdigit() and len(word) < 3 and 1 <= int(word) <= len(SYMPTOMS):
        return SYMPTOMS[int(word) - 1]
    raise KitError(f"{letters[0]}-{letters[-1]}")


def read_ratio(word: str) -> str:
    """`2n`, `1/sqrt(n)`, `n x`, `50%`: an expression that `ratio_at` takes."""
    text = word.removesuffix("x").removesuffix("×").strip().replace("×", "*").replace("^", "**")
    text = re.sub(r"(sqrt\s*\(?|√\s*\(?)(n|\d+)\)?", r"(\2**0.5)", text)
    text = re.sub(r"(?<=[\d.)])\s*(?=[n(])", "*", text)
    text = re.sub(r"^(-?[\d.]+)\s*%$", r"\1/100", text)
    ratio_at(text, PROBE_WORLD_SIZE)
    return text


def ratio_at(ratio: str, world_size: int) -> float:
    """Raises KitError where `ratio` is none."""
    return float(evaluate(ratio, {"n": world_size}))


def is_ratio(ratio: str | None, seen: Seen) -> bool:
    if ratio is None or seen.ratio is None:
        return ratio is None and seen.ratio is None
    return math.isclose(ratio_at(ratio, seen.world_size), seen.ratio, rel_tol=NEAR_RATIO, abs_tol=1e-9)
