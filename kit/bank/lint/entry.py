"""A question together with its file, so that a rule can name the line that breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kit.bank.document import Document, Location
from kit.bank.layout import Bank
from kit.bank.lint.finding import Finding
from kit.bank.load import load_document, load_question

if TYPE_CHECKING:
    from kit.bank.schema import Question, Text


@dataclass(frozen=True, slots=True)
class Entry:
    question: Question
    document: Document

    def finding(self, location: Location, message: str, advice: str = "") -> Finding:
        return Finding(self.document.path, self.document.line(location, of_key=True), message, advice)

    def texts(self) -> Iterator[tuple[tuple[str | int, ...], Text]]:
        """(location in the file, text) of everything that a person reads."""
        yield from texts_below(self.question, ())


def texts_below(value: object, location: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Text]]:
    from pydantic import BaseModel

    from kit.bank.schema import Text

    if isinstance(value, Text):
        yield location, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from texts_below(getattr(value, name), (*location, name))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from texts_below(item, (*location, index))


def read_entry(bank: Bank, question_id: str) -> Entry:
    """Raises ContentError where the question is not valid."""
    return Entry(load_question(bank, question_id), load_document(bank, question_id))
