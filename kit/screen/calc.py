"""A calculation on the screen: its results, what was taken, and each formula with the numbers put in."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from kit.costmodel import units
from kit.costmodel.breakdown import Calculation, Input, Line, Number, Table
from kit.screen.calc_words import label
from kit.screen.page import Page
from kit.screen.wrap import Prose, padded, widest

INDENT = "  "
GAP = 2
LARGE, LARGEST = 10**5, 10**15  # counts of these are shown in full, without a fraction
MOST_BEFORE_A_LINE = 3  # of four parts, what a result's name may take


def show_calculation(page: Page, it: Calculation) -> None:
    """Inputs, results, a table where there is one, the breakdown, and by what convention it is counted."""
    page.line(Text.assemble((f"calc {it.command}", "bold")))
    page.line(page.say("comma").join(input_words(name, value) for name, value in it.inputs.items()), indent=INDENT)
    if it.results:
        page.blank()
        show_results(page, it)
    if it.table is not None:
        page.blank()
        show_table(page, it.table)
    if it.breakdown:
        page.heading(page.say("calc_breakdown"))
        for line in it.breakdown:
            show_line(page, line)
    page.heading(page.say("convention"))
    for note in it.convention:
        page.line(note.zh if page.language == "zh" else note.en, indent=INDENT)


def input_words(name: str, value: Input) -> str:
    if isinstance(value, bool):
        return f"{name} {'yes' if value else 'no'}"
    return f"{name} {value if isinstance(value, str) else units.digits(value)}"


def shown(page: Page, value: Number | str, unit: str) -> str:
    if isinstance(value, str):
        return page.readable(label(page.language, value))
    if value in (float("inf"), float("-inf")):
        return page.readable("∞")
    if unit == "count" and LARGE <= abs(value) < LARGEST:
        return f"{value:,.0f}"
    return units.show(value, unit)


def show_results(page: Page, it: Calculation) -> None:
    """A row for each; the value goes to a line of its own where the names are too wide."""
    rows = [(page.readable(label(page.language, name)), shown(page, result.value, result.unit))
            for name, result in it.results.items()]  # fmt: skip
    width = widest(name for name, _ in rows) + GAP
    for name, value in rows:
        if width <= page.width * MOST_BEFORE_A_LINE // 4:
            lead = Text(INDENT + padded(name, width))
            page.print(Prose(Text(value, style="bold"), lead, Text(" " * lead.cell_len)))
        else:
            page.line(name, indent=INDENT)
            page.line(value, style="bold", indent=2 * INDENT)


def show_line(page: Page, line: Line) -> None:
    """The name with its formula, the numbers, the value, each under the other."""
    page.print(Prose(Text(f"= {line.formula}"), Text(f"{INDENT}{line.name} ", style="bold"), Text(3 * INDENT)))
    if line.numbers != line.formula:
        page.print(Prose(Text(f"= {line.numbers}"), Text(2 * INDENT), Text(3 * INDENT)))
    page.print(Prose(Text(f"= {exactly(page, line)}"), Text(2 * INDENT), Text(3 * INDENT)))


def exactly(page: Page, line: Line) -> str:
    """The value as a person reads it; a count of bytes also in full, since formulas below use it."""
    text = shown(page, line.value, line.unit)
    is_rounded = line.unit == "B" and isinstance(line.value, int) and 1000 <= abs(line.value) < 10**15
    return f"{units.digits(line.value)} B = {text}" if is_rounded else text


def show_table(page: Page, table: Table) -> None:
    """Columns side by side where they fit, else each row as lines of its own."""
    names = [page.readable(label(page.language, name)) for name in table.units]
    kinds = list(table.units.values())
    rows = [[short(page, value, unit) for value, unit in zip(row, kinds, strict=True)] for row in table.rows]
    widths = [widest(column) for column in zip(names, *rows, strict=True)]
    if sum(widths) + GAP * len(widths) <= page.width:
        for number, row in enumerate((names, *rows)):
            cells = [aligned(cell, width, kind) for cell, width, kind in zip(row, widths, kinds, strict=True)]
            page.unbroken(INDENT + (" " * GAP).join(cells).rstrip(), style="" if number else "dim")
        return
    for row in rows:
        words = [f"{name} {cell}" for name, cell in zip(names[1:], row[1:], strict=True) if cell]
        page.print(
            Prose(Text(page.say("comma").join(words)), Text(f"{INDENT}{row[0]}{page.say('colon')}"), Text(2 * INDENT))
        )


def aligned(cell: str, width: int, kind: str) -> str:
    return padded(cell, width) if kind == "word" else " " * (width - cell_len(cell)) + cell


def short(page: Page, value: Number | str, unit: str) -> str:
    """As `shown`, one unit only: a table is narrow."""
    text = shown(page, value, unit)
    if unit == "fraction" and not isinstance(value, str):
        return f"{value:.1%}"
    return text.split(" (")[0]
