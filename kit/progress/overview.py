"""All that `shardkit progress` tells, from what is kept and the bank's questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from kit.progress.records import Card, Review
from kit.progress.schedule import end_of_day
from kit.progress.summary import (
    Calibration,
    Streak,
    TopicStrength,
    calibration,
    day_of,
    latest_answers,
    per_day,
    streak,
    strengths,
)

NUM_DAYS = 14
SOON_DAYS = 7


@dataclass(frozen=True, slots=True)
class Overview:
    """`due`: until the end of today, the longest overdue first; `soon`: the days after it up to a week.

    `days`: answers of each of the last two weeks' days, the oldest first. `due_in` counts `due` by topic.
    """

    streak: Streak
    num_answers: int
    num_answered: int
    num_questions: int
    due: tuple[str, ...]
    soon: tuple[str, ...]
    bookmarks: tuple[str, ...]
    days: tuple[tuple[date, int], ...]
    topics: tuple[TopicStrength, ...]
    calibration: Calibration | None

    @property
    def due_in(self) -> dict[str, int]:
        topics = [question_id.split("/")[0] for question_id in self.due]
        return {topic: topics.count(topic) for topic in topics}


def overview(
    reviews: Sequence[Review],
    cards: Mapping[str, Card],
    bookmarks: Iterable[str],
    question_ids: Iterable[str],
    now: datetime,
    zone: tzinfo | None = None,
) -> Overview:
    """Of these questions alone; what was kept of others is left out."""
    ids = frozenset(question_ids)
    ours = [review for review in reviews if review.question_id in ids]
    by_date = sorted((card.due, card.question_id) for card in cards.values() if card.question_id in ids)
    tonight = end_of_day(now, zone)
    in_a_week = tonight + timedelta(days=SOON_DAYS)
    counts, today = per_day(ours, zone), day_of(now, zone)
    days = [today - timedelta(days=back) for back in reversed(range(NUM_DAYS))]
    return Overview(
        streak=streak(ours, now, zone),
        num_answers=sum(review.is_answer for review in ours),
        num_answered=len(latest_answers(ours)),
        num_questions=len(ids),
        due=tuple(question_id for due, question_id in by_date if due < tonight),
        soon=tuple(question_id for due, question_id in by_date if tonight <= due < in_a_week),
        bookmarks=tuple(question_id for question_id in bookmarks if question_id in ids),
        days=tuple((day, counts.get(day, 0)) for day in days),
        topics=tuple(strengths(ours, ids)),
        calibration=calibration(ours),
    )
