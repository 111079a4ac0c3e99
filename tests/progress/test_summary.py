"""Streaks, strengths and calibration."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest

from kit.progress.records import Review
from kit.progress.summary import Streak, calibration, latest_answers, per_day, streak, strengths
from tests.progress.made import START, review

UTC = timezone.utc


def on(*days: int) -> list[Review]:
    return [review(day) for day in days]


@pytest.mark.parametrize(
    ("days", "today", "expected"),
    [
        ((), 0, Streak(0, 0, False)),
        ((0,), 0, Streak(1, 1, True)),
        ((0,), 1, Streak(1, 1, False)),  # today is not over
        ((0,), 2, Streak(0, 1, False)),
        ((0, 1, 2, 4, 5), 5, Streak(2, 3, True)),
        ((0, 1, 2, 4, 5), 7, Streak(0, 3, False)),
        ((0, 1, 2, 3), 4, Streak(4, 4, False)),
    ],
)
def test_days_in_a_row(days: tuple[int, ...], today: int, expected: Streak) -> None:
    assert streak(on(*days), START + timedelta(days=today), UTC) == expected


def test_skipping_all_day_is_no_day() -> None:
    skipped = review(0, verdict="skipped", score=0.0, rating=None)
    assert streak([skipped], START, UTC) == Streak(0, 0, False)
    assert per_day([skipped], UTC) == {}


def test_a_day_is_that_of_the_zone() -> None:
    late = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    answers = [review(0, asked_at=late), review(1, asked_at=late + timedelta(hours=1))]
    assert per_day(answers, UTC) == {date(2026, 3, 2): 1, date(2026, 3, 3): 1}
    assert per_day(answers, timezone(timedelta(hours=8))) == {date(2026, 3, 3): 2}
    assert streak(answers, late, timezone(timedelta(hours=8))).days == 1


def test_strength_is_the_mean_of_the_latest_answers() -> None:
    reviews = [
        review(0, "a/one", verdict="wrong", score=0.0),
        review(1, "a/one"),
        review(2, "a/one", verdict="skipped", score=0.0),
        review(1, "a/two", verdict="marked", score=0.5),
        review(1, "gone/three"),
    ]
    first, second = strengths(reviews, ["b/x", "a/two", "a/one", "a/three"])
    assert (first.topic, first.answered, first.num_questions, first.score) == ("a", 2, 3, 0.75)
    assert (second.topic, second.answered, second.num_questions, second.score) == ("b", 0, 1, None)
    assert latest_answers(reviews)["a/one"].id == "review-0001"


def sure(confidence: float | None, score: float) -> Review:
    return review(0, confidence=confidence, score=score)


def test_calibration_compares_confidence_with_the_score() -> None:
    found = calibration([sure(0.9, 1.0), sure(0.9, 0.0), sure(1.0, 1.0), sure(0.2, 0.0), sure(None, 0.0)])
    assert found is not None
    assert found.count == 4
    assert found.brier == pytest.approx((0.01 + 0.81 + 0 + 0.04) / 4)
    assert (found.confidence, found.score) == (pytest.approx(0.75), 0.5)
    low, high = found.bins
    assert (low.low, low.high, low.count, low.confidence, low.score) == (0.2, 0.4, 1, 0.2, 0.0)
    assert (high.low, high.high, high.count) == (0.8, 1.0, 3)
    assert (high.confidence, high.score) == (pytest.approx(2.8 / 3), pytest.approx(2 / 3))


def test_always_saying_half_gives_a_quarter() -> None:
    found = calibration([sure(0.5, 1.0), sure(0.5, 0.0)])
    assert found is not None and found.brier == 0.25


def test_without_a_confidence_there_is_no_calibration() -> None:
    assert calibration([sure(None, 1.0)]) is None
    assert calibration([review(0, verdict="skipped", score=0.0, rating=None, confidence=0.5)]) is None


@pytest.mark.parametrize("hundredths", range(101))
def test_every_confidence_has_its_bin(hundredths: int) -> None:
    found = calibration([sure(hundredths / 100, 1.0)])
    assert found is not None
    (only,) = found.bins
    assert only.low <= hundredths / 100 + 1e-12 and (hundredths / 100 < only.high or only.high == 1.0)
