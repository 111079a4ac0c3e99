"""Questions from their files: all of them cheaply, one of them validated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kit.bank.closest import closest
from kit.bank.document import ContentError, Document, kind_of, parse, read_text
from kit.bank.layout import Bank, require_id

if TYPE_CHECKING:
    from kit.bank.schema import Question

KINDS = ("code", "choice", "multi", "number", "order", "predict", "open")
LEVELS = (1, 2, 3, 4)

TOP_LEVEL_KEY = re.compile(r"^[A-Za-z_]\w*:", re.MULTILINE)
HEADER_KEYS = ("kind", "level", "title", "tags", "requires")


@dataclass(frozen=True, slots=True)
class Header:
    """What a list of questions shows: read from the file's first keys, the rest of it unseen."""

    id: str
    kind: str
    level: int
    title: dict[str, str]
    tags: tuple[str, ...]
    requires: tuple[str, ...] = ()

    @property
    def topic(self) -> str:
        return self.id.split("/")[0]


def headers(bank: Bank) -> list[Header]:
    """Every question's header, sorted by id. Raises ContentError where one of them is wrong."""
    return [read_header(bank, question_id) for question_id in bank.ids()]


def load_header(bank: Bank, question_id: str) -> Header:
    """One question's header. Raises KitError for an unknown id, ContentError for a wrong header."""
    return read_header(bank, require_id(bank, question_id))


def read_header(bank: Bank, question_id: str) -> Header:
    path = bank.question(question_id)
    shown = bank.shown(path)
    text = read_text(path, shown)
    try:
        document = parse(header_text(text), shown)
        return Header(question_id, *header_fields(document))
    except ContentError:
        # The excerpt cannot be read alone, or is wrong: the whole file gives the real line.
        return Header(question_id, *header_fields(parse(text, shown)))


def header_text(text: str) -> str:
    """The lines of the header's keys, without those between them."""
    text = f"\n{text}"
    found = []
    for key in HEADER_KEYS:
        # Looking for a fixed text is many times faster than a pattern, and there are hundreds of long files.
        start = text.find(f"\n{key}:")
        while start >= 0:
            following = TOP_LEVEL_KEY.search(text, start + 1 + len(key))
            end = following.start() if following else len(text)
            found.append(text[start + 1 : end])
            start = text.find(f"\n{key}:", end - 1)
    return "".join(found)


def header_fields(document: Document) -> tuple[str, int, dict[str, str], tuple[str, ...], tuple[str, ...]]:
    kind = require_kind(document)
    level = required(document, "level")
    if type(level) is not int or level not in LEVELS:
        raise document.error(["level"], f"level: expected a whole number from 1 to 4, got {kind_of(level)}")
    title = required(document, "title")
    if not isinstance(title, dict) or not all(isinstance(title.get(language), str) for language in ("en", "zh")):
        raise document.error(["title"], f"title: expected texts 'en' and 'zh', got {kind_of(title)}")
    return kind, level, title, texts(document, "tags"), texts(document, "requires")


def texts(document: Document, key: str) -> tuple[str, ...]:
    """An optional list of texts."""
    value = document.values.get(key, [])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise document.error([key], f"{key}: expected a list of texts, got {kind_of(value)}")
    return tuple(value)


def required(document: Document, key: str) -> Any:
    if key not in document.values:
        raise document.error([], f"missing key {key!r}")
    return document.values[key]


def require_kind(document: Document) -> str:
    kind = required(document, "kind")
    if kind in KINDS:
        return str(kind)
    near = closest(kind, KINDS, limit=1) if isinstance(kind, str) else []
    meant = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(KINDS)}"
    raise document.error(["kind"], f"unknown kind {kind!r} ({meant})")


def load_question(bank: Bank, question_id: str) -> Question:
    """One question, validated. Raises KitError for an unknown id, ContentError for a wrong file."""
    from kit.bank.validation import validate

    document = load_document(bank, question_id)
    question: Question = validate(model_of(document), document, {**document.values, "id": question_id})
    return question


def load_questions(bank: Bank) -> Iterator[Question]:
    """Every question, validated, in the order of ids."""
    return (load_question(bank, question_id) for question_id in bank.ids())


def question_problems(bank: Bank, question_id: str) -> list[ContentError]:
    """Everything that `load_question` might complain about, in the order of lines."""
    from kit.bank.validation import problems

    try:
        document = load_document(bank, question_id)
        found = problems(model_of(document), document, {**document.values, "id": question_id})
    except ContentError as error:
        return [error]
    return found if isinstance(found, list) else []


def load_document(bank: Bank, question_id: str) -> Document:
    path = bank.question(require_id(bank, question_id))
    shown = bank.shown(path)
    return parse(read_text(path, shown), shown)


def model_of(document: Document) -> Any:
    from kit.bank.schema import MODELS

    kind = require_kind(document)
    if "id" in document.values:
        raise document.error(["id"], "unknown key 'id' (a question's id is its path)")
    return MODELS[kind]
