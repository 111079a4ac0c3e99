"""What is left of an interview: a scorecard to keep, as Markdown or as one HTML file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kit.interview.card_words import Language, say
from kit.interview.escaping import fenced, in_markdown, quoted, visible
from kit.interview.sheet import Answer, Line, Row, Section, Sheet, sheet

if TYPE_CHECKING:
    from kit.bank.layout import Bank
    from kit.interview.record import Record

SIGNS = {"met": "✓", "partly": "~", "missed": "✗", "open": "–"}
BAR = 10  # characters
PLAIN = re.compile(r"[\w/ .-]+")


def html(record: Record, bank: Bank, language: Language) -> str:
    """One page that needs nothing else. What candidates and interviewers typed is shown and never obeyed.

    Raises KitError where the bank cannot be read.
    """
    from kit.interview.scorecard_html import page

    return page(sheet(record, bank, language))


def markdown(record: Record, bank: Bank, language: Language) -> str:
    """The same as Markdown with tables, as most viewers know them."""
    card = sheet(record, bank, language)
    blocks = [
        f"# {in_markdown(card.title)}",
        *([] if card.is_finished else [f"**{say(language, 'unfinished')}**"]),
        facts(card),
        say(language, "plan_compares"),
        *([f"## {say(language, 'overall')}", quoted(card.overall)] if card.overall.strip() else []),
        *topics(card),
        *parts(card),
        *study(card),
        f"## {say(language, 'answers')}",
        *(block for section in card.sections for block in answers(card, section)),
        say(language, "made_by"),
    ]
    return "\n\n".join(blocks) + "\n"


def facts(card: Sheet) -> str:
    colon = say(card.language, "colon")
    return "\n".join(f"- **{in_markdown(label)}**{colon}{in_markdown(value)}" for label, value in card.facts)


def topics(card: Sheet) -> list[str]:
    if not card.topics:
        return []
    return table(card, "topics", ("head_topic", "head_questions", "head_score"), card.topics)


def parts(card: Sheet) -> list[str]:
    heads = ("head_part", "head_planned", "head_used", "head_asked", "head_score")
    return table(card, "parts", heads, card.parts)


def table(card: Sheet, title: str, heads: Sequence[str], rows: Sequence[Row]) -> list[str]:
    lines = [
        cells([say(card.language, name) for name in heads]),
        cells(["---"] * len(heads)),
        *(cells([*map(in_markdown, row.cells), f"{bar(row)}{in_markdown(row.shown)}"]) for row in rows),
    ]
    return [f"## {say(card.language, title)}", "\n".join(lines)]


def cells(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def bar(row: Row) -> str:
    if row.share is None:
        return ""
    filled = round(BAR * row.share)
    return f"{'█' * filled}{'░' * (BAR - filled)} "


def study(card: Sheet) -> list[str]:
    blocks = [f"## {say(card.language, 'study')}"]
    if not card.study:
        return [*blocks, say(card.language, "study_nothing" if card.is_answered else "study_unknown")]
    comma, colon = say(card.language, "comma"), say(card.language, "colon")
    entries = [
        f"{number}. {in_markdown(each.title)} {code(each.question_id)}{comma}{in_markdown(each.reason)}"
        for number, each in enumerate(card.study, 1)
    ]
    blocks.append("\n".join(entries))
    if card.commands:
        lead = say(card.language, "study_command") + colon
        blocks.append("\n".join(f"- {lead}{code(command)}" for command in card.commands))
    return blocks


def answers(card: Sheet, section: Section) -> list[str]:
    time = f"{say(card.language, 'time')}{say(card.language, 'colon')}{in_markdown(section.time)}"
    return [
        f"### {in_markdown(section.title)}",
        time,
        *(block for answer in section.answers for block in one(card, answer)),
    ]


def one(card: Sheet, answer: Answer) -> list[str]:
    language = card.language
    comma = say(language, "comma")
    verdict = answer.verdict if not answer.is_asked else f"{answer.verdict}{comma}{answer.score}"
    blocks = [
        f"#### {in_markdown(answer.title)}",
        comma.join([code(answer.question_id), *map(in_markdown, answer.facts), f"**{in_markdown(verdict)}**"]),
    ]
    if not answer.is_touched:
        return blocks
    blocks.append(block_quote(answer.prompt) if answer.prompt else say(language, "no_question"))
    if answer.given.strip():
        blocks += [label(card, "answer"), fenced(answer.given), *bullets(answer.picked, is_ordered=answer.is_ordered)]
    elif answer.is_asked:
        blocks += [label(card, "answer"), say(language, "no_answer")]
    if answer.right:
        blocks += [label(card, "right_answer"), *bullets(answer.right, is_ordered=answer.is_ordered)]
    if answer.explanation:
        blocks += [label(card, "explanation"), block_quote(answer.explanation)]
    if answer.model_answer:
        blocks += [label(card, "model_answer"), block_quote(answer.model_answer)]
    blocks += listed(card, "points", answer.points)
    if answer.grade:
        blocks += [label(card, "grade"), "\n".join(f"- {in_markdown(line)}" for line in answer.grade)]
    blocks += listed(card, "follow_ups", answer.follow_ups)
    if answer.red_flags:
        blocks += [label(card, "red_flags"), *bullets(answer.red_flags)]
    if answer.notes.strip():
        blocks += [label(card, "notes"), quoted(answer.notes)]
    return blocks


def bullets(entries: Sequence[str], *, is_ordered: bool = False) -> list[str]:
    """A block that lists Markdown of the bank; none for nothing."""
    signs = [f"{number}. " if is_ordered else "- " for number in range(1, len(entries) + 1)]
    return ["\n".join(map(item, entries, signs))] if entries else []


def label(card: Sheet, key: str) -> str:
    return f"**{say(card.language, key)}**"


def listed(card: Sheet, key: str, lines: Sequence[Line]) -> list[str]:
    if not lines:
        return []
    comma = say(card.language, "colon")
    entries = []
    for line in lines:
        entries.append(item(f"{SIGNS[line.state]} **{in_markdown(line.said)}**{comma}{line.text}"))
        below = [fenced(line.typed)] if line.typed.strip() else []
        if line.model:
            below.append(f"*{say(card.language, 'strong_answer')}*{comma}{visible(line.model).strip()}")
        if below:
            entries.append("\n" + indented("\n\n".join(below)) + "\n")
    return [label(card, key), "\n".join(entries).rstrip()]


def code(text: str) -> str:
    """An id or a command; where it is more than that, as plain text."""
    return f"`{text}`" if PLAIN.fullmatch(text) else in_markdown(text)


def item(text: str, sign: str = "- ") -> str:
    """Markdown of the bank as an entry of a list, however many lines it has."""
    first, *others = visible(text).strip().split("\n")
    return "\n".join([sign + first, *(f"{' ' * len(sign)}{line}".rstrip() for line in others)])


def indented(text: str) -> str:
    """Below an entry of a list."""
    return "\n".join(f"  {line}" if line else "" for line in text.split("\n"))


def block_quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in visible(text).strip().split("\n"))
