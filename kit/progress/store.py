"""The progress file: every write is one transaction, whole or not there at all, also when the process is killed."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.errors import KitError
from kit.progress.opening import opened, progress_path
from kit.progress.records import Bookmark, Card, InterviewRecord, Review, from_text, names_of, to_text

if TYPE_CHECKING:
    from kit.progress.transfer import Counts

REVIEW_COLUMNS = names_of(Review)
CARD_COLUMNS = names_of(Card)
INTERVIEW_COLUMNS = names_of(InterviewRecord)
NOT_UNDONE = "id NOT IN (SELECT review_id FROM undone)"


def open_store(path: Path | None = None) -> Store:
    """The user's progress file unless another is named; made where there is none.

    Several processes may have it open. A damaged file is put beside the new one and named by `Store.set_aside`. Raises
    KitError where it cannot be opened or is of a newer shardkit; then nothing was touched.
    """
    path = path or progress_path()
    connection, aside = opened(path)
    return Store(path, connection, aside)


class Store:
    """Closes as a context manager does. Every method raises KitError where the file cannot be read or written."""

    def __init__(self, path: Path, connection: sqlite3.Connection, set_aside: Path | None) -> None:
        self.path = path
        self.set_aside = set_aside
        self._connection = connection

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    # --- reviews ----------------------------------------------------------------------------------------------

    def add_review(self, review: Review) -> None:
        """Raises ValueError for an id that is there already with another content."""
        with self._transaction():
            if not self._insert_review(review) and self._review(review.id) != review:
                raise ValueError(f"there is another review {review.id}")

    def undo_review(self, review_id: str) -> None:
        """The review no longer counts, here and wherever this file is imported."""
        with self._transaction():
            self._undo(review_id)

    def reviews(self, question_id: str | None = None, since: datetime | None = None) -> tuple[Review, ...]:
        """The oldest first, without those that were undone."""
        query = f"SELECT {', '.join(REVIEW_COLUMNS)} FROM reviews WHERE {NOT_UNDONE}"
        values = []
        if question_id is not None:
            query += " AND question_id = ?"
            values.append(question_id)
        if since is not None:
            query += " AND asked_at >= ?"
            values.append(to_text(since))
        return tuple(map(review_of, self._rows(f"{query} ORDER BY asked_at, id", *values)))

    # --- what is due ------------------------------------------------------------------------------------------

    def cards(self) -> dict[str, Card]:
        """Of every question with a review that moves its date. Computed where reviews have come or gone since."""
        with self._transaction():
            known = {row[0] for row in self._rows("SELECT question_id FROM cards")}
            asked = {row[0] for row in self._rows("SELECT DISTINCT question_id FROM reviews")}
            if asked - known:
                self._compute_cards(asked - known)
            rows = self._rows(f"SELECT {', '.join(CARD_COLUMNS)} FROM cards ORDER BY due, question_id")
        return {card.question_id: card for card in map(card_of, rows)}

    def due(self, now: datetime) -> list[str]:
        """Ids of questions, the longest overdue first."""
        return [card.question_id for card in self.cards().values() if card.due <= now]

    # --- bookmarks --------------------------------------------------------------------------------------------

    def bookmark(self, question_id: str, on: bool, now: datetime | None = None) -> None:
        with self._transaction():
            self._change_bookmark(Bookmark(question_id, on, now or datetime.now(timezone.utc)))

    def bookmarks(self) -> list[str]:
        """Ids of questions, in the order in which they were marked."""
        return [mark.question_id for mark in self._all_bookmarks() if mark.is_on]

    # --- interviews -------------------------------------------------------------------------------------------

    def save_interview(self, record: InterviewRecord, over: datetime | None = None) -> None:
        """Replaces what was saved under this id before.

        over: when that was updated, as far as the caller knows. Raises KitError, and replaces nothing, where somebody
        else has written since.
        """
        with self._transaction():
            kept = self._rows("SELECT updated FROM interviews WHERE id = ?", record.id) if over is not None else []
            if over is not None and kept and kept[0][0] != to_text(over):
                raise KitError(
                    "this interview goes on in another window; the last line typed here is not kept",
                    hint="go on there, or leave it there and use --resume",
                )
            self._put_interview(record)

    def interviews(self) -> tuple[InterviewRecord, ...]:
        """The oldest first."""
        rows = self._rows(f"SELECT {', '.join(INTERVIEW_COLUMNS)} FROM interviews ORDER BY started, id")
        return tuple(map(interview_of, rows))

    # --- other machines ---------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """All of it but the cards, which follow from it, as JSON has it; docs/json.md has the shape."""
        from kit.progress.transfer import exported

        with self._transaction():
            query = f"SELECT {', '.join(REVIEW_COLUMNS)} FROM reviews ORDER BY asked_at, id"
            reviews = [review_of(row) for row in self._rows(query)]
            undone = [row[0] for row in self._rows("SELECT review_id FROM undone ORDER BY review_id")]
            return exported(reviews, undone, self._all_bookmarks(), self.interviews())

    def import_(self, document: object) -> Counts:
        """Merges what `export` gave; importing it again changes nothing.

        Of reviews the id decides, of bookmarks and interviews the later change. Raises KitError, with nothing changed,
        for a document that is no export, or is of a newer shardkit.
        """
        from kit.progress.transfer import Counts, read_export

        brought = read_export(document)
        with self._transaction():
            added = sum([self._insert_review(review) for review in brought.reviews])
            undone = sum([self._undo(review_id) for review_id in brought.undone])
            bookmarks = sum([self._change_bookmark(mark) for mark in brought.bookmarks])
            interviews = sum([self._merge_interview(record) for record in brought.interviews])
        return Counts(added, len(brought.reviews) - added, undone, bookmarks, interviews)

    # --- inside a transaction ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Takes the right to write at its beginning, so that what is read within it stays true until its end."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise KitError(f"{self.path}: {error}", hint="what was answered before is kept") from error

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise KitError(f"{self.path}: {error}") from error

    def _put(self, verb: str, table: str, values: tuple[object, ...]) -> bool:
        """Whether a row was written."""
        places = ", ".join("?" * len(values))
        return self._connection.execute(f"{verb} INTO {table} VALUES ({places})", values).rowcount > 0

    def _insert_review(self, review: Review) -> bool:
        is_new = self._put("INSERT OR IGNORE", "reviews", review_row(review))
        if is_new:
            self._forget_card(review.question_id)
        return is_new

    def _review(self, review_id: str) -> Review:
        query = f"SELECT {', '.join(REVIEW_COLUMNS)} FROM reviews WHERE id = ?"
        return review_of(self._rows(query, review_id)[0])

    def _undo(self, review_id: str) -> bool:
        is_new = self._put("INSERT OR IGNORE", "undone", (review_id,))
        for (question_id,) in self._rows("SELECT question_id FROM reviews WHERE id = ?", review_id):
            self._forget_card(question_id)
        return is_new

    def _forget_card(self, question_id: str) -> None:
        self._connection.execute("DELETE FROM cards WHERE question_id = ?", (question_id,))

    def _compute_cards(self, question_ids: Iterable[str]) -> None:
        from kit.progress.schedule import card_after

        for question_id in question_ids:
            card = card_after(self.reviews(question_id))
            if card is not None:
                self._put("INSERT OR REPLACE", "cards", card_row(card))

    def _all_bookmarks(self) -> list[Bookmark]:
        rows = self._rows("SELECT question_id, is_on, changed_at FROM bookmarks ORDER BY changed_at, question_id")
        return [Bookmark(question_id, bool(is_on), from_text(at)) for question_id, is_on, at in rows]

    def _change_bookmark(self, mark: Bookmark) -> bool:
        """Unless a later change is known; of two at the same time the one that marks."""
        query = "SELECT changed_at, is_on FROM bookmarks WHERE question_id = ?"
        known = self._rows(query, mark.question_id)
        row = (to_text(mark.changed_at), int(mark.is_on))
        if known and known[0] >= row:
            return False
        return self._put("INSERT OR REPLACE", "bookmarks", (mark.question_id, row[1], row[0]))

    def _put_interview(self, record: InterviewRecord) -> bool:
        return self._put("INSERT OR REPLACE", "interviews", interview_row(record))

    def _merge_interview(self, record: InterviewRecord) -> bool:
        """Unless a later state is known; of two at the same time the greater text, whichever comes first."""
        row = interview_row(record)
        query = f"SELECT {', '.join(INTERVIEW_COLUMNS)} FROM interviews WHERE id = ?"
        known = self._rows(query, record.id)
        if known and (known[0][4], tuple(map(str, known[0]))) >= (row[4], tuple(map(str, row))):
            return False
        return self._put_interview(record)


def review_row(review: Review) -> tuple[object, ...]:
    return tuple(to_text(review.asked_at) if name == "asked_at" else getattr(review, name) for name in REVIEW_COLUMNS)


def review_of(row: tuple[Any, ...]) -> Review:
    values = dict(zip(REVIEW_COLUMNS, row, strict=True))
    return Review(**{**values, "asked_at": from_text(values["asked_at"])})


def card_row(card: Card) -> tuple[object, ...]:
    return (card.question_id, to_text(card.due), card.stability, card.difficulty, card.state,
            to_text(card.last_review), card.num_reviews)  # fmt: skip


def card_of(row: tuple[Any, ...]) -> Card:
    question_id, due, stability, difficulty, state, last_review, num_reviews = row
    return Card(question_id, from_text(due), stability, difficulty, state, from_text(last_review), num_reviews)


def interview_row(record: InterviewRecord) -> tuple[object, ...]:
    return (record.id, json_text(record.plan), json_text(record.state), to_text(record.started),
            to_text(record.updated), record.finished and to_text(record.finished))  # fmt: skip


def json_text(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def interview_of(row: tuple[Any, ...]) -> InterviewRecord:
    record_id, plan, state, started, updated, finished = row
    return InterviewRecord(
        record_id,
        json.loads(plan),
        json.loads(state),
        from_text(started),
        from_text(updated),
        finished and from_text(finished),
    )
