"""A scorecard before it is a page: every text in one language, what is Markdown apart from what anybody typed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from kit.bank.draw import Draw, draw
from kit.bank.load import Header, headers, load_question
from kit.bank.mark import LETTERS, read_positions
from kit.errors import KitError
from kit.interview.card_words import WORDS, Language, say
from kit.interview.escaping import fenced
from kit.interview.record import to_json
from kit.interview.rubric import points_of, red_flags, right_answer
from kit.interview.summary import Share, by_topic, is_asked, share, to_study, total, weak_topics

if TYPE_CHECKING:
    from kit.bank.layout import Bank
    from kit.interview.record import ItemRecord, PartRecord, Plan, Record


State = Literal["met", "partly", "missed", "open"]  # open: it was not scored


@dataclass(frozen=True, slots=True)
class Row:
    """Of the topic profile or of the parts; `share` is 0 to 1, None where nothing was asked."""

    cells: tuple[str, ...]
    share: float | None
    shown: str  # the share as a person reads it


@dataclass(frozen=True, slots=True)
class Line:
    """Markdown of the bank, and what became of it; `typed` is what somebody wrote to it, `model` what is right."""

    text: str
    said: str
    state: State = "open"
    typed: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    question_id: str
    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """`given` and `notes` are as they were typed.

    `prompt` (all of the task), `picked` (the options that the answer names), `right`, `model_answer` and `explanation`
    (of what was not answered rightly) are Markdown.
    """

    title: str
    question_id: str
    facts: tuple[str, ...]
    verdict: str
    is_asked: bool
    is_touched: bool  # something was done with it; else its answer stays out of the scorecard
    score: str
    prompt: str
    given: str
    picked: tuple[str, ...]
    is_ordered: bool
    right: tuple[str, ...]
    model_answer: str
    explanation: str
    points: tuple[Line, ...]
    follow_ups: tuple[Line, ...]
    red_flags: tuple[str, ...]
    grade: tuple[str, ...]
    notes: str


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    time: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Facts are (label, value). Everything is plain text unless its class says otherwise."""

    language: Language
    title: str
    facts: tuple[tuple[str, str], ...]
    is_finished: bool
    is_answered: bool  # whether any question was asked
    overall: str  # what the interviewer says of it all
    topics: tuple[Row, ...]
    parts: tuple[Row, ...]
    study: tuple[Study, ...]
    commands: tuple[str, ...]
    sections: tuple[Section, ...]


def sheet(record: Record, bank: Bank, language: Language) -> Sheet:
    """Questions that the bank does not have are shown by their id. Raises ContentError where a header is wrong."""
    known = {header.id: header for header in headers(bank)}
    candidate = " ".join(record.candidate.split())
    return Sheet(
        language=language,
        title=say(language, "title_of", candidate=candidate) if candidate else say(language, "title"),
        facts=facts(record, language),
        is_finished=record.finished is not None,
        is_answered=total(record).score is not None,
        overall=record.overall,
        topics=tuple(
            Row((topic.name, str(topic.num_asked)), topic.score, percent(topic.score, language))
            for topic in by_topic(record)
        ),
        parts=tuple(part_row(part, language) for part in record.parts),
        study=studies(record, known, language),
        commands=tuple(f"shardkit quiz --topic {topic}" for topic in weak_topics(record)),
        sections=tuple(section(part, bank, known, language) for part in record.parts),
    )


def facts(record: Record, language: Language) -> tuple[tuple[str, str], ...]:
    overall, num_items = total(record), sum(len(part.items) for part in record.parts)
    used = sum(part.seconds_used for part in record.parts)
    planned = say(language, "minutes", minutes=f"{sum(part.minutes for part in record.parts):g}")
    score = (
        say(language, "no_score")
        if overall.score is None
        else say(language, "score_of", score=percent(overall.score, language), count=overall.num_asked, all=num_items)
    )
    return (
        (say(language, "score"), score),
        (say(language, "held"), say(language, f"role_{record.role}")),
        (say(language, "date"), date_of(record.started)),
        (say(language, "time"), say(language, "time_of", used=clock(used, language), planned=planned)),
        (
            say(language, "plan"),
            say(language, "plan_of", seed=record.plan.seed, fingerprint=fingerprint(record.plan)),
        ),
    )


