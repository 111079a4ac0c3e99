"""A progress file that SQLite finds whole, and in which some rows hold what was never written."""

from __future__ import annotations

import os
import sqlite3
from datetime import datetime, timezone
from pathlib import Path

import pytest

from kit.progress.overview import overview
from kit.progress.records import EARLIEST, LATEST, InterviewRecord
from kit.progress.salvage import Salvaged
from kit.progress.store import Store, open_store
from tests.progress.made import START, review


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "progress.sqlite3"


@pytest.fixture
def filled(path: Path) -> Path:
    with open_store(path) as store:
        for number in range(3):
            store.add_review(review(number, f"sums/q{number}"))
        store.add_review(review(3, "sums/q0"))
        store.undo_review("review-0003")
        store.bookmark("sums/q0", True, START)
        store.bookmark("sums/q1", True, START)
        store.save_interview(InterviewRecord("i", {"a": 1}, {}, START, START))
        store.save_interview(InterviewRecord("j", {"a": 2}, {}, START, START))
        store.cards()
    return path


def damage(path: Path, statement: str) -> bytes:
    connection = sqlite3.connect(path)
    with connection:
        changed = connection.execute(statement).rowcount
    connection.close()
    assert changed
    return path.read_bytes()


def read_all(store: Store) -> None:
    store.reviews(), store.cards(), store.bookmarks(), store.interviews(), store.export()


@pytest.mark.parametrize(
    "change",
    [
        "kind = CAST(x'c328' AS TEXT)",
        "kind = x'00ff'",
        "asked_at = 'yesterday'",
        "asked_at = 17",
        "asked_at = '2026-03-02T09:30:00'",
        "verdict = 'splendid'",
        "mode = ''",
        "rating = 'so so'",
        "score = 7",
        "score = 'much'",
        "level = 'two'",
        "level = 1.5",
        "seconds = 9e999",
        "num_hints = -1",
        "confidence = x'00'",
        "seed = 'x'",
        "question_id = ''",
        "question_id = x'ff'",
    ],
)
def test_a_review_that_cannot_be_read_is_put_aside_and_the_others_are_kept(filled: Path, change: str) -> None:
    before = damage(filled, f"UPDATE reviews SET {change} WHERE id = 'review-0001'")
    told: list[Salvaged] = []
    with open_store(filled, told.append) as store:
        assert [one.id for one in store.reviews()] == ["review-0000", "review-0002"]
        (salvaged,) = told
        assert (salvaged.kept, salvaged.lost) == (3, 1) and salvaged.aside == store.set_aside
        assert salvaged.aside.read_bytes() == before
        assert store.bookmarks() == ["sums/q0", "sums/q1"] and len(store.interviews()) == 2
        assert set(store.cards()) == {"sums/q0", "sums/q2"}
        store.add_review(review(9))
        read_all(store)
    with open_store(filled, told.append) as store:
        assert len(store.reviews()) == 3
        read_all(store)
    assert len(told) == 1 and salvaged.aside.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE bookmarks SET changed_at = 'once' WHERE question_id = 'sums/q1'",
        "UPDATE bookmarks SET is_on = 'x' WHERE question_id = 'sums/q1'",
        "UPDATE bookmarks SET question_id = CAST(x'ff' AS TEXT) WHERE question_id = 'sums/q1'",
        "UPDATE interviews SET plan = '{' WHERE id = 'j'",
        "UPDATE interviews SET state = '[]' WHERE id = 'j'",
        "UPDATE interviews SET state = x'ff' WHERE id = 'j'",
        "UPDATE interviews SET updated = '' WHERE id = 'j'",
        "UPDATE undone SET review_id = CAST(x'ff' AS TEXT)",
        "UPDATE undone SET review_id = x'ff'",
    ],
)
def test_other_rows_that_cannot_be_read_cost_no_answer(filled: Path, statement: str) -> None:
    before = damage(filled, statement)
    told: list[Salvaged] = []
    with open_store(filled, told.append) as store:
        read_all(store)
        assert len(told) == 1 and told[0].lost == 0 and told[0].aside.read_bytes() == before
        assert {"review-0000", "review-0001", "review-0002"} <= {one.id for one in store.reviews()}
        assert "sums/q0" in store.bookmarks() and store.interviews()[0].id == "i"


@pytest.mark.parametrize(
    "change",
    [
        "due = 'x'",
        "due = x'ff'",
        "state = CAST(x'ff' AS TEXT)",
        "stability = 'x'",
        "stability = -1",
        "difficulty = 9e999",
        "question_id = x'00'",
        "num_reviews = 'x'",
    ],
)
def test_cards_that_cannot_be_read_are_computed_again(filled: Path, change: str) -> None:
    with open_store(filled) as store:
        right = store.cards()
    damage(filled, f"UPDATE cards SET {change} WHERE question_id = 'sums/q1'")
    with open_store(filled) as store:
        assert store.cards() == right and store.set_aside is None
        assert store._known_cards() == right


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00", "9998-01-01T00:00:00+00:00"]
)
def test_a_time_outside_the_calendar_stops_nothing(filled: Path, moment: str) -> None:
    damage(filled, f"UPDATE reviews SET asked_at = '{moment}' WHERE id = 'review-0001'")
    damage(filled, "DELETE FROM cards")
    now = datetime.now(timezone.utc)
    with open_store(filled) as store:
        edge = EARLIEST if moment < "1970" else LATEST
        assert {one.asked_at for one in store.reviews("sums/q1")} == {edge}
        found = overview(store.reviews(), store.cards(), store.bookmarks(), ["sums/q0", "sums/q1"], now)
        assert found.num_answered == 2 and store.set_aside is None
        store.due(now)


def test_two_that_find_the_same_row_put_one_file_aside(filled: Path) -> None:
    damage(filled, "UPDATE reviews SET verdict = 'x' WHERE id = 'review-0001'")
    with open_store(filled) as one, open_store(filled) as other:
        assert len(one.reviews()) == len(other.reviews()) == 2
        assert other.set_aside is None
        other.add_review(review(9))
        assert len(one.reviews()) == 3
    assert len([file for file in filled.parent.glob("*.damaged-*") if not file.name.endswith(("-wal", "-shm"))]) == 1


def test_damage_behind_a_link_is_put_aside_where_the_file_is(tmp_path: Path) -> None:
    there, link = tmp_path / "elsewhere" / "kept.sqlite3", tmp_path / "progress.sqlite3"
    there.parent.mkdir()
    there.write_bytes(b"no database" * 500)
    link.symlink_to(there)
    with open_store(link) as store:
        store.add_review(review(0))
        assert store.set_aside is not None and store.set_aside.parent == there.parent
        assert store.set_aside.read_bytes() == b"no database" * 500
    assert link.is_symlink() and os.readlink(link) == str(there)
    with open_store(there) as store:
        assert len(store.reviews()) == 1
