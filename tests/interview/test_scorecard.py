"""Scorecards: their figures, what a candidate cannot do to them, and whole pages kept as text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from kit.bank.load import Header
from kit.interview.record import ItemRecord, PartRecord, Record, from_json, to_json
from kit.interview.scorecard import html, markdown
from kit.interview.sheet import clock, fingerprint, sheet
from kit.interview.summary import by_topic, to_study, total
from kit.screen.words import Language
from tests.interview.made import BANK, HOSTILE, PLAN, golden, held, untouched

LANGUAGES: tuple[Language, ...] = ("en", "zh")
CLOSED_BY_THEMSELVES = {"meta", "br", "hr"}
MAKERS = {"md": markdown, "html": html}


class Page(HTMLParser):
    """Elements with their attributes, the text of each kind of element, and whether tags close in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in CLOSED_BY_THEMSELVES:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("suffix", ["md", "html"])
def test_a_scorecard_is_as_it_was_looked_at(language: Language, suffix: str) -> None:
    """`python -m tests.interview.made` writes the kept ones anew."""
    assert MAKERS[suffix](held(), BANK, language) == golden(language, suffix).read_text("utf-8")


@pytest.mark.parametrize("language", LANGUAGES)
def test_html_that_somebody_typed_is_text(language: Language) -> None:
    page = Page(html(held(), BANK, language))
    assert not page.named("script") and not page.named("img") and not page.named("a") and not page.named("b")
    typed = [text for tag, text in page.texts if tag in ("pre", "p") and "<script>alert(1)</script>" in text]
    assert len(typed) == 3  # the answer, the note and the answer to a follow-up
    assert any(tag == "h1" and "Ada <script>alert(1)</script> # L." in text for tag, text in page.texts)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