def fingerprint(plan: Plan) -> str:
    """Eight hex digits that questions, their order, minutes and seeds of draws decide."""
    content = json.dumps(to_json(plan), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def date_of(moment: datetime | str) -> str:
    """As the clock on the wall had it."""
    return (datetime.fromisoformat(moment) if isinstance(moment, str) else moment).astimezone().isoformat()[:10]


def clock(seconds: float, language: Language) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return say(language, "clock", minutes=minutes, seconds=rest)


def percent(score: float | None, language: Language) -> str:
    return say(language, "not_asked") if score is None else f"{100 * score:.0f}%"


def word(language: Language, prefix: str, name: str) -> str:
    """The phrase of a name, or the name where there is none for it."""
    key = f"{prefix}{name}".replace("-", "_")
    return say(language, key) if key in WORDS else name


def part_row(part: PartRecord, language: Language) -> Row:
    whole: Share = share(part.name, part.items)
    planned = say(language, "minutes", minutes=f"{part.minutes:g}")
    asked = say(language, "asked_of", count=whole.num_asked, all=len(part.items))
    cells = (word(language, "part_", part.name), planned, clock(part.seconds_used, language), asked)
    return Row(cells, whole.score, percent(whole.score, language))


def studies(record: Record, known: Mapping[str, Header], language: Language) -> tuple[Study, ...]:
    found = []
    for advice in to_study(record, list(known.values())):
        score = percent(advice.score, language)
        reason = say(language, f"study_{advice.reason}", id=advice.of, score=score)
        title = known[advice.question_id].title[language] if advice.question_id in known else advice.question_id
        found.append(Study(advice.question_id, title, reason))
    return tuple(found)


def section(part: PartRecord, bank: Bank, known: Mapping[str, Header], language: Language) -> Section:
    planned = say(language, "minutes", minutes=f"{part.minutes:g}")
    time = say(language, "time_of", used=clock(part.seconds_used, language), planned=planned)
    answers = tuple(answer(item, bank, known, language) for item in part.items)
    return Section(word(language, "part_", part.name), time, answers)


def answer(item: ItemRecord, bank: Bank, known: Mapping[str, Header], language: Language) -> Answer:
    shown = drawn(item, bank, known)
    verdict = word(language, "", item.verdict) if item.verdict else say(language, "not_asked")
    told = [word(language, "kind_", item.kind)]
    if item.question_id in known:
        told.append(say(language, "level", level=known[item.question_id].level))
    told.append(clock(item.seconds, language))
    if item.hints:
        told.append(say(language, "hints", count=item.hints))
    return Answer(
        title=known[item.question_id].title[language] if item.question_id in known else item.question_id,
        question_id=item.question_id,
        facts=tuple(told),
        verdict=verdict,
        is_asked=is_asked(item),
        is_touched=bool(item.verdict or item.answer.strip() or item.notes.strip() or item.follow_ups),
        score=percent(item.score if is_asked(item) else None, language),
        prompt=task(shown, language) if shown else "",
        given=item.answer,
        picked=picked(item, shown, language) if shown else (),
        is_ordered=item.kind == "order",
        right=right_answer(shown, language) if shown else (),
        model_answer=model_answer(shown, language) if shown else "",
        explanation=explanation(item, shown, language) if shown else "",
        points=points(item, shown, language) if shown else (),
        follow_ups=follow_ups(item, shown, language) if shown else (),
        red_flags=flags(item, shown, bank, language) if shown else (),
        grade=grade_lines(item.grade, language),
        notes=item.notes,
    )


def drawn(item: ItemRecord, bank: Bank, known: Mapping[str, Header]) -> Draw | None:
    """The question as it was asked; None where this bank lacks it, or holds another kind under its id."""
    if item.question_id not in known or known[item.question_id].kind != item.kind:
        return None
    return draw(load_question(bank, item.question_id), item.seed)


def task(shown: Draw, language: Language) -> str:
    """All that was asked: the prompt, and the program, options and convention that belong to it."""
    question = shown.question
    blocks = [shown.prompt(language).strip()]
    if question.kind == "predict":
        blocks += [fenced(question.program), say(language, "on_ranks", count=question.world_size)]
    if question.kind == "number":
        blocks.append(shown.text(question.convention, language).strip())
    blocks += [
        f"**{letter}** {option.strip()}" for letter, option in zip(LETTERS, shown.options(language), strict=False)
    ]
    return "\n\n".join(blocks)


def explanation(item: ItemRecord, shown: Draw, language: Language) -> str:
    """Why the right answer is right, where another was given, or none."""
    question = shown.question
    if question.kind in ("open", "code") or item.verdict not in ("wrong", "skipped"):
        return ""
    working = [shown.working(language).strip()] if question.kind == "number" else []
    return "\n\n".join([*working, shown.text(question.explanation, language).strip()])


def model_answer(shown: Draw, language: Language) -> str:
    return shown.text(shown.question.model_answer, language) if shown.question.kind == "open" else ""


def picked(item: ItemRecord, shown: Draw, language: Language) -> tuple[str, ...]:
    """The options or items that an answer of letters names."""
    options = shown.options(language)
    if not options or not item.answer.strip():
        return ()
    try:
        return tuple(options[position] for position in read_positions(item.answer, len(options)))
    except KitError:  # said in words
        return ()


def points(item: ItemRecord, shown: Draw, language: Language) -> tuple[Line, ...]:
    """With the score of each where it has one; none where no point was looked at."""
    lines: list[Line] = []
    for index, point in enumerate(points_of(shown, language)):
        got = point_score(item, index, point.weight)
        if got is None:
            lines.append(Line(point.text, say(language, "not_scored", most=point.weight)))
        else:
            lines.append(
                Line(
                    point.text,
                    say(language, "point_of", got=f"{got:g}", most=point.weight),
                    state_of(got, point.weight),
                )
            )
    return tuple(lines) if any(line.state != "open" for line in lines) else ()


def state_of(got: float, most: float) -> State:
    return "met" if got >= most else "partly" if got > 0 else "missed"


def point_score(item: ItemRecord, index: int, weight: int) -> float | None:
    """Of an answer that its writer has marked, all of the weight or nothing."""
    if index < len(item.points_scores):
        return item.points_scores[index]
    if item.kind == "open" and item.verdict == "marked":
        return float(weight) if index in item.points_met else 0.0
    return None


def follow_ups(item: ItemRecord, shown: Draw, language: Language) -> tuple[Line, ...]:
    lines: list[Line] = []
    for asked in item.follow_ups:
        if asked.index < len(shown.question.follow_ups):
            follow_up = shown.question.follow_ups[asked.index]
            text, model = shown.text(follow_up.question, language), shown.text(follow_up.answer, language)
            said = say(language, "follow_up_asked") if asked.score is None else percent(asked.score, language)
            state: State = "open" if asked.score is None else state_of(asked.score, 1)
            lines.append(Line(text, said, state, asked.answer, model))
    return tuple(lines)


def flags(item: ItemRecord, shown: Draw, bank: Bank, language: Language) -> tuple[str, ...]:
    listed = red_flags(shown, bank, language)
    return tuple(listed[index] for index in item.red_flags if index < len(listed))


def grade_lines(grade: Mapping[str, Any] | None, language: Language) -> tuple[str, ...]:
    """The verdict, and every check that did not pass."""
    if not grade:
        return ()
    verdict = word(language, "", str(grade.get("verdict", "")))
    values = {name: grade.get(name, "?") for name in ("score", "max_score", "seed")}
    lines = [say(language, "grade_of", verdict=verdict, **values)]
    checks = grade.get("checks", ())
    failed = [check for check in checks if isinstance(check, Mapping) and check.get("verdict") == "failed"]
    titles = dict.fromkeys(str(check.get("title") or check.get("name")) for check in failed)
    return (*lines, *(say(language, "failed_check", title=title) for title in titles))
