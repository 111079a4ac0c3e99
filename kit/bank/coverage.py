"""Which questions there are of what, and which of the things that the field asks they cover: docs/coverage.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kit.bank.document import parse, read_text
from kit.bank.layout import Bank
from kit.bank.load import KINDS, LEVELS, load_questions
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.bank.schema import Question

COMMAND = "shardkit lint --coverage docs/coverage.md"
HEADINGS = {
    "F": ("What the field asks", "Questions that interviewers put, in our own words."),
    "C": ("What candidates are told", "Claims that are widely taught; each is held against code, figures or sources."),
}


def read_asked(bank: Bank) -> dict[str, str]:
    """`{"F1": "how replicas stay identical", ...}` in the order of the file. Raises KitError where it is not so."""
    shown = bank.shown(bank.asked)
    document = parse(read_text(bank.asked, shown), shown)
    found: dict[str, str] = {}
    for letter, texts in document.values.items():
        if letter not in HEADINGS or not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise document.error([letter], f"expected F and C, each a list of texts, got {letter!r}")
        found.update({f"{letter}{number}": text for number, text in enumerate(texts, 1)})
    return found


def coverage(bank: Bank) -> str:
    """The whole file as Markdown. Raises KitError where a question or the list of what is asked is wrong."""
    if not bank.asked.is_file():
        raise KitError(f"no {bank.shown(bank.asked)}, which lists what the field asks", hint="write it first")
    questions = list(load_questions(bank))
    return "\n".join([*counts(questions), *covered(questions, read_asked(bank))]) + "\n"


def counts(questions: Sequence[Question]) -> Iterator[str]:
    """Topic by kind and topic by level."""
    yield "# Coverage"
    yield ""
    yield f"Written by `{COMMAND}`; a test holds it to the questions."
    yield ""
    yield f"{len(questions)} questions. Levels: 1 junior, 2 middle, 3 senior, 4 staff."
    yield ""
    heads = ["topic", *KINDS, *(f"level {level}" for level in LEVELS), "all"]
    yield row(heads)
    yield row(["---"] + ["---:"] * (len(heads) - 1))
    topics = sorted({question.topic for question in questions})
    for name in [*topics, "all"]:
        of_topic = [question for question in questions if name in (question.topic, "all")]
        numbers = [sum(question.kind == kind for question in of_topic) for kind in KINDS]
        numbers += [sum(question.level == level for question in of_topic) for level in LEVELS]
        yield row([name, *(str(number) if number else "" for number in numbers), str(len(of_topic))])


def covered(questions: Sequence[Question], asked: dict[str, str]) -> Iterator[str]:
    """For each thing that is asked the questions that cover it."""
    for letter, (heading, meaning) in HEADINGS.items():
        numbers = [number for number in asked if number[0] == letter]
        by_number = {number: [question.id for question in questions if number in question.covers] for number in numbers}
        num_covered = sum(bool(ids) for ids in by_number.values())
        yield ""
        yield f"## {heading}"
        yield ""
        yield f"{meaning} A question names what it covers: `covers: [{letter}1]`."
        yield f"Covered: {num_covered} of {len(numbers)}."
        yield ""
        yield row(["", "what", "questions"])
        yield row(["---"] * 3)
        for number, ids in by_number.items():
            yield row([number, asked[number], ", ".join(ids) or "-"])


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
