"""What would answer many questions without reading them: always the longest option, or always the shortest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kit.bank.draw import options_of
from kit.bank.lint.entry import Entry
from kit.bank.lint.finding import Finding
from kit.bank.lint.options import LANGUAGES, SHORTER

if TYPE_CHECKING:
    from kit.bank.schema import Language

# A bank whose authors do not look at lengths lies above chance by two standard deviations once in forty times.
DEVIATIONS = 2.0
FEWEST = 4
LONGER = "lengthen it, or say less in a wrong one"


@dataclass(frozen=True, slots=True)
class Habit:
    """How often the strictly longest (or shortest) option of a question is a right one.

    A reader who always takes it is right by chance `expected` times out of `count`: the sum over the questions of
    p = right options / options. `most` is that and DEVIATIONS times the standard deviation, sqrt(sum of p (1 - p)).
    """

    is_longest: bool
    language: Language
    ids: tuple[str, ...]
    count: int
    expected: float
    most: float

    @property
    def is_kept(self) -> bool:
        return self.count >= FEWEST and len(self.ids) > self.most


def habits(entries: Sequence[Entry]) -> Iterator[Habit]:
    """Of questions with one right option, and of those with several, each in both languages and both directions."""
    for is_single in (True, False):
        group = [
            entry for entry in entries if options_of(entry.question) and (entry.question.kind != "multi") == is_single
        ]
        chances = [
            sum(option.correct for option in options_of(entry.question)) / len(options_of(entry.question))
            for entry in group
        ]
        most = sum(chances) + DEVIATIONS * math.sqrt(sum(chance * (1 - chance) for chance in chances))
        for language in LANGUAGES:
            for is_longest in (True, False):
                ids = tuple(entry.question.id for entry in group if is_given_away(entry, language, is_longest))
                yield Habit(is_longest, language, ids, len(group), sum(chances), most)


def is_given_away(entry: Entry, language: Language, is_longest: bool) -> bool:
    """Whether one option alone is the longest or shortest, and right."""
    options = options_of(entry.question)
    lengths = [len(option.text.get(language).strip()) for option in options]
    extreme = max(lengths) if is_longest else min(lengths)
    return lengths.count(extreme) == 1 and options[lengths.index(extreme)].correct


def habit_findings(entries: Sequence[Entry]) -> Iterator[Finding]:
    for habit in habits(entries):
        if habit.is_kept:
            word = "longest" if habit.is_longest else "shortest"
            what = (
                f"a right option is the {word} in {len(habit.ids)} of {habit.count} questions ({habit.language}), "
                f"by chance {habit.expected:.1f}, at most {math.floor(habit.most)}: {', '.join(habit.ids)}"
            )
            yield Finding("questions", 0, what, SHORTER if habit.is_longest else LONGER)
