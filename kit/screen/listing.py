"""The list of questions."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from kit.bank.load import Header
from kit.screen.page import Page
from kit.screen.wrap import Prose, padded, widest

GAP = 2
MIN_TITLE_WIDTH = 24


def show_list(page: Page, headers: Sequence[Header]) -> None:
    """A line for each question; two where the title would not fit beside the rest."""
    rows = [
        (header.id, page.say(header.kind), str(header.level), page.readable(header.title[page.language]))
        for header in headers
    ]
    heads = tuple(page.say(f"head_{name}") for name in ("id", "kind", "level", "title"))
    widths = [widest(column) + GAP for column in zip(heads, *rows, strict=True)]
    width_before_title = sum(widths[:3])
    if not page.terminal.is_terminal:  # one line each, for grep and awk
        for row in (heads, *rows):
            page.console.print(Text(aligned(row, widths) + row[3]), soft_wrap=True)
    elif page.width - width_before_title >= min(MIN_TITLE_WIDTH, max(cell_len(row[3]) for row in rows)):
        page.console.print(Text(aligned(heads, widths) + heads[3], style="dim"))
        for row in rows:
            page.console.print(Prose(Text(row[3]), beginning(row, widths), Text(" " * width_before_title)))
    else:
        for row in rows:
            page.console.print(
                Text.assemble((row[0], "bold"), "  ", (f"{row[1]}, {page.say('level', level=row[2])}", "dim"))
            )
            page.console.print(Prose(Text(row[3]), Text("  "), Text("  ")))
    if page.terminal.is_terminal:
        page.blank()
        page.line(page.say("num_questions", count=len(rows)), style="dim")


def aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(padded(cell, width) for cell, width in zip(row[:3], widths[:3], strict=True))


def beginning(row: Sequence[str], widths: Sequence[int]) -> Text:
    text = Text(aligned(row, widths))
    text.stylize("bold", 0, len(row[0]))
    return text
