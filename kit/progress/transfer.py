"""Progress as a JSON document, for another machine or to keep; docs/json.md has the shape."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from kit.bank.closest import closest
from kit.bank.document import kind_of
from kit.bank.load import KINDS, LEVELS
from kit.errors import KitError
from kit.progress.records import EARLIEST, LATEST, Bookmark, InterviewRecord, Review, from_text, names_of, to_text

SCHEMA = 1
PARTS = ("reviews", "undone", "bookmarks", "interviews")

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Export:
    reviews: tuple[Review, ...]
    undone: tuple[str, ...]
    bookmarks: tuple[Bookmark, ...]
    interviews: tuple[InterviewRecord, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """What an import brought: reviews that were new and that were known, and changes of the others."""

    added: int
    known: int
    undone: int
    bookmarks: int
    interviews: int


def exported(
    reviews: Iterable[Review],
    undone: Iterable[str],
    bookmarks: Iterable[Bookmark],
    interviews: Iterable[InterviewRecord],
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "reviews": [plain(review) for review in reviews],
        "undone": list(undone),
        "bookmarks": [plain(mark) for mark in bookmarks],
        "interviews": [plain(record) for record in interviews],
    }


def plain(record: Any) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in names_of(type(record))}
    return {name: to_text(value) if isinstance(value, datetime) else value for name, value in values.items()}


def read_export(document: object) -> Export:
    """Raises KitError that names the place of what is wrong."""
    if not isinstance(document, dict) or type(document.get("schema")) is not int:
        raise KitError("this is no export of shardkit's progress", hint="`shardkit export FILE` writes one")
    if document["schema"] < 1:
        raise KitError(f"schema: expected 1 to {SCHEMA}, got {document['schema']}")
    if document["schema"] > SCHEMA:
        raise KitError(
            f"this export has schema {document['schema']}, and this shardkit knows up to {SCHEMA}",
            hint="upgrade shardkit",
        )
    require_keys("the export", document, ("schema", *PARTS))
    for part in PARTS:
        if not isinstance(document[part], list):
            raise KitError(f"{part}: expected a list, got {kind_of(document[part])}")
    return Export(
        read_all("reviews", document["reviews"], review_reader()),
        read_all("undone", document["undone"], lambda where, value: value_of(where, value, str)),
        read_all("bookmarks", document["bookmarks"], record_reader(Bookmark)),
        read_all("interviews", document["interviews"], record_reader(InterviewRecord)),
    )


def read_all(part: str, values: Iterable[object], read: Callable[[str, object], Record]) -> tuple[Record, ...]:
    return tuple(read(f"{part}[{number}]", value) for number, value in enumerate(values))


def review_reader() -> Callable[[str, object], Review]:
    read_record = record_reader(Review)

    def read(where: str, value: object) -> Review:
        review = read_record(where, value)
        if review.kind not in KINDS:
            raise KitError(f"{where}.kind: expected one of {', '.join(KINDS)}, got {review.kind!r}")
        if review.level not in LEVELS:
            raise KitError(f"{where}.level: expected one of {', '.join(map(str, LEVELS))}, got {review.level}")
        return review

    return read


def record_reader(record: type[Record]) -> Callable[[str, object], Record]:
    hints, names = get_type_hints(record), names_of(record)

    def read(where: str, value: object) -> Record:
        if not isinstance(value, dict):
            raise KitError(f"{where}: expected an object, got {kind_of(value)}")
        require_keys(where, value, names)
        values = {name: value_of(f"{where}.{name}", value[name], hints[name]) for name in names}
        try:
            return record(**values)
        except ValueError as error:
            raise KitError(f"{where}: {error}") from None

    return read


def require_keys(where: str, value: Mapping[str, object], names: tuple[str, ...]) -> None:
    for name in names:
        if name not in value:
            raise KitError(f"{where}: missing key {name!r}")
    for name in value:
        if name not in names:
            near = closest(name, names, limit=1)
            raise KitError(f"{where}: unknown key {name!r}" + (f" (did you mean {near[0]!r}?)" if near else ""))


def value_of(where: str, value: object, hint: Any) -> Any:
    """`value` as a field of the type `hint` holds it. Raises KitError where it cannot."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if value is None and type(None) in options:
        return None
    wanted = next(option for option in options if option is not type(None))
    if wanted is datetime:
        return moment_of(where, value)
    if get_origin(wanted) is not None:  # a Literal, which the record itself checks, or a Mapping
        wanted = dict if issubclass_of_mapping(wanted) else str
    if wanted is float and type(value) is int:
        return float_of(where, value)
    if type(value) is not wanted:
        raise KitError(f"{where}: expected {NAMES[wanted]}, got {kind_of(value)}")
    if isinstance(value, str | dict) and not is_text(value):
        raise KitError(f"{where}: half of a character, which no file can hold")
    return value


def issubclass_of_mapping(hint: Any) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def is_text(value: str | dict[str, Any]) -> bool:
    """Whether a text, or all texts in what JSON holds, can be written."""
    try:
        (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def float_of(where: str, value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise KitError(f"{where}: {str(value)[:20]}... is too large a number") from None


def moment_of(where: str, value: object) -> datetime:
    """A time within which everything can reckon with days; a clock never said another one."""
    try:
        moment = from_text(value) if isinstance(value, str) else None
    except OverflowError:
        moment = datetime.min.replace(tzinfo=timezone.utc)
    except ValueError:
        moment = None
    if moment is None:
        raise KitError(f"{where}: expected a time such as 2026-01-31T09:30:00+00:00, got {value!r}")
    if not EARLIEST <= moment <= LATEST:
        raise KitError(f"{where}: expected a time from {EARLIEST.year} to {LATEST.year}, got {value!r}")
    return moment


NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "an object"}
