"""A progress file in which some rows cannot be read: it is put aside, and the others go into a new one."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.progress.rows import (
    BOOKMARK_COLUMNS,
    INTERVIEW_COLUMNS,
    REVIEW_COLUMNS,
    Unreadable,
    bookmark_of,
    interview_of,
    review_of,
    undone_of,
)

TABLES: dict[str, tuple[tuple[str, ...], Callable[[Sequence[Any]], object]]] = {
    "reviews": (REVIEW_COLUMNS, review_of),
    "undone": (("review_id",), undone_of),
    "bookmarks": (BOOKMARK_COLUMNS, bookmark_of),
    "interviews": (INTERVIEW_COLUMNS, interview_of),
}


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Where the damaged file is now; of its answers, how many could be read and how many could not."""

    aside: Path
    kept: int = 0
    lost: int = 0


def carry_over(aside: Path, into: sqlite3.Connection) -> Salvaged:
    """Every readable row of the damaged file goes into a new one, all in one transaction. Cards follow from reviews.

    The damaged file is only read. Raises sqlite3.Error where the new one cannot be written.
    """
    kept, lost = 0, 0
    with contextlib.closing(sqlite3.connect(f"{aside.as_uri()}?mode=ro", uri=True, isolation_level=None)) as old:
        old.text_factory = bytes
        into.execute("BEGIN IMMEDIATE")
        try:
            for table, (columns, read) in TABLES.items():
                places = ", ".join("?" * len(columns))
                for row in rows_of(old, f"SELECT {', '.join(columns)} FROM {table}"):
                    whole = decoded(row)
                    is_read = whole is not None and is_readable(read, whole)
                    if is_read and whole is not None:
                        into.execute(f"INSERT OR IGNORE INTO {table} VALUES ({places})", whole)
                    if table == "reviews":
                        kept, lost = kept + is_read, lost + (not is_read)
            into.execute("COMMIT")
        except BaseException:
            into.execute("ROLLBACK")
            raise
    return Salvaged(aside, kept, lost)


def rows_of(connection: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    """Up to where the file itself is broken."""
    with contextlib.suppress(sqlite3.DatabaseError):
        yield from connection.execute(query)


def decoded(row: Sequence[Any]) -> tuple[Any, ...] | None:
    """A row of texts as bytes; None where one is no UTF-8. A blob turns into a text here, and is refused or right."""
    try:
        return tuple(cell.decode("utf-8") if isinstance(cell, bytes) else cell for cell in row)
    except UnicodeDecodeError:
        return None


def is_readable(read: Callable[[Sequence[Any]], object], row: Sequence[Any]) -> bool:
    try:
        read(row)
    except Unreadable:
        return False
    return True
