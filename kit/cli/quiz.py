"""`quiz`: chooses the questions, and hands over to the screen."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from kit.bank.layout import find_bank
from kit.bank.load import headers, load_question
from kit.cli.language import chosen_language
from kit.errors import KitError
from kit.practice.quiz import KINDS, begin
from kit.practice.selection import Selection, selected, selection, shuffled_ids

SEEDS = 10**6


def run_quiz(
    directory: Path | None,
    topics: Sequence[str],
    kinds: Sequence[str],
    levels: Sequence[str],
    count: int,
    lang: str | None,
    seed: int | None,
) -> None:
    language = chosen_language(lang)
    bank = find_bank(directory)
    found = selected(headers(bank), quiz_selection(selection(bank, topics, kinds, levels)))
    seed = secrets.randbelow(SEEDS) if seed is None else seed

    from kit.bank.draw import Draw, draw
    from kit.screen.page import Page
    from kit.screen.quiz import play, show_score

    def drawn(question_id: str) -> Draw:
        return draw(load_question(bank, question_id), seed)

    page = Page(language)
    quiz = play(page, begin(shuffled_ids(found, count, seed)), drawn)
    show_score(page, quiz, seed)


def quiz_selection(wanted: Selection) -> Selection:
    """Only kinds that a quiz asks. Raises KitError where another was named."""
    for kind in wanted.kinds:
        if kind not in KINDS:
            hint = "`shardkit start ID` begins a code question" if kind == "code" else None
            raise KitError(f"a quiz asks {', '.join(KINDS)}, not {kind}", hint=hint)
    return Selection(wanted.topics, wanted.kinds or KINDS, wanted.levels)
