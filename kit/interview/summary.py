"""The figures of a scorecard: by topic, by part, and what to study next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kit.bank.load import Header

if TYPE_CHECKING:
    from kit.interview.record import ItemRecord, Record

ENOUGH = 0.7  # a lower score is a reason to study
MOST_TO_STUDY = 8

Reason = Literal["before", "again", "topic"]


@dataclass(frozen=True, slots=True)
class Share:
    """`score`: mean over the questions that were asked, 0 to 1; None where none was."""

    name: str
    num_asked: int
    score: float | None


@dataclass(frozen=True, slots=True)
class Advice:
    """A question to study: before another that went badly (`of`), because it went badly itself (`score`), or for its
    topic."""

    question_id: str
    reason: Reason
    of: str = ""
    score: float = 0.0


def is_asked(item: ItemRecord) -> bool:
    return item.verdict not in ("", "unmarked")


def items_of(record: Record) -> tuple[ItemRecord, ...]:
    return tuple(item for part in record.parts for item in part.items)


def share(name: str, items: Iterable[ItemRecord]) -> Share:
    scores = [item.score for item in items if is_asked(item)]
    return Share(name, len(scores), sum(scores) / len(scores) if scores else None)


def total(record: Record) -> Share:
    return share("", items_of(record))


def by_topic(record: Record) -> tuple[Share, ...]:
    """The weakest first; topics of which nothing was asked are left out."""
    topics: dict[str, list[ItemRecord]] = {}
    for item in items_of(record):
        topics.setdefault(topic_of(item.question_id), []).append(item)
    shares = [share(topic, items) for topic, items in topics.items()]
    return tuple(sorted((each for each in shares if each.score is not None), key=lambda each: (each.score, each.name)))


def topic_of(question_id: str) -> str:
    return question_id.split("/")[0]


def to_study(record: Record, headers: Sequence[Header]) -> tuple[Advice, ...]:
    """The worst answers first, each after what it requires and was not answered well here; then the weakest topics.

    A topic gives its easiest question that was not asked.
    """
    known = {header.id: header for header in headers}
    scores = {item.question_id: item.score for item in items_of(record) if is_asked(item)}
    found: dict[str, Advice] = {}
    for question_id in sorted(scores, key=lambda name: (scores[name], name)):
        if scores[question_id] < ENOUGH:
            for required in missing_before(question_id, known, scores):
                found.setdefault(required, Advice(required, "before", of=question_id))
            found.setdefault(question_id, Advice(question_id, "again", score=scores[question_id]))
    for topic in by_topic(record):
        if topic.score is not None and topic.score < ENOUGH:
            fresh = [header for header in headers if header.topic == topic.name and header.id not in scores]
            for header in sorted(fresh, key=lambda header: (header.level, header.id)):
                if header.id not in found:
                    found[header.id] = Advice(header.id, "topic")
                    break
    return tuple(found.values())[:MOST_TO_STUDY]


def missing_before(question_id: str, known: Mapping[str, Header], scores: Mapping[str, float]) -> list[str]:
    """What the question requires, what that requires first, without what was answered well."""
    order: list[str] = []

    def add(name: str, above: frozenset[str]) -> None:
        for required in known[name].requires if name in known else ():
            if required in known and required not in above and required not in order:
                add(required, above | {required})
                if scores.get(required, 0.0) < ENOUGH:
                    order.append(required)

    add(question_id, frozenset({question_id}))
    return order


def weak_topics(record: Record) -> tuple[str, ...]:
    return tuple(topic.name for topic in by_topic(record) if topic.score is not None and topic.score < ENOUGH)
