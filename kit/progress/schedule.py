"""When to ask again: FSRS (the library `fsrs`, its default parameters), replayed over all reviews of a question."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time, timedelta, timezone, tzinfo
from functools import cache
from typing import TYPE_CHECKING

from kit.progress.records import Card, Review

if TYPE_CHECKING:
    import fsrs

RETENTION = 0.9  # asked again when so many are still expected to know it
LONGEST_DAYS = 365


@cache
def scheduler() -> fsrs.Scheduler:
    """Without FSRS's steps of minutes, since the answer has just been explained at length, and without its random days,
    so that a file gives the same dates on every machine."""
    import fsrs

    return fsrs.Scheduler(
        desired_retention=RETENTION,
        learning_steps=(),
        relearning_steps=(),
        maximum_interval=LONGEST_DAYS,
        enable_fuzzing=False,
    )


def card_after(reviews: Iterable[Review]) -> Card | None:
    """What the reviews of one question, the oldest first, add up to; None where none of them moves its date."""
    import fsrs

    ratings = {"again": fsrs.Rating.Again, "hard": fsrs.Rating.Hard, "good": fsrs.Rating.Good, "easy": fsrs.Rating.Easy}
    card, question_id, count = fsrs.Card(card_id=0), "", 0
    for review in reviews:
        if review.rating is not None and review.moves_the_date:
            moment = review.asked_at.astimezone(timezone.utc)
            card, _ = scheduler().review_card(card, ratings[review.rating], moment)
            question_id, count = review.question_id, count + 1
    if card.last_review is None or card.stability is None or card.difficulty is None:
        return None
    return Card(question_id, card.due, card.stability, card.difficulty, card.state.name, card.last_review, count)


def end_of_day(now: datetime, zone: tzinfo | None = None) -> datetime:
    """Midnight after `now`: what is due later today is asked in the morning. `zone`: the machine's own unless given."""
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, time(), zone).astimezone(timezone.utc)
