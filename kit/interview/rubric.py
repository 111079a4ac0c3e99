"""What an interviewer holds an answer against: points with weights, what is right, and red flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from kit.bank.draw import options_of

if TYPE_CHECKING:
    from kit.bank.draw import Draw
    from kit.bank.layout import Bank
    from kit.bank.schema import Language, Question

Both = Mapping[Literal["en", "zh"], str]

RIGHT_ANSWER: Both = {"en": "Comes to the right answer.", "zh": "得出正确答案。"}
REASON: Both = {"en": "Gives the reason, as the explanation has it.", "zh": "能像解析那样讲清理由。"}
PROOFS: dict[str, Both] = {
    "values": {"en": "Values: the same numbers as without sharding.", "zh": "数值：与不切分时的结果一致。"},
    "traffic": {"en": "Traffic: no more bytes than the algorithm costs.", "zh": "通信量：不超过算法本身的开销。"},
    "memory": {"en": "Memory: each rank holds its share and no more.", "zh": "内存：每个 rank 只持有自己的一份。"},
    "time": {"en": "Time: the schedule takes as long as it should.", "zh": "时间：调度耗时符合预期。"},
    "discipline": {
        "en": "Discipline: no hang, no race, nothing left behind.",
        "zh": "规范：不卡死、无竞争、不留副作用。",
    },
}  # fmt: skip

MISSED: Both = {"en": "Misses, even when asked: {point}", "zh": "追问后仍未提到：{point}"}
BELIEVES: Both = {"en": "Believes \u201c{option}\u201d. {why}", "zh": "误以为“{option}”。{why}"}
REVERSED: Both = {
    "en": "Puts \u201c{later}\u201d before \u201c{earlier}\u201d.",
    "zh": "把“{later}”排在“{earlier}”之前。",
}
CONVENTION: Both = {
    "en": "Computes without regard to the convention: {convention}",
    "zh": "计算时没有遵守口径：{convention}",
}
UNEXPLAINED: Both = {"en": "Names a figure and cannot derive it: {working}", "zh": "报出数字却推导不出来：{working}"}

HEAVY = 2  # a point of this weight is one that a whole answer cannot do without


@dataclass(frozen=True, slots=True)
class Point:
    """`text` is Markdown."""

    text: str
    weight: int


def points_of(draw: Draw, language: Language) -> tuple[Point, ...]:
    """What is scored: the rubric of an answer in words, the proofs of code, else the answer and its reason."""
    question = draw.question
    if question.kind == "open":
        return tuple(Point(draw.text(point.point, language), point.weight) for point in question.rubric)
    if question.kind == "code":
        return tuple(Point(PROOFS[proof][language], points) for proof, points in question.points.items())
    return (Point(RIGHT_ANSWER[language], 2), Point(REASON[language], 1))


def weights_of(question: Question) -> tuple[int, ...]:
    if question.kind == "open":
        return tuple(point.weight for point in question.rubric)
    return tuple(question.points.values()) if question.kind == "code" else (2, 1)


def red_flags(draw: Draw, bank: Bank, language: Language) -> tuple[str, ...]:
    """Markdown; what would make an interviewer doubt. Drawn from wrong options, heavy points, mutants and orders.

    A code question's come from its mutants, and there are none where the bank was given out without answers.
    """
    question = draw.question
    if options_of(question):
        return tuple(
            BELIEVES[language].format(
                option=in_one_line(draw.text(option.text, language)).rstrip(".。"),
                why=in_one_line(draw.text(option.why, language)),
            )
            for option in options_of(question)
            if not option.correct
        )
    if question.kind == "open":
        heaviest = max(point.weight for point in question.rubric)
        return tuple(
            MISSED[language].format(point=in_one_line(draw.text(point.point, language)))
            for point in question.rubric
            if point.weight >= min(HEAVY, heaviest)
        )
    if question.kind == "order":
        items = [in_one_line(draw.text(item, language)) for item in question.items]
        return tuple(REVERSED[language].format(earlier=earlier, later=later) for earlier, later in pairwise(items))
    if question.kind == "number":
        return (
            CONVENTION[language].format(convention=in_one_line(draw.text(question.convention, language))),
            UNEXPLAINED[language].format(working=in_one_line(draw.working(language))),
        )
    if not bank.mutants(question.id).is_file():
        return ()
    from kit.bank.mutants import read_mutants

    return tuple(mutant.what.get(language) for mutant in read_mutants(bank, question.id))


def right_answer(draw: Draw, language: Language) -> tuple[str, ...]:
    """Markdown, an entry for each right option or item, in their order; none for open and code questions."""
    question = draw.question
    if options_of(question):
        return tuple(draw.text(option.text, language) for option in options_of(question) if option.correct)
    if question.kind == "order":
        return tuple(draw.text(item, language) for item in question.items)
    return (str(draw.values()["answer"]),) if question.kind == "number" else ()


def in_one_line(text: str) -> str:
    """Chinese lines join without a space."""
    parts = text.split()
    joined = parts[0] if parts else ""
    for part in parts[1:]:
        is_wide = joined[-1] > "\u2e80" and part[0] > "\u2e80"
        joined += part if is_wide else f" {part}"
    return joined
