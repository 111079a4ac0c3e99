"""Export and import: lossless, in any order, as often as one likes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.errors import KitError
from kit.progress.records import InterviewRecord
from kit.progress.store import Store, open_store
from tests.progress.made import START, review

Opened = Callable[[str], Store]


@pytest.fixture
def store(tmp_path: Path) -> Opened:
    return lambda name: open_store(tmp_path / f"{name}.sqlite3")


def interview(minutes: int, **changes: Any) -> InterviewRecord:
    moment = START + timedelta(minutes=minutes)
    return InterviewRecord("i", {"parts": [0.1, "中"]}, {"minutes": minutes, **changes}, START, moment)


def filled(store: Store) -> Store:
    store.add_review(review(0, confidence=0.1 + 0.2, seconds=1 / 3))
    store.add_review(review(1, "sums/other", verdict="skipped", score=0.0, rating=None, seed=None))
    store.add_review(review(2))
    store.undo_review("review-0002")
    store.bookmark("sums/which", True, START)
    store.bookmark("sums/other", True, START)
    store.bookmark("sums/other", False, START + timedelta(days=1))
    store.save_interview(interview(5))
    return store


def through_json(store: Store) -> Any:
    return json.loads(json.dumps(store.export(), ensure_ascii=False))


def test_an_import_into_an_empty_file_is_the_same_file(store: Opened) -> None:
    one, other = filled(store("one")), store("other")
    counts = other.import_(through_json(one))
    assert (counts.added, counts.known, counts.undone, counts.bookmarks, counts.interviews) == (3, 0, 1, 2, 1)
    assert other.export() == one.export()
    for read in (Store.reviews, Store.bookmarks, Store.interviews, Store.cards):
        assert read(other) == read(one), read
    assert len(one.reviews()) == 2 and one.bookmarks() == ["sums/which"]


def test_a_second_import_changes_nothing(store: Opened) -> None:
    one, other = filled(store("one")), store("other")
    other.import_(through_json(one))
    counts = other.import_(through_json(one))
    assert (counts.added, counts.known, counts.undone, counts.bookmarks, counts.interviews) == (0, 3, 0, 0, 0)
    assert one.import_(through_json(one)) == counts
    assert other.export() == one.export()


def test_two_files_become_one_whichever_comes_first(store: Opened) -> None:
    one, other = filled(store("one")), store("other")
    other.add_review(review(0, confidence=0.1 + 0.2, seconds=1 / 3))
    other.add_review(review(5, verdict="wrong", score=0.0, rating="again"))
    other.undo_review("review-0000")
    other.bookmark("sums/which", False, START - timedelta(days=1))
    other.bookmark("sums/other", True, START + timedelta(days=1))
    other.save_interview(interview(5, more=1))
    first, second = through_json(one), through_json(other)
    one.import_(second)
    other.import_(first)
    assert one.export() == other.export()
    assert [each.id for each in one.reviews()] == ["review-0001", "review-0005"]
    assert one.bookmarks() == ["sums/which", "sums/other"]
    assert one.cards() == other.cards() and one.cards()["sums/which"].num_reviews == 1


def test_what_was_undone_stays_undone(store: Opened) -> None:
    one, other = store("one"), store("other")
    one.add_review(review())
    kept = through_json(one)
    one.undo_review("review-0000")
    one.import_(kept)
    assert one.reviews() == ()
    other.import_(through_json(one))
    other.import_(kept)
    assert other.reviews() == () and other.cards() == {}


def test_the_later_state_of_an_interview_wins(store: Opened) -> None:
    one, other = store("one"), store("other")
    one.save_interview(interview(9))
    other.save_interview(interview(3))
    assert one.import_(through_json(other)).interviews == 0
    assert other.import_(through_json(one)).interviews == 1
    assert one.interviews() == other.interviews() == (interview(9),)


def changed(**places: Any) -> Callable[[Any], None]:
    """Sets a value at a path such as reviews__0__score."""

    def change(document: Any) -> None:
        for path, value in places.items():
            *parents, last = (int(step) if step.isdigit() else step for step in path.split("__"))
            inside = document
            for step in parents:
                inside = inside[step]
            inside[last] = value

    return change


def without(*path: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        del document[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (changed(schema=2), "schema 2, and this shardkit knows up to 1"),
        (changed(schema="1"), "no export"),
        (changed(schema=0), "schema: expected 1 to 1, got 0"),
        (changed(schema=-1), "schema: expected 1 to 1, got -1"),
        (without("schema"), "no export"),
        (without("bookmarks"), "missing key 'bookmarks'"),
        (changed(bookmark=[]), r"unknown key 'bookmark' \(did you mean 'bookmarks'\?\)"),
        (changed(reviews={}), "reviews: expected a list, got a mapping"),
        (changed(reviews__1=3), r"reviews\[1\]: expected an object, got the number 3"),
        (without("reviews", 1, "seed"), r"reviews\[1\]: missing key 'seed'"),
        (changed(reviews__0__mood="fine"), r"reviews\[0\]: unknown key 'mood'"),
        (changed(reviews__0__score=1.5), r"reviews\[0\]: score: expected 0 to 1, got 1.5"),
        (changed(reviews__0__score=None), r"reviews\[0\]\.score: expected a number, got nothing"),
        (changed(reviews__0__level=True), r"reviews\[0\]\.level: expected a whole number, got true"),
        (changed(reviews__0__level=10**30), r"reviews\[0\]: level: expected"),
        (changed(reviews__0__level=5), r"reviews\[0\]\.level: expected one of 1, 2, 3, 4, got 5"),
        (changed(reviews__0__level=0), r"reviews\[0\]\.level: expected one of 1, 2, 3, 4, got 0"),
        (changed(reviews__0__kind="essay"), r"reviews\[0\]\.kind: expected one of code, .*, got 'essay'"),
        (changed(reviews__0__seconds=10**400), r"reviews\[0\]\.seconds: 1000.* is too large a number"),
        (changed(reviews__0__score=10**400), r"reviews\[0\]\.score: 1000.* is too large a number"),
        *(
            (changed(**{place: moment}), rf"{where}: expected a time from 1970 to 2200, got '{moment[:4]}")
            for place, where in (
                ("reviews__1__asked_at", r"reviews\[1\]\.asked_at"),
                ("bookmarks__0__changed_at", r"bookmarks\[0\]\.changed_at"),
                ("interviews__0__updated", r"interviews\[0\]\.updated"),
                ("interviews__0__finished", r"interviews\[0\]\.finished"),
            )
            for moment in (
                "9999-12-31T23:59:59+00:00",
                "9999-12-31T23:59:59-14:00",
                "0001-01-01T00:00:00+14:00",
                "1969-12-31T23:59:59+00:00",
            )
        ),
        (changed(interviews__0__plan={"a": ["\ud800"]}), r"interviews\[0\]\.plan: half of a character"),
        (changed(reviews__0__kind="\ud800"), r"reviews\[0\]\.kind: half of a character"),
        (changed(reviews__0__verdict="unmarked"), r"reviews\[0\]: verdict: expected one of right"),
        (changed(reviews__0__asked_at="yesterday"), r"reviews\[0\]\.asked_at: expected a time"),
        (changed(reviews__0__asked_at="2026-03-02T09:30:00"), r"reviews\[0\]\.asked_at: expected a time"),
        (changed(reviews__0__asked_at=17), r"reviews\[0\]\.asked_at: expected a time"),
        (changed(undone__0=5), r"undone\[0\]: expected a text"),
        (changed(bookmarks__0__is_on=1), r"bookmarks\[0\]\.is_on: expected true or false"),
        (changed(interviews__0__plan=[]), r"interviews\[0\]\.plan: expected an object, got a list"),
        (changed(interviews__0__finished=1), r"interviews\[0\]\.finished: expected a time"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_document_that_is_wrong_is_refused_whole(store: Opened, change: Callable[[Any], None], says: str) -> None:
    document = through_json(filled(store("one")))
    change(document)
    other = store("other")
    other.add_review(review(7))
    before = other.export()
    with pytest.raises(KitError, match=says):
        other.import_(copy.deepcopy(document))
    assert other.export() == before


@pytest.mark.parametrize("document", [None, [], "export", 1, {}, {"schema": True}], ids=repr)
def test_what_is_no_export_is_refused(store: Opened, document: object) -> None:
    with pytest.raises(KitError, match="no export"):
        store("one").import_(document)


def test_an_import_that_fails_halfway_leaves_nothing(store: Opened) -> None:
    document, other = through_json(filled(store("one"))), store("other")
    pages = other._connection.execute("PRAGMA page_count").fetchone()[0]
    other._connection.execute(f"PRAGMA max_page_count = {pages}")
    one = document["reviews"][0]
    document["reviews"] = [{**one, "id": f"id-{number}"} for number in range(2000)]
    with pytest.raises(KitError, match="full"):
        other.import_(document)
    assert other.reviews() == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            changed(reviews__2__score=0.5),
            r"reviews\[2\]: review review-0002 is known with another score: 1\.0 here, 0\.5",
        ),
        (
            changed(reviews__0__asked_at="2026-03-02T09:30:01+00:00"),
            r"reviews\[0\]: review review-0000 .* asked_at: 2026",
        ),
    ],
    ids=["score", "asked_at"],
)
def test_a_review_that_is_known_with_another_content_is_refused(
    store: Opened, change: Callable[[Any], None], says: str
) -> None:
    one = filled(store("one"))
    document, before = through_json(one), one.export()
    document["reviews"].insert(0, {**document["reviews"][0], "id": "new"})
    document["reviews"].append(document["reviews"].pop(0))
    change(document)
    with pytest.raises(KitError, match=says):
        one.import_(document)
    assert one.export() == before


def test_a_document_that_contradicts_itself_is_refused(store: Opened) -> None:
    document, other = through_json(filled(store("one"))), store("other")
    document["reviews"].append({**document["reviews"][0], "verdict": "wrong", "score": 0.0})
    with pytest.raises(KitError, match=r"reviews\[3\]: review review-0000 is known with another verdict"):
        other.import_(document)
    assert other.reviews() == ()


def test_the_times_at_the_edges_are_taken_and_reckoned_with(store: Opened) -> None:
    document, other = through_json(filled(store("one"))), store("other")
    document["reviews"][0]["asked_at"] = "1970-01-01T00:00:00.000000+00:00"
    document["reviews"][2]["asked_at"] = "2200-01-01T00:00:00.000000+00:00"
    document["undone"] = []
    other.import_(document)
    assert other.cards()["sums/which"].num_reviews == 2 and other.export()["reviews"][0] == document["reviews"][0]
