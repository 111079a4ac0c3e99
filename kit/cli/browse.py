"""`list` and `show`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kit.bank.layout import find_bank
from kit.bank.load import Header, headers, load_question
from kit.cli.language import chosen_language
from kit.practice.selection import selected, selection

if TYPE_CHECKING:
    from kit.bank.schema import Question
    from kit.screen.page import Page

SCHEMA = 1


def list_questions(
    directory: Path | None,
    topics: Sequence[str],
    kinds: Sequence[str],
    levels: Sequence[str],
    lang: str | None,
    *,
    as_json: bool,
) -> None:
    language = chosen_language(lang)
    bank = find_bank(directory)
    found = selected(headers(bank), selection(bank, topics, kinds, levels))
    if as_json:
        print_json(found)
        return
    from kit.screen.listing import show_list
    from kit.screen.page import Page

    show_list(Page(language), found)


def print_json(found: Sequence[Header]) -> None:
    import json

    questions = [
        {
            "id": header.id,
            "topic": header.topic,
            "kind": header.kind,
            "level": header.level,
            "title": header.title,
            "tags": list(header.tags),
        }
        for header in found
    ]
    print(json.dumps({"schema": SCHEMA, "questions": questions}, indent=2, ensure_ascii=False))


def show_question(
    directory: Path | None, question_id: str, lang: str | None, *, num_hints: int | None, with_answer: bool, seed: int
) -> None:
    """num_hints: how many of the hints, None for all of them."""
    language = chosen_language(lang)
    bank = find_bank(directory)
    question = load_question(bank, question_id)
    from kit.bank.draw import draw
    from kit.screen.page import Page
    from kit.screen.question import show_answer, show_follow_ups, show_hint, show_task

    page = Page(language)
    shown = draw(question, seed)
    show_task(page, shown)
    count = len(question.hints) if num_hints is None else min(num_hints, len(question.hints))
    for number in range(1, count + 1):
        page.blank()
        show_hint(page, shown, number)
    if with_answer:
        reference = bank.reference(question_id)
        show_answer(page, shown, reference.read_text("utf-8") if reference.is_file() else None)
    if with_answer or question.kind in ("open", "code"):  # elsewhere they may give the answer away
        show_follow_ups(page, shown, with_answers=with_answer)
    if not with_answer:
        page.blank()
        show_next(page, question, count)


def show_next(page: Page, question: Question, num_hints_shown: int) -> None:
    """What one may do after reading."""
    if num_hints_shown < len(question.hints):
        command = f"shardkit show {question.id} --hints {num_hints_shown + 1}"
        page.line(page.say("more_hints", count=len(question.hints) - num_hints_shown, command=command), style="dim")
    if question.kind == "code":
        page.line(page.say("next_code", command=f"shardkit start {question.id}"), style="dim")
