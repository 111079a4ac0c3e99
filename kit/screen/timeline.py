"""A timeline on the screen: a row of boxes for each rank, as papers on pipelines draw them, and a table below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from kit.costmodel.units import duration
from kit.screen.gantt import (
    NOTHING,
    WAIT,
    Box,
    Scale,
    letters,
    num_unseen,
    program_row,
    ranks_shown,
    scale,
    stretches,
    wire_row,
)
from kit.screen.grade import visible
from kit.screen.page import Page
from kit.screen.wrap import padded, widest

if TYPE_CHECKING:
    from kit.world.picture import Axis
    from kit.world.timeline import Timeline

    Ticks = Callable[[float, float, int], Axis]

MOST_RANKS = 16
MAX_WIDTH = 200
_MIN_COLUMNS = 16
_COLUMNS_PER_TICK = 10
_LONGEST_WORD = 20
# kind -> what fills the rest of its box: with Unicode, without; and two backgrounds that take turns
_FILLS = {"F": "─-", "B": "═=", "I": "~~", "W": "++"}
_STYLES = {
    "F": ("black on cyan", "black on bright_cyan"),
    "B": ("bright_white on blue", "bright_white on bright_blue"),
    "I": ("black on green", "black on bright_green"),
    "W": ("black on yellow", "black on bright_yellow"),
}
_OTHER_FILL, _OTHER_STYLE = "─-", ("black on white", "black on bright_white")
_WIRES = {"send": ">", "recv": "<"}
_COLLECTIVE = "~"


def show_timeline(page: Page, timeline: Timeline, ticks: Ticks, title: str = "") -> None:
    """ticks(start_s, end_s, most): where the axis has its marks (`kit.world.picture.axis`)."""
    if title:
        page.line(Text(page.readable(visible(title)), style="bold"))
        page.blank()
    if not timeline.makespan_s > 0:
        page.line(page.say("timeline_empty", profile=visible(timeline.profile)))
        return
    ranks = ranks_shown(timeline, MOST_RANKS)
    _Gantt(page, timeline, ranks).show(ticks)
    page.blank()
    _show_table(page, timeline, ranks)
    _show_left_out(page, timeline, ranks)
    page.line(_sum(page, timeline))


class _Gantt:
    """The boxes, the axis and the legend."""

    def __init__(self, page: Page, timeline: Timeline, ranks: Sequence[int]) -> None:
        self.page = page
        self.timeline = timeline
        self.ranks = ranks
        self.has_unicode = page.terminal.has_unicode
        self.has_colour = page.terminal.has_colour
        self.gutter = len(f"rank {ranks[-1]}") + 2
        self.columns = scale(timeline, max(min(page.terminal.width, MAX_WIDTH) - self.gutter, _MIN_COLUMNS))
        self.programs = [program_row(timeline, rank, self.columns) for rank in ranks]
        self.wires = [wire_row(timeline, rank, self.columns) for rank in ranks]
        self.letters = letters(box.kind for row in self.programs for box in row)

    def show(self, ticks: Ticks) -> None:
        has_wires = any(box.kind for row in self.wires for box in row)
        for rank, program, wire in zip(self.ranks, self.programs, self.wires, strict=True):
            self._line(f"rank {rank}", [self._program_box(box, place) for place, box in enumerate(program)])
            if has_wires:
                self._line("", [self._wire_box(box) for box in wire])
        self._show_axis(ticks)
        self._show_legend()

    def _line(self, head: str, boxes: Sequence[Text]) -> None:
        text = Text.assemble(padded(head, self.gutter), *boxes, no_wrap=True, overflow="ignore")
        text.rstrip()
        self.page.console.print(text, soft_wrap=True)

    def _program_box(self, box: Box, place: int) -> Text:
        if box.kind == NOTHING:
            return Text(" " * box.width)
        if box.kind == WAIT:
            return Text(self._wait * box.width, style="dim")
        letter = self.letters[box.kind]
        span = box.span
        number = str(span.microbatch) if span is not None and span.microbatch is not None else ""
        label = self.page.readable(visible(span.label)) if span is not None and not number else ""
        names = [letter + number, *([number] if self.has_colour else []), letter]
        if label:
            names.insert(0, f"{letter} {label}")
        name = next((name for name in names if name and cell_len(name) <= box.width), letter)
        if not self.has_colour:
            # A letter again and again is several spans; a letter and its line are one.
            fill = letter if span is None else _FILLS.get(box.kind, _OTHER_FILL)[0 if self.has_unicode else 1]
            return Text(name + fill * (box.width - cell_len(name)))
        styles = _STYLES.get(box.kind, _OTHER_STYLE)
        # Neighbours take turns, so that two boxes of one colour do not look like one.
        turn = span.microbatch if span is not None and span.microbatch is not None else place
        return Text(padded(name, box.width), style=styles[turn % 2])

    def _wire_box(self, box: Box) -> Text:
        if box.kind == NOTHING:
            return Text(" " * box.width)
        glyph = _WIRES.get(box.kind, _COLLECTIVE)
        name = self.page.readable(visible(box.kind))
        if cell_len(name) >= box.width:  # one more column than the name, so that two operations do not run together
            name = "|" if box.width > 2 else ""
        return Text(name + glyph * (box.width - cell_len(name)), style="magenta")

    @property
    def _wait(self) -> str:
        return "·" if self.has_unicode else "."

    def _show_axis(self, ticks: Ticks) -> None:
        columns: Scale = self.columns
        marks = ticks(columns.start_s, columns.end_s, max(columns.num_columns // _COLUMNS_PER_TICK, 2))
        line = ["─" if self.has_unicode else "-"] * columns.num_columns
        numbers = [" "] * columns.num_columns
        for at_s, text in marks.ticks:
            column = min(round((at_s - columns.start_s) / columns.per_column_s), columns.num_columns - 1)
            line[column] = "┴" if self.has_unicode else "+"
            first = min(column, columns.num_columns - len(text))
            if first >= 0 and all(character == " " for character in numbers[max(first - 1, 0) : first + len(text)]):
                numbers[first : first + len(text)] = text
        self._line("", [Text("".join(line), style="dim")])
        self._line(marks.unit.rjust(self.gutter - 2), [Text("".join(numbers), style="dim")])

    def _show_legend(self) -> None:
        page = self.page
        words = []
        for kind in sorted(self.letters, key=lambda kind: ("FBIW".find(kind) % 5, kind)):
            meaning = page.say(f"timeline_{kind}") if kind in _FILLS else page.readable(visible(kind))[:_LONGEST_WORD]
            words.append(f"{self.letters[kind]} {meaning}")
        if any(box.span is not None and box.span.microbatch is not None for row in self.programs for box in row):
            words.append(page.say("timeline_number"))
        if any(box.kind == WAIT for row in self.programs for box in row):
            words.append(f"{self._wait} {page.say('timeline_wait')}")
        kinds = {box.kind for row in self.wires for box in row if box.kind}
        words += [f"{glyph} {kind}" for kind, glyph in _WIRES.items() if kind in kinds]
        if kinds - set(_WIRES):
            words.append(f"{_COLLECTIVE} {page.say('timeline_collective')}")
        page.line(Text(page.say("comma").join(words), style="dim"))
        shown = [box for row in (*self.programs, *self.wires) for box in row]
        unseen = num_unseen(self.timeline, self.ranks, self.columns, shown)
        if unseen:
            column = duration(self.columns.per_column_s)
            page.line(page.say("timeline_unseen", count=f"{unseen:,}", column=column), style="dim")


def _show_table(page: Page, timeline: Timeline, ranks: Sequence[int]) -> None:
    """Numbers of each rank that has a row above."""
    in_flight = {rank: timeline.in_flight(rank) for rank in ranks}
    heads = ["rank", *(page.say(f"timeline_{name}") for name in ("busy", "bubble", "exposed"))]
    heads += [page.say("timeline_in_flight")] if any(in_flight.values()) else []
    rows = [
        [
            str(rank),
            duration(timeline.busy_s(rank)),
            f"{timeline.bubble_fraction(rank):.1%}",
            duration(timeline.exposed_s(rank)),
            str(in_flight[rank]),
        ][: len(heads)]
        for rank in ranks
    ]
    widths = [widest(column) for column in zip(heads, *rows, strict=True)]
    for number, row in enumerate((heads, *rows)):
        cells = (" " * (width - cell_len(cell)) + cell for cell, width in zip(row, widths, strict=True))
        page.unbroken("  ".join(cells), style="" if number else "dim")


def _show_left_out(page: Page, timeline: Timeline, ranks: Sequence[int]) -> None:
    """Which ranks have no row, and that the extremes have one."""
    every = range(timeline.world_size)
    missing = [rank for rank in every if rank not in set(ranks)]
    if not missing:
        return
    page.line(
        page.say("timeline_left_out", count=len(missing), size=timeline.world_size, ranks=stretches(missing))
        + page.say("stop")
        + _extremes(page, timeline)
    )


def _extremes(page: Page, timeline: Timeline) -> str:
    every = range(timeline.world_size)
    ends = [min(every, key=timeline.idle_s), max(every, key=timeline.idle_s)]
    least, most = (f"{timeline.bubble_fraction(rank):.1%}" for rank in ends)
    if least == most:
        return page.say("timeline_same", bubble=least)
    return page.say("timeline_extremes", least=least, least_rank=ends[0], most=most, most_rank=ends[1])


def _sum(page: Page, timeline: Timeline) -> str:
    size = timeline.world_size
    bubble = sum(timeline.bubble_fraction(rank) for rank in range(size)) / size
    return page.say(
        "timeline_sum",
        makespan=duration(timeline.makespan_s),
        bubble=f"{bubble:.1%}",
        size=size,
        profile=visible(timeline.profile),
    )
