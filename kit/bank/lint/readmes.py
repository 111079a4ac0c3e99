"""A topic's README says in English and in Chinese in which order to study, the same in both.

A question may be left out by both: adding one changes no file that is there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from kit.bank.closest import closest
from kit.bank.document import read_text
from kit.bank.layout import Bank
from kit.bank.lint.finding import Finding
from kit.bank.lint.links import unknown
from kit.errors import KitError

CHINESE = re.compile(r"[\u4e00-\u9fff]")
CHINESE_HEADING = re.compile(r"#+ .*[\u4e00-\u9fff]")
ITEM = re.compile(r"\d+\. ")
# A slug, or the id of another topic's question, and nothing else between the backticks.
NAMED = re.compile(r"`([a-z0-9_]+(?:/[a-z0-9_]+)?)`")

Line = tuple[int, str]


def readme_findings(bank: Bank) -> Iterator[Finding]:
    known = bank.ids()
    for topic in bank.topics():
        readme = bank.topic_readme(topic)
        shown = bank.shown(readme)
        try:
            text = read_text(readme, shown)
        except KitError:
            continue  # file_findings says so
        if not text.strip():
            continue
        english, chinese = parts(text)
        yield from name_findings(shown, "English", english, topic, known)
        if not any(CHINESE.search(line) for _, line in chinese[1:]):
            yield Finding(shown, 0, "no Chinese section", "say the same in Chinese, below a heading `## 中文说明`")
            continue
        yield from name_findings(shown, "Chinese", chinese, topic, known)
        orders = {"English": own(english, topic, known), "Chinese": own(chinese, topic, known)}
        for language, order in orders.items():
            for slug in sorted(set().union(*orders.values()) - order):
                advice = "name it in the numbered item where a learner should come to it"
                yield Finding(shown, 0, f"the {language} order lacks `{slug}`", advice)


def parts(text: str) -> tuple[list[Line], list[Line]]:
    """The numbered lines before the first heading in Chinese, and those from it on."""
    lines = list(enumerate(text.split("\n"), 1))
    for index, (_, line) in enumerate(lines):
        if CHINESE_HEADING.match(line):
            return lines[:index], lines[index:]
    return lines, []


def name_findings(
    shown: str, language: str, lines: list[Line], topic: str, known: Collection[str]
) -> Iterator[Finding]:
    """The order is what numbered items name in backticks: slugs of the topic, topics, ids of other topics."""
    topics = {question_id.split("/")[0] for question_id in known}
    for number, name in named(lines):
        if (name if "/" in name else f"{topic}/{name}") not in known and name not in topics:
            yield Finding(shown, number, f"the {language} order names `{name}`, {unknown_name(name, topic, known)}")
        elif name.startswith(f"{topic}/"):
            slug = name.removeprefix(f"{topic}/")
            yield Finding(shown, number, f"names `{name}`, a question of its own topic", f"write `{slug}`")


def own(lines: list[Line], topic: str, known: Collection[str]) -> set[str]:
    """Slugs of the topic's questions that an order names."""
    names = {name if "/" in name else f"{topic}/{name}" for _, name in named(lines)}
    return {name.removeprefix(f"{topic}/") for name in names if name in known and name.startswith(f"{topic}/")}


def named(lines: list[Line]) -> Iterator[tuple[int, str]]:
    """(line, name) of what numbered items name, on their first line and on the indented lines below it."""
    is_in_item = False
    for number, line in lines:
        is_in_item = bool(ITEM.match(line)) or (is_in_item and line[:1] in ("", " "))
        if is_in_item:
            for name in NAMED.findall(line):
                yield number, name


def unknown_name(name: str, topic: str, known: Collection[str]) -> str:
    if "/" in name:
        return unknown(name, known)
    slugs = [question_id.removeprefix(f"{topic}/") for question_id in known if question_id.startswith(f"{topic}/")]
    near = closest(name, slugs, limit=1)
    return f"which no question of {topic} has" + (f" (did you mean `{near[0]}`?)" if near else "")
