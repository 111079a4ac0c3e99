"""Ids in a question lead to questions, and what to study before ends somewhere."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from kit.bank.closest import closest
from kit.bank.lint.entry import Entry
from kit.bank.lint.finding import Finding

MENTION = re.compile(r"(?<![\w/.@-])([a-z0-9_]+/[a-z0-9_]+)(?![\w/@-]|\.\w)")


def link_findings(entry: Entry, known: Collection[str]) -> Iterator[Finding]:
    for index, required in enumerate(entry.question.requires):
        if required == entry.question.id:
            yield entry.finding(("requires", index), f"{required} requires itself", "remove the line")
        elif required not in known:
            yield entry.finding(("requires", index), f"requires {required!r}, {unknown(required, known)}")
    for location, text in entry.texts():
        for language, written in (("en", text.en), ("zh", text.zh)):
            for mention in MENTION.findall(written):
                if mention not in known and is_meant_as_id(mention, written, known):
                    yield entry.finding((*location, language), f"speaks of {mention!r}, {unknown(mention, known)}")


def unknown(question_id: str, known: Collection[str]) -> str:
    near = closest(question_id, known, limit=1)
    return "which no question has" + (f" (did you mean {near[0]!r}?)" if near else "")


def is_meant_as_id(mention: str, text: str, known: Collection[str]) -> bool:
    """`tp/pp` and `memory/compute` are prose; a topic before an underscored or quoted or nearly known slug is not."""
    topic, slug = mention.split("/")
    topics = {question_id.split("/")[0] for question_id in known}
    if topic not in topics or slug in topics:
        return False
    slugs = [question_id for question_id in known if question_id.startswith(f"{topic}/")]
    return "_" in slug or f"`{mention}`" in text or bool(closest(mention, slugs, limit=1))


def cycle_findings(entries: Sequence[Entry]) -> Iterator[Finding]:
    """One finding for each circle of requirements, at its first question."""
    required = {entry.question.id: entry.question.requires for entry in entries}
    by_id = {entry.question.id: entry for entry in entries}
    for circle in circles(required):
        yield by_id[circle[0]].finding(
            ("requires",), f"requirements go in a circle: {' -> '.join([*circle, circle[0]])}", "drop one of them"
        )


def circles(required: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Each circle of more than one question that a walk along requirements runs into, from its smallest id."""
    found: set[tuple[str, ...]] = set()
    done: set[str] = set()

    def walk(question_id: str, path: list[str]) -> None:
        if question_id in path:
            circle = path[path.index(question_id) :]
            first = circle.index(min(circle))
            if len(circle) > 1:
                found.add((*circle[first:], *circle[:first]))
            return
        if question_id in done:
            return
        for next_id in required.get(question_id, ()):
            walk(next_id, [*path, question_id])
        done.add(question_id)

    for question_id in sorted(required):
        walk(question_id, [])
    return [list(circle) for circle in sorted(found)]
