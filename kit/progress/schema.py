"""The tables of the progress file, version by version."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

# Each takes a file from the version before to its own, its place from 1. What was released is never edited: a change is
# one more entry, and tests/progress/versions/ gets a file of the version that it leaves behind.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE reviews (
            id TEXT PRIMARY KEY, question_id TEXT NOT NULL, kind TEXT NOT NULL, topic TEXT NOT NULL,
            level INTEGER NOT NULL, asked_at TEXT NOT NULL, verdict TEXT NOT NULL, score REAL NOT NULL, rating TEXT,
            num_hints INTEGER NOT NULL, seconds REAL NOT NULL, confidence REAL, seed INTEGER, mode TEXT NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX reviews_of_a_question ON reviews (question_id, asked_at)",
        "CREATE TABLE undone (review_id TEXT PRIMARY KEY) WITHOUT ROWID",
        """CREATE TABLE bookmarks (
            question_id TEXT PRIMARY KEY, is_on INTEGER NOT NULL, changed_at TEXT NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE interviews (
            id TEXT PRIMARY KEY, plan TEXT NOT NULL, state TEXT NOT NULL, started TEXT NOT NULL, updated TEXT NOT NULL,
            finished TEXT
        ) WITHOUT ROWID""",
        """CREATE TABLE cards (
            question_id TEXT PRIMARY KEY, due TEXT NOT NULL, stability REAL NOT NULL, difficulty REAL NOT NULL,
            state TEXT NOT NULL, last_review TEXT NOT NULL, num_reviews INTEGER NOT NULL
        ) WITHOUT ROWID""",
    ),
)


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """To the newest version, all of it or nothing. The connection is in autocommit mode and in no transaction."""
    if version_of(connection) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, statements in enumerate(migrations[version_of(connection) :], version_of(connection) + 1):
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
