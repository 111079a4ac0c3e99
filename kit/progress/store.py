"""The progress file: every write is one transaction, whole or not there at all, also when the process is killed."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from kit.errors import KitError
from kit.progress.opening import BUSY_S, inode_of, opened, progress_path, real, reopened
from kit.progress.records import Bookmark, Card, InterviewRecord, Review, to_text
from kit.progress.rows import (
    CARD_COLUMNS,
    INTERVIEW_COLUMNS,
    REVIEW_COLUMNS,
    Unreadable,
    bookmark_of,
    bookmark_row,
    card_of,
    card_row,
    interview_of,
    interview_row,
    review_of,
    review_row,
    undone_of,
)
from kit.progress.salvage import Salvaged

if TYPE_CHECKING:
    from kit.progress.transfer import Counts

NOT_UNDONE = "id NOT IN (SELECT review_id FROM undone)"
NO_UTF8 = "Could not decode to UTF-8"  # how sqlite3 begins what it says of such a cell
CACHE_S = 1.0  # how long it waits to keep what can be computed again

Told = Callable[[Salvaged], None]
P = ParamSpec("P")
T = TypeVar("T")


def open_store(path: Path | None = None, told: Told | None = None, *, is_reading: bool = False) -> Store:
    """The user's progress file unless another is named; made where there is none.

    Several processes may have it open. A damaged file is put beside the new one, now or when a row turns out to be
    unreadable; `told` is called then. is_reading: nothing will be written, so a file that cannot be written will do.
    Raises KitError where it cannot be opened or is of a newer shardkit; then nothing was touched.
    """
    path = path or progress_path()
    try:
        connection, salvaged = opened(path)
    except KitError as error:
        if not is_reading or error.__cause__ is None:
            raise
        from kit.progress.reading import opened_for_reading

        read_only = opened_for_reading(path)
        if read_only is None:
            raise
        return Store(path, read_only, None, told, is_writable=False)
    return Store(path, connection, salvaged, told)


def kept_whole(method: Callable[Concatenate[Store, P], T]) -> Callable[Concatenate[Store, P], T]:
    """Where a row cannot be read, the file is put aside, what can be read is carried over, and all is done again."""

    @functools.wraps(method)
    def done(store: Store, /, *arguments: P.args, **options: P.kwargs) -> T:
        try:
            return method(store, *arguments, **options)
        except Unreadable as error:
            store._salvage(error)
        return method(store, *arguments, **options)

    return done


class Store:
    """Closes as a context manager does. Every method raises KitError where the file cannot be read or written."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        salvaged: Salvaged | None = None,
        told: Told | None = None,
        *,
        is_writable: bool = True,
    ) -> None:
        self.path = path
        self.set_aside = salvaged.aside if salvaged is not None else None
        self._told = told
        self._connection = connection
        self._is_writable = is_writable
        self._inode = inode_of(real(path))
        if salvaged is not None and told is not None:
            told(salvaged)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def wait_at_most(self, seconds: float) -> None:
        """For another process that writes."""
        self._connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")

    # --- reviews ----------------------------------------------------------------------------------------------

    @kept_whole
    def add_review(self, review: Review) -> None:
        """Raises ValueError for an id that is there already with another content."""
        with self._transaction():
            if not self._insert_review(review) and self._review(review.id) != review:
                raise ValueError(f"there is another review {review.id}")

    @kept_whole
    def undo_review(self, review_id: str) -> None:
        """The review no longer counts, here and wherever this file is imported."""
        with self._transaction():
            self._undo(review_id)

    @kept_whole
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

    @kept_whole
    def cards(self) -> dict[str, Card]:
        """Of every question with a review that moves its date. Computed where reviews have come or gone since.

        What was computed is kept where that can be done soon.
        """
        known = self._known_cards()
        asked = {str(row[0]) for row in self._rows("SELECT DISTINCT question_id FROM reviews")}
        found = dict(known or {})
        if known is None or asked - known.keys():
            found |= self._kept_cards(asked - found.keys(), are_others_bad=known is None)
        return dict(sorted(found.items(), key=lambda each: (each[1].due, each[0])))

    def due(self, now: datetime) -> list[str]:
        """Ids of questions, the longest overdue first."""
        return [card.question_id for card in self.cards().values() if card.due <= now]

    # --- bookmarks --------------------------------------------------------------------------------------------

    @kept_whole
    def bookmark(self, question_id: str, on: bool, now: datetime | None = None) -> None:
        with self._transaction():
            self._change_bookmark(Bookmark(question_id, on, now or datetime.now(timezone.utc)))

    @kept_whole
    def bookmarks(self) -> list[str]:
        """Ids of questions, in the order in which they were marked."""
        return [mark.question_id for mark in self._all_bookmarks() if mark.is_on]

    # --- interviews -------------------------------------------------------------------------------------------

    @kept_whole
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

    @kept_whole
    def interviews(self) -> tuple[InterviewRecord, ...]:
        """The oldest first."""
        rows = self._rows(f"SELECT {', '.join(INTERVIEW_COLUMNS)} FROM interviews ORDER BY started, id")
        return tuple(map(interview_of, rows))

    # --- other machines ---------------------------------------------------------------------------------------

    @kept_whole
    def export(self) -> dict[str, Any]:
        """All of it but the cards, which follow from it, as JSON has it; docs/json.md has the shape."""
        from kit.progress.transfer import exported

        with self._transaction(is_reading=True):
            query = f"SELECT {', '.join(REVIEW_COLUMNS)} FROM reviews ORDER BY asked_at, id"
            reviews = [review_of(row) for row in self._rows(query)]
            undone = [undone_of(row) for row in self._rows("SELECT review_id FROM undone ORDER BY review_id")]
            return exported(reviews, undone, self._all_bookmarks(), self.interviews())

    @kept_whole
    def import_(self, document: object) -> Counts:
        """Merges what `export` gave; importing it again changes nothing.

        Of reviews the id decides, of bookmarks and interviews the later change. Raises KitError, with nothing changed,
        for a document that is no export, is of a newer shardkit, or has another content for a review that is known.
        """
        from kit.progress.transfer import Counts, read_export

        brought = read_export(document)
        with self._transaction():
            added = sum([self._bring_review(number, review) for number, review in enumerate(brought.reviews)])
            undone = sum([self._undo(review_id) for review_id in brought.undone])
            bookmarks = sum([self._change_bookmark(mark) for mark in brought.bookmarks])
            interviews = sum([self._merge_interview(record) for record in brought.interviews])
        return Counts(added, len(brought.reviews) - added, undone, bookmarks, interviews)

    # --- inside a transaction ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self, *, is_reading: bool = False) -> Iterator[None]:
        """Takes the right to write at its beginning, so that what is read within it stays true until its end.

        is_reading: only all at the same moment.
        """
        try:
            self._connection.execute("BEGIN" if is_reading else "BEGIN IMMEDIATE")
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
            if str(error).startswith(NO_UTF8):
                raise Unreadable(str(error)) from error
            raise KitError(f"{self.path}: {error}") from error

    def _salvage(self, error: Unreadable) -> None:
        """From now on a new file, with all that could be read of this one."""
        if not self._is_writable:
            message = f"{self.path} is damaged ({error}), and its folder cannot be written to put it aside"
            raise KitError(message) from None
        self._connection.close()
        self._connection, salvaged = reopened(self.path, self._inode)
        self._inode = inode_of(real(self.path))
        if salvaged is not None:
            self.set_aside = salvaged.aside
            if self._told is not None:
                self._told(salvaged)

    def _put(self, verb: str, table: str, values: tuple[object, ...]) -> bool:
        """Whether a row was written."""
        places = ", ".join("?" * len(values))
        return self._connection.execute(f"{verb} INTO {table} VALUES ({places})", values).rowcount > 0

    def _insert_review(self, review: Review) -> bool:
        is_new = self._put("INSERT OR IGNORE", "reviews", review_row(review))
        if is_new:
            self._forget_card(review.question_id)
        return is_new

    def _bring_review(self, number: int, review: Review) -> bool:
        """Whether it is new. Raises KitError where the same id is known for something else."""
        if self._insert_review(review):
            return True
        known = self._review(review.id)
        for name in REVIEW_COLUMNS:
            here, there = getattr(known, name), getattr(review, name)
            if here != there:
                raise KitError(
                    f"reviews[{number}]: review {review.id} is known with another {name}: "
                    f"{plain_cell(here)} here, {plain_cell(there)} in the import"
                )
        return False

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

    def _known_cards(self) -> dict[str, Card] | None:
        """As they were computed; None where one of them cannot be read: they follow from the reviews."""
        try:
            rows = self._rows(f"SELECT {', '.join(CARD_COLUMNS)} FROM cards")
            return {card.question_id: card for card in map(card_of, rows)}
        except Unreadable:
            return None

    def _kept_cards(self, question_ids: Iterable[str], *, are_others_bad: bool) -> dict[str, Card]:
        """Of these questions, computed anew. They are kept for the next time, or else are only told."""
        try:
            self.wait_at_most(CACHE_S)
            with self._transaction():
                if are_others_bad:
                    self._connection.execute("DELETE FROM cards")
                cards = self._compute_cards(question_ids)
                for card in cards.values():
                    self._put("INSERT OR REPLACE", "cards", card_row(card))
                return cards
        except KitError:
            return self._compute_cards(question_ids)
        finally:
            self.wait_at_most(BUSY_S)

    def _compute_cards(self, question_ids: Iterable[str]) -> dict[str, Card]:
        from kit.progress.schedule import card_after

        computed = {question_id: card_after(self._reviews_of(question_id)) for question_id in question_ids}
        return {question_id: card for question_id, card in computed.items() if card is not None}

    def _reviews_of(self, question_id: str) -> list[Review]:
        query = f"SELECT {', '.join(REVIEW_COLUMNS)} FROM reviews WHERE {NOT_UNDONE} AND question_id = ?"
        return [review_of(row) for row in self._rows(f"{query} ORDER BY asked_at, id", question_id)]

    def _all_bookmarks(self) -> list[Bookmark]:
        rows = self._rows("SELECT question_id, is_on, changed_at FROM bookmarks ORDER BY changed_at, question_id")
        return [bookmark_of(row) for row in rows]

    def _change_bookmark(self, mark: Bookmark) -> bool:
        """Unless a later change is known; of two at the same time the one that marks."""
        query = "SELECT changed_at, is_on FROM bookmarks WHERE question_id = ?"
        known = self._rows(query, mark.question_id)
        row = (to_text(mark.changed_at), int(mark.is_on))
        if (
            known
            and (to_text(bookmark_of((mark.question_id, known[0][1], known[0][0])).changed_at), known[0][1]) >= row
        ):
            return False
        return self._put("INSERT OR REPLACE", "bookmarks", bookmark_row(mark))

    def _put_interview(self, record: InterviewRecord) -> bool:
        return self._put("INSERT OR REPLACE", "interviews", interview_row(record))

    def _merge_interview(self, record: InterviewRecord) -> bool:
        """Unless a later state is known; of two at the same time the greater text, whichever comes first."""
        row = interview_row(record)
        query = f"SELECT {', '.join(INTERVIEW_COLUMNS)} FROM interviews WHERE id = ?"
        known = self._rows(query, record.id)
        if known:
            interview_of(known[0])
        if known and (known[0][4], tuple(map(str, known[0]))) >= (row[4], tuple(map(str, row))):
            return False
        return self._put_interview(record)


def plain_cell(value: object) -> object:
    return to_text(value) if isinstance(value, datetime) else value
