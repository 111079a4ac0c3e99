"""Progress on the screen: tables and bars that need neither colour nor Unicode, from 60 columns on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, tzinfo
from typing import TYPE_CHECKING

from rich.text import Text

from kit.screen.page import Page
from kit.screen.wrap import Prose, padded, widest

if TYPE_CHECKING:
    from kit.bank.load import Header
    from kit.progress.overview import Overview
    from kit.progress.records import Card, Review
    from kit.progress.summary import Calibration

GAP = "  "
MAX_BAR = 24
MIN_BAR = 4
CHART_HEIGHT = 5
EIGHTHS = " ▁▂▃▄▅▆▇█"
PERCENT = len("100%")
GOOD, FAIR = 0.8, 0.5
EVEN = 0.03  # confidence and score nearer than this count as the same
STYLES = {"right": "green", "wrong": "red", "marked": "green", "skipped": "yellow"}


def show_overview(page: Page, shown: Overview, command: str = "shardkit quiz") -> None:
    """`command` is the quiz that the last lines propose, with the options that chose these questions."""
    if not shown.num_answers:
        page.line(page.say("progress_nothing", command=command))
        return
    show_facts(page, shown)
    page.heading(page.say("progress_per_day"))
    show_days(page, shown.days)
    page.heading(page.say("progress_topics"))
    show_topics(page, shown)
    if shown.calibration is not None:
        page.heading(page.say("progress_calibration"))
        show_calibration(page, shown.calibration)
    page.blank()
    if shown.due:
        page.line(page.say("progress_next_due", command=f"{command} --due"), style="dim")
    if shown.num_answered < shown.num_questions:
        page.line(page.say("progress_next_new", command=f"{command} --new 5"), style="dim")


def show_facts(page: Page, shown: Overview) -> None:
    streak = page.say("progress_days_in_a_row", days=shown.streak.days, longest=shown.streak.longest)
    today = page.say("progress_today_done" if shown.streak.is_today_done else "progress_today_open")
    facts = {
        "progress_streak": streak + page.say("comma") + today,
        "progress_answers": page.say(
            "progress_answers_to",
            answers=shown.num_answers,
            answered=shown.num_answered,
            questions=shown.num_questions,
        ),
        "progress_due": page.say("progress_due_count", today=len(shown.due), soon=len(shown.soon)),
        "progress_bookmarks": page.say("progress_num_bookmarks", count=len(shown.bookmarks)),
    }
    width = widest(map(page.say, facts))
    for name, fact in facts.items():
        first = Text(padded(page.say(name), width) + GAP, style="bold")
        page.print(Prose(Text(fact), first, Text(" " * (width + len(GAP)))))


def show_days(page: Page, days: Sequence[tuple[date, int]]) -> None:
    """Upright bars, a day every four columns, with its count above and the day of the month below."""
    most = max(count for _, count in days)
    for level in range(CHART_HEIGHT, -1, -1):
        row = "".join(f"{column(page, count, most, level):>4}" for _, count in days)
        if row.strip():
            page.console.print(Text(row.rstrip(), style="cyan"))
    page.line("".join(f"{day.day:>4}" for day, _ in days), style="dim")


def column(page: Page, count: int, most: int, level: int) -> str:
    """What a day shows at a level, from 0 below to CHART_HEIGHT: a piece of its bar, or the count on top of it."""
    if not count:
        return ""
    height = (
        count / most * (CHART_HEIGHT - 1)
        if page.terminal.has_unicode
        else max(round(count / most * (CHART_HEIGHT - 1)), 1)
    )
    filled = height - level
    if filled > 0:
        return (EIGHTHS[min(max(round(filled * 8), 1), 8)] if page.terminal.has_unicode else "#") * 2
    return str(count) if filled > -1 else ""


def show_topics(page: Page, shown: Overview) -> None:
    heads = [page.say(f"progress_head_{name}") for name in ("topic", "score", "answered", "due")]
    due_in = shown.due_in
    rows = [
        (topic.topic, topic.score, f"{topic.answered}/{topic.num_questions}", str(due_in.get(topic.topic, "")))
        for topic in shown.topics
    ]
    names, counts, dues = (widest([heads[place], *(str(row[place]) for row in rows)]) for place in (0, 2, 3))
    width = room_for_bar(page, names + counts + dues + 4 * len(GAP) + PERCENT)
    score_head = padded(heads[1], width + 1 + PERCENT)
    show_row(page, padded(heads[0], names), score_head, at_right(heads[2], counts), at_right(heads[3], dues), dim=True)
    for name, score, answered, due in rows:
        due_cell = Text(at_right(due, dues), style="yellow")
        name_cell = Text(padded(name, names), style="bold")
        show_row(page, name_cell, bar(page, score, width), at_right(answered, counts), due_cell)


def show_row(page: Page, *cells: str | Text, dim: bool = False) -> None:
    row = Text(style="dim" if dim else "")
    for cell in cells:
        row.append(GAP)
        row.append(cell)
    row.rstrip()
    page.console.print(row, soft_wrap=True)


def percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def at_right(text: str, width: int) -> str:
    return " " * (width - widest([text])) + text


def room_for_bar(page: Page, used: int) -> int:
    return max(min(page.width - used - 1, MAX_BAR), MIN_BAR)


def bar(page: Page, share: float | None, width: int) -> Text:
    """A lying bar of `width` cells, `share` of it filled, and the share in percent; nothing without an answer."""
    if share is None:
        return Text(" " * (width + 1 + PERCENT))
    filled = round(share * width)
    full, rest = ("█", "░") if page.terminal.has_unicode else ("#", ".")
    style = "green" if share >= GOOD else "yellow" if share >= FAIR else "red"
    return Text.assemble(
        (full * filled, style), (rest * (width - filled), "dim"), " ", at_right(percent(share), PERCENT)
    )


def show_calibration(page: Page, found: Calibration) -> None:
    heads = [page.say(f"progress_head_{name}") for name in ("sure", "score", "answers")]
    ranges = [f"{each.low * 100:.0f}-{each.high * 100:.0f}%" for each in found.bins]
    first, last = widest([heads[0], *ranges]), widest([heads[2], *(str(each.count) for each in found.bins)])
    width = room_for_bar(page, first + last + 3 * len(GAP) + PERCENT)
    score_head = padded(heads[1], width + 1 + PERCENT)
    show_row(page, padded(heads[0], first), score_head, at_right(heads[2], last), dim=True)
    for name, each in zip(ranges, found.bins, strict=True):
        show_row(page, at_right(name, first), bar(page, each.score, width), at_right(str(each.count), last))
    difference = found.confidence - found.score
    key = "progress_too_sure" if difference > 0 else "progress_not_sure_enough"
    page.line(
        page.say(
            key if abs(difference) >= EVEN else "progress_well_calibrated",
            points=f"{abs(difference) * 100:.0f}",
            confidence=percent(found.confidence),
            score=percent(found.score),
        )
    )
    page.line(page.say("progress_brier", brier=f"{found.brier:.2f}"), style="dim")


def show_question_progress(
    page: Page,
    question_id: str,
    header: Header | None,
    card: Card | None,
    reviews: Sequence[Review],
    *,
    is_bookmarked: bool,
    zone: tzinfo | None = None,
) -> None:
    """When it is due, and every review of it, the oldest first. `header` is None where the bank has it no more."""
    if header is not None:
        page.line(page.readable(header.title[page.language]), style="bold")
    parts = [question_id]
    if header is not None:
        parts += [page.say(header.kind), page.say("level", level=header.level)]
    page.line(page.readable(page.say("comma").join(parts)), style="dim")
    if header is None:
        page.line(page.say("progress_gone"))
    page.blank()
    facts = [page.say("progress_no_date")]
    if card is not None:
        facts = [
            page.say("progress_due_on", day=card.due.astimezone(zone).date()),
            page.say("progress_stability", days=f"{card.stability:.1f}"),
            page.say("progress_difficulty", difficulty=f"{card.difficulty:.1f}"),
        ]
    if is_bookmarked:
        facts.append(page.say("progress_is_bookmarked"))
    page.line(page.say("comma").join(facts))
    if reviews:
        page.blank()
        show_reviews(page, reviews, zone)


def show_reviews(page: Page, reviews: Sequence[Review], zone: tzinfo | None) -> None:
    heads = [page.say(f"progress_head_{name}") for name in ("when", "mode", "verdict", "hints", "time", "sure")]
    rows = [
        [
            f"{review.asked_at.astimezone(zone):%Y-%m-%d %H:%M}",
            page.say(f"progress_mode_{review.mode}"),
            percent(review.score) if review.verdict == "marked" else page.say(review.verdict),
            str(review.num_hints) if review.num_hints else "",
            minutes(review.seconds),
            percent(review.confidence),
        ]
        for review in reviews
    ]
    widths = [widest(cells) for cells in zip(heads, *rows, strict=True)]
    aligned: list[Callable[[str, int], str]] = [padded, padded, padded, at_right, at_right, at_right]
    for number, row in enumerate([heads, *rows]):
        cells = [Text(align(cell, width)) for align, cell, width in zip(aligned, row, widths, strict=True)]
        if number:
            cells[2].style = STYLES[reviews[number - 1].verdict]
        show_row(page, *cells, dim=number == 0)


def minutes(seconds: float) -> str:
    """`0:07`, `12:30`, `3:05:00`"""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    if hours:
        return f"{hours}:{rest // 60:02}:{rest % 60:02}"
    return f"{rest // 60}:{rest % 60:02}"
