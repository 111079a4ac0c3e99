"""Ratings and dates, and that FSRS gives the same ones every time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from kit.progress.rating import rate
from kit.progress.records import Card, Rating, Review
from kit.progress.schedule import card_after, end_of_day
from tests.progress.made import START, review


@pytest.mark.parametrize(
    ("verdict", "score", "num_hints", "confidence", "rating"),
    [
        ("right", 1.0, 0, None, "good"),
        ("right", 1.0, 0, 0.9, "good"),
        ("right", 1.0, 0, 0.95, "easy"),
        ("right", 1.0, 1, 1.0, "hard"),
        ("wrong", 0.0, 0, 1.0, "again"),
        ("wrong", 0.0, 2, None, "again"),
        ("skipped", 0.0, 0, None, None),
        ("skipped", 0.0, 2, 1.0, None),
        ("marked", 1.0, 0, None, "good"),
        ("marked", 0.9, 0, None, "good"),
        ("marked", 0.89, 0, None, "hard"),
        ("marked", 0.6, 0, None, "hard"),
        ("marked", 0.59, 0, 1.0, "again"),
        ("marked", 1.0, 1, None, "hard"),
        ("marked", 1.0, 0, 1.0, "easy"),
    ],
)
def test_what_an_answer_is_rated(
    verdict: str, score: float, num_hints: int, confidence: float | None, rating: Rating | None
) -> None:
    assert rate(verdict, score, num_hints, confidence) == rating  # type: ignore[arg-type]


def learned(ratings: str) -> tuple[list[int], Card]:
    """The intervals in days when each review comes on the day that it is due. `ag` is again, then good."""
    names: dict[str, Rating] = {"a": "again", "h": "hard", "g": "good", "e": "easy"}
    reviews: list[Review] = []
    moment, days = START, []
    for number, letter in enumerate(ratings):
        reviews.append(review(number, asked_at=moment, rating=names[letter]))
        card = card_after(reviews)
        assert card is not None and card.last_review == moment and card.num_reviews == number + 1
        days.append((card.due - moment).days)
        moment = card.due
    return days, card


def test_intervals_are_whole_days_and_grow_with_success() -> None:
    """What fsrs 6.3 gives with its default parameters, no steps of minutes and no random days."""
    assert learned("gggg")[0] == [2, 11, 46, 163]
    assert learned("aggg")[0] == [1, 2, 6, 17]
    assert learned("hhhh")[0] == [1, 3, 7, 12]
    assert learned("gaag")[0] == [2, 1, 1, 1]


def test_nothing_is_put_off_for_more_than_a_year() -> None:
    assert learned("eeee")[0] == [8, 66, 365, 365]


def test_the_same_reviews_give_the_same_card() -> None:
    assert len({learned("ghage")[1] for _ in range(5)}) == 1


def test_a_failure_makes_a_question_harder() -> None:
    assert learned("ggg")[1].difficulty < learned("gga")[1].difficulty
    assert learned("ggg")[1].stability > learned("gga")[1].stability


def test_cramming_and_skipping_move_no_date() -> None:
    alone = card_after([review(0), review(3)])
    between = [
        review(0),
        review(1, mode="cram", verdict="wrong", rating="again", score=0.0),
        review(2, verdict="skipped", rating=None, score=0.0),
        review(3),
    ]
    assert card_after(between) == alone
    assert card_after(between[1:3]) is None
    assert card_after([]) is None


def test_other_modes_move_the_date_too() -> None:
    assert card_after([review(0, mode="grade")]) == card_after([review(0)])


def test_a_day_ends_at_the_midnight_of_its_zone() -> None:
    evening = datetime(2026, 3, 2, 21, 30, tzinfo=timezone.utc)
    assert end_of_day(evening, timezone.utc) == datetime(2026, 3, 3, tzinfo=timezone.utc)
    assert end_of_day(evening, timezone(timedelta(hours=8))) == datetime(2026, 3, 3, 16, tzinfo=timezone.utc)
    berlin = ZoneInfo("Europe/Berlin")  # on the day before its clocks go forward, at 2 in the night
    assert end_of_day(datetime(2026, 3, 28, 23, 30, tzinfo=timezone.utc), berlin).hour == 22
    assert end_of_day(datetime(2026, 3, 28, 12, tzinfo=timezone.utc), berlin).hour == 23
