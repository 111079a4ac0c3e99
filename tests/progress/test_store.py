"""The progress file: what is written is there, and comes back as it was."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.errors import KitError
from kit.progress.opening import progress_path
from kit.progress.records import InterviewRecord, Review
from kit.progress.store import Store, open_store
from tests.progress.made import START, review


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "one" / "progress.sqlite3")


def interview(number: int = 0, **changes: Any) -> InterviewRecord:
    values: dict[str, Any] = {
        "id": f"interview-{number}",
        "plan": {"parts": [{"kind": "design", "minutes": 10.5}], "中": None},
        "state": {"part": number},
        "started": START,
        "updated": START + timedelta(minutes=number),
    }
    return InterviewRecord(**{**values, **changes})


def test_the_folder_is_the_user_s_own_unless_the_environment_names_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHARDKIT_DATA", str(tmp_path / "x"))
    assert progress_path() == tmp_path / "x" / "progress.sqlite3"
    monkeypatch.delenv("SHARDKIT_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("HOME", str(tmp_path))
    path = progress_path()
    assert path.is_relative_to(tmp_path) and path.parent.name == "shardkit" and path.name == "progress.sqlite3"
    assert not path.parent.exists()


def test_reviews_come_back_as_they_were_the_oldest_first(store: Store) -> None:
    reviews = [
        review(3, verdict="skipped", score=0.0, rating=None, seed=None),
        review(1, verdict="marked", score=5 / 7, rating="hard", num_hints=2, confidence=0.3, mode="cram"),
        review(2, question_id="sums/other", seconds=0.1 + 0.2, seed=2**63 - 1),
    ]
    for one in reviews:
        store.add_review(one)
    store.close()
    store = open_store(store.path)
    assert store.reviews() == (reviews[1], reviews[2], reviews[0])
    assert store.reviews("sums/other") == (reviews[2],)
    assert store.reviews(since=reviews[2].asked_at) == (reviews[2], reviews[0])
    assert store.reviews("sums/which", since=reviews[2].asked_at) == (reviews[0],)


def test_times_of_other_zones_are_compared_as_moments(store: Store) -> None:
    east = timezone(timedelta(hours=9))
    store.add_review(review(0, asked_at=datetime(2026, 3, 2, 8, tzinfo=east)))  # 23:00 UTC of the day before
    store.add_review(review(1, asked_at=datetime(2026, 3, 1, 23, 30, tzinfo=timezone.utc)))
    assert [one.id for one in store.reviews()] == ["review-0000", "review-0001"]
    assert [one.id for one in store.reviews(since=datetime(2026, 3, 2, 8, 10, tzinfo=east))] == ["review-0001"]


@pytest.mark.parametrize(
    "changes",
    [
        {"asked_at": datetime(2026, 3, 2)},
        {"score": 1.01},
        {"score": float("nan")},
        {"confidence": -0.1},
        {"num_hints": -1},
        {"seconds": float("inf")},
        {"seed": 2**63},
        {"verdict": "unmarked"},
        {"rating": "fine"},
        {"mode": ""},
        {"id": ""},
    ],
    ids=str,
)
def test_what_cannot_be_is_no_review(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="got"):
        review(**changes)


def test_the_same_review_twice_is_one_and_another_of_its_id_is_refused(store: Store) -> None:
    store.add_review(review())
    store.add_review(review())
    with pytest.raises(ValueError, match="another review review-0000"):
        store.add_review(review(score=0.5))
    assert store.reviews() == (review(),)


def test_an_undone_review_counts_nowhere(store: Store) -> None:
    store.add_review(review(0))
    before = store.cards()
    store.add_review(review(2, verdict="wrong", rating="again", score=0.0))
    assert store.cards() != before
    store.undo_review("review-0002")
    assert store.reviews() == (review(0),) and store.reviews("sums/which") == (review(0),)
    assert store.cards() == before
    store.undo_review("review-0000")
    assert store.cards() == {} and store.due(START + timedelta(days=99)) == []


def test_a_question_is_due_when_its_card_says_so_the_longest_overdue_first(store: Store) -> None:
    store.add_review(review(0, "a/soon"))
    store.add_review(review(1, "a/later", rating="easy"))
    store.add_review(review(0, "a/skipped", id="s", verdict="skipped", score=0.0, rating=None))
    store.add_review(review(0, "a/crammed", id="c", mode="cram"))
    cards = store.cards()
    assert list(cards) == ["a/soon", "a/later"]
    moment = cards["a/soon"].due
    assert store.due(moment - timedelta(microseconds=1)) == []
    assert store.due(moment) == ["a/soon"]
    assert store.due(cards["a/later"].due) == ["a/soon", "a/later"]


def test_a_card_follows_every_new_review(store: Store) -> None:
    store.add_review(review(0))
    first = store.cards()["sums/which"]
    store.add_review(review(2))
    second = store.cards()["sums/which"]
    assert (first.num_reviews, second.num_reviews) == (1, 2) and second.due > first.due
    store.add_review(review(1, verdict="wrong", rating="again", score=0.0))  # brought from elsewhere, in between
    assert store.cards()["sums/which"].num_reviews == 3
    assert store.cards() == open_store(store.path).cards()


def test_bookmarks_are_taken_away_again(store: Store) -> None:
    store.bookmark("a/b", True, START)
    store.bookmark("a/a", True, START + timedelta(seconds=1))
    assert store.bookmarks() == ["a/b", "a/a"]
    store.bookmark("a/b", False, START + timedelta(seconds=2))
    assert store.bookmarks() == ["a/a"]


def test_an_interview_is_saved_again_and_again(store: Store) -> None:
    store.save_interview(interview(1))
    store.save_interview(interview(0))
    store.save_interview(interview(1, state={"part": 9}, finished=START))
    assert store.interviews() == (interview(0), interview(1, state={"part": 9}, finished=START))


def test_what_is_no_json_is_no_interview(store: Store) -> None:
    with pytest.raises(ValueError, match="JSON"):
        store.save_interview(interview(state={"score": float("nan")}))
    assert store.interviews() == ()


def test_a_folder_that_cannot_be_made_is_the_user_s_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(KitError, match="file") as caught:
        open_store(tmp_path / "file" / "progress.sqlite3")
    assert "SHARDKIT_DATA" in str(caught.value.hint)


TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(timezone.utc))
REVIEWS = st.builds(
    Review,
    id=st.uuids().map(str),
    question_id=st.sampled_from(["a/b", "a/c", "中/文"]),
    kind=st.sampled_from(["choice", "open"]),
    topic=st.text(st.characters(codec="utf-8"), max_size=3),
    level=st.integers(1, 4),
    asked_at=TIMES,
    verdict=st.sampled_from(["right", "wrong", "skipped", "marked"]),
    score=st.floats(0, 1),
    rating=st.sampled_from([None, "again", "hard", "good", "easy"]),
    num_hints=st.integers(0, 5),
    seconds=st.floats(0, 1e9),
    confidence=st.none() | st.floats(0, 1),
    seed=st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
    mode=st.sampled_from(["quiz", "cram", "grade"]),
)


@given(st.lists(REVIEWS, max_size=8, unique_by=lambda one: one.id))
def test_any_review_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, reviews: list[Review]) -> None:
    with open_store(tmp_path_factory.mktemp("any") / "progress.sqlite3") as store:
        for one in reviews:
            store.add_review(one)
        assert store.reviews() == tuple(sorted(reviews, key=lambda one: (one.asked_at, one.id)))
        assert set(store.cards()) == {one.question_id for one in reviews if one.moves_the_date}


def test_an_interview_is_not_written_over_one_that_somebody_else_has_saved(tmp_path: Path) -> None:
    moments = [datetime(2026, 12, 2, 9, minute, tzinfo=timezone.utc) for minute in range(4)]
    records = [InterviewRecord("one", {}, {"place": number}, moments[0], now) for number, now in enumerate(moments)]
    with open_store(tmp_path / "progress.sqlite3") as store, open_store(tmp_path / "progress.sqlite3") as other:
        store.save_interview(records[0], over=moments[3])  # nothing was there
        store.save_interview(records[1], over=moments[0])
        other.save_interview(records[2])
        with pytest.raises(KitError, match="goes on in another window"):
            store.save_interview(records[3], over=moments[1])
        assert [kept.state for kept in store.interviews()] == [{"place": 2}]
        store.save_interview(records[3], over=moments[2])
        assert [kept.state for kept in other.interviews()] == [{"place": 3}]
