"""What reviews add up to: days in a row, strengths by topic, and how well confidence foretells the score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from kit.progress.records import Review

NUM_BINS = 5


@dataclass(frozen=True, slots=True)
class Streak:
    """Days in a row with an answer, up to today, or to yesterday while today has none yet."""

    days: int
    longest: int
    is_today_done: bool


@dataclass(frozen=True, slots=True)
class TopicStrength:
    """`score`, 0 to 1: the mean over the latest answers to each of the `answered` questions; None without any."""

    topic: str
    answered: int
    num_questions: int
    score: float | None


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers whose confidence lay from `low` to below `high` (the last bin: to 1, included)."""

    low: float
    high: float
    count: int
    confidence: float
    score: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """`brier`: the mean of (confidence - score) squared; 0 is perfect, 0.25 is always saying 50%.

    Bins without answers are left out.
    """

    count: int
    brier: float
    confidence: float
    score: float
    bins: tuple[Bin, ...]


def day_of(moment: datetime, zone: tzinfo | None = None) -> date:
    """`zone`: the machine's own, with its summer time, unless given."""
    return moment.astimezone(zone).date()


def per_day(reviews: Iterable[Review], zone: tzinfo | None = None) -> dict[date, int]:
    """How many answers each day had, for days that had any."""
    counts: dict[date, int] = {}
    for review in reviews:
        if review.is_answer:
            day = day_of(review.asked_at, zone)
            counts[day] = counts.get(day, 0) + 1
    return counts


def streak(reviews: Iterable[Review], now: datetime, zone: tzinfo | None = None) -> Streak:
    days, today = set(per_day(reviews, zone)), day_of(now, zone)
    last = today if today in days else today - timedelta(days=1)
    ends = [day for day in days if day + timedelta(days=1) not in days]
    return Streak(run_until(last, days), max((run_until(day, days) for day in ends), default=0), today in days)


def run_until(last: date, days: set[date]) -> int:
    count = 0
    while last - timedelta(days=count) in days:
        count += 1
    return count


def latest_answers(reviews: Iterable[Review]) -> dict[str, Review]:
    """Of each question that was answered, not skipped; `reviews` are the oldest first."""
    return {review.question_id: review for review in reviews if review.is_answer}


def strengths(reviews: Iterable[Review], question_ids: Iterable[str]) -> list[TopicStrength]:
    """For each topic of these questions, in the order of topics; reviews of others are left out."""
    latest = latest_answers(reviews)
    ids: dict[str, list[str]] = {}
    for question_id in sorted(question_ids):
        ids.setdefault(question_id.split("/")[0], []).append(question_id)
    found = []
    for topic, of_topic in ids.items():
        scores = [latest[question_id].score for question_id in of_topic if question_id in latest]
        found.append(TopicStrength(topic, len(scores), len(of_topic), mean(scores) if scores else None))
    return found


def calibration(reviews: Iterable[Review], num_bins: int = NUM_BINS) -> Calibration | None:
    """Over every answer with a confidence; None where there is none."""
    pairs = [(r.confidence, r.score) for r in reviews if r.is_answer and r.confidence is not None]
    if not pairs:
        return None
    binned: dict[int, list[tuple[float, float]]] = {}
    for pair in pairs:
        binned.setdefault(min(int(pair[0] * num_bins), num_bins - 1), []).append(pair)
    bins = tuple(
        Bin(number / num_bins, (number + 1) / num_bins, len(inside), *map(mean, zip(*inside, strict=True)))
        for number, inside in sorted(binned.items())
    )
    brier = mean([(confidence - score) ** 2 for confidence, score in pairs])
    confidence, score = map(mean, zip(*pairs, strict=True))
    return Calibration(len(pairs), brier, confidence, score, bins)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