@pytest.mark.parametrize("language", LANGUAGES)
def test_markdown_that_somebody_typed_is_text(language: Language) -> None:
    text = markdown(held(), BANK, language)
    nodes = list(SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(text)).walk())
    assert not {"html_block", "html_inline", "link", "image"} & {node.type for node in nodes}
    heads = [node.children[0].content for node in nodes if node.type == "heading"]
    assert sum("Ada" in head for head in heads) == 1 and not any(head.startswith("Hired") for head in heads)
    assert [node.content for node in nodes if node.type == "fence" and "alert(1)" in node.content] == [
        HOSTILE + "\n"
    ] * 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_needs_nothing_from_outside(language: Language) -> None:
    text = html(held(), BANK, language)
    page = Page(text)
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "img", "iframe", "object", "form", "base"})
    assert not any(name in ("src", "href", "action", "srcset") for _, attributes in page.tags for name in attributes)
    (style,) = [content for tag, content in page.texts if tag == "style"]
    assert "url(" not in style and "@import" not in style
    (policy,) = [each for each in page.named("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    assert str(policy["content"]).startswith("default-src 'none'")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_can_be_heard(language: Language) -> None:
    page = Page(html(held(), BANK, language))
    assert page.named("html") == [{"lang": {"en": "en", "zh": "zh-CN"}[language]}]
    assert len(page.named("h1")) == 1 and len(page.named("main")) == 1
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert all(table.get("aria-labelledby") in ids for table in page.named("table")) and page.named("table")
    assert all(cell.get("scope") in ("col", "row") for cell in page.named("th"))
    bars = [attributes for tag, attributes in page.tags if attributes.get("class") == "bar"]
    assert bars and all(each["aria-hidden"] == "true" for each in bars)


def test_dark_screens_and_paper_have_colours_of_their_own() -> None:
    text = html(held(), BANK, "en")
    assert "@media screen and (prefers-color-scheme: dark)" in text and "@media print" in text
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", text.split("@media screen")[0]))
    dark = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", text.split("@media screen")[1].split("* {")[0]))
    assert colours.keys() == dark.keys()
    for palette in (colours, dark):
        for ink in ("ink", "quiet", "good", "bad"):
            for ground in ("page", "soft"):
                assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)


def contrast(first: str, second: str) -> float:
    """WCAG 2.1, definition of contrast ratio."""
    dark, light = sorted(map(luminance, (first, second)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# --- figures ----------------------------------------------------------------------------------------------------------


def with_items(*items: ItemRecord) -> Record:
    return replace(untouched(), parts=(PartRecord("warm-up", 10, 0.0, items),))


def asked(question_id: str, score: float, **fields: Any) -> ItemRecord:
    return ItemRecord(question_id, "choice", 1, verdict="marked", score=score, **fields)


def header(question_id: str, level: int = 1, *requires: str) -> Header:
    return Header(question_id, "choice", level, {"en": question_id, "zh": question_id}, (), requires)


def test_what_was_not_asked_is_in_no_mean() -> None:
    record = with_items(asked("a/x", 1.0), asked("a/y", 0.5), ItemRecord("a/z", "choice", 1), asked("b/x", 0.0))
    assert [(each.name, each.num_asked, each.score) for each in by_topic(record)] == [("b", 1, 0.0), ("a", 2, 0.75)]
    assert total(record).score == 0.5
    assert total(untouched()).score is None and by_topic(untouched()) == ()


def test_a_skipped_question_counts_as_nothing() -> None:
    assert total(with_items(asked("a/x", 1.0), ItemRecord("a/y", "choice", 1, verdict="skipped"))).score == 0.5


def test_study_begins_with_the_worst_after_what_it_requires() -> None:
    known = [header("a/x", 2, "a/base"), header("a/base", 1, "a/first"), header("a/first"), header("b/y", 1)]
    record = with_items(asked("b/y", 0.6), asked("a/x", 0.2))
    advice = [(each.question_id, each.reason, each.of) for each in to_study(record, known)]
    assert advice == [
        ("a/first", "before", "a/x"),
        ("a/base", "before", "a/x"),
        ("a/x", "again", ""),
        ("b/y", "again", ""),
    ]


def test_what_was_answered_well_is_not_studied_again() -> None:
    known = [header("a/x", 2, "a/base"), header("a/base")]
    record = with_items(asked("a/x", 0.2), asked("a/base", 0.9))
    assert [each.question_id for each in to_study(record, known)] == ["a/x"]


def test_a_weak_topic_gives_its_easiest_question_that_was_not_asked() -> None:
    known = [header("a/x"), header("a/hard", 3), header("a/easy", 1), header("b/other", 1)]
    advice = to_study(with_items(asked("a/x", 0.5)), known)
    assert [(each.question_id, each.reason) for each in advice] == [("a/x", "again"), ("a/easy", "topic")]
    assert to_study(with_items(asked("a/x", 0.7)), known) == ()


def test_questions_that_require_each_other_come_to_an_end() -> None:
    known = [header("a/x", 1, "a/y"), header("a/y", 1, "a/x")]
    assert [each.question_id for each in to_study(with_items(asked("a/x", 0.0)), known)] == ["a/y", "a/x"]


def test_a_fingerprint_is_of_the_questions_and_their_numbers() -> None:
    first, *others = PLAN.parts
    other_draw = replace(first, questions=(replace(first.questions[0], seed=4), *first.questions[1:]))
    longer = replace(first, minutes=11)
    plans = [PLAN, replace(PLAN, parts=(other_draw, *others)), replace(PLAN, parts=(longer, *others))]
    assert len({fingerprint(plan) for plan in plans}) == 3
    assert fingerprint(PLAN) == fingerprint(from_json(to_json(held())).plan)
    shown = dict(sheet(held(), BANK, "en").facts)["Plan"]
    assert "seed 4711" in shown and fingerprint(PLAN) in shown


def test_times_are_minutes_and_seconds() -> None:
    assert clock(0, "en") == "0:00 min" and clock(59.6, "en") == "1:00 min" and clock(754, "zh") == "12 分 34 秒"


def test_a_question_that_the_bank_lacks_is_named_all_the_same() -> None:
    record = with_items(asked("gone/`away`", 0.5, answer="x"), asked("links/bytes", 1.0))  # the second: another kind
    for make in (markdown, html):
        text = make(record, BANK, "en")
        assert text.count("The bank at hand does not have this question.") == 2
        assert "away" in text
    assert "`gone/`" not in markdown(record, BANK, "en")


def test_the_answer_of_a_question_that_was_not_asked_stays_out() -> None:
    for make in (markdown, html):
        text = make(untouched(), BANK, "en")
        assert "A model that does not fit" in text and "208 GB" not in text and "2(n-1)/n S" not in text
        assert "This interview is not finished." in text
        assert "This interview is not finished." not in make(held(), BANK, "en")


def test_a_mock_shows_which_points_its_writer_claimed() -> None:
    item = ItemRecord("layout/design", "open", 3, answer="shard it", verdict="marked", score=0.25, points_met=(1,))
    lines = sheet(with_items(item), BANK, "en").sections[0].answers[0].points
    assert [(line.state, line.said) for line in lines] == [
        ("missed", "0 of 3"),
        ("met", "2 of 2"),
        ("missed", "0 of 2"),
        ("missed", "0 of 1"),
    ]
