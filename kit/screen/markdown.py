"""The Markdown of the questions as lines for a terminal: wraps Chinese, does without Unicode and colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from rich.cells import get_character_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from kit.screen.code import code_block
from kit.screen.terminal import Terminal
from kit.screen.wrap import Prose

CODE = "cyan"
ENDS_WITH_ROOM = tuple("，。；：！？")  # their own cell is half empty: no space follows
PARSER = MarkdownIt("commonmark").enable("table")


class Markdown:
    """Renders `source`; `first` and `rest` stand before its first line and the others, `lead` begins its text."""

    def __init__(
        self,
        source: str,
        terminal: Terminal,
        first: str = "",
        rest: str = "",
        style: str = "",
        lead: Text | None = None,
    ) -> None:
        self.source = source
        self.terminal = terminal
        self.first = first
        self.rest = rest
        self.style = style
        self.lead = lead or Text()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        nodes = SyntaxTreeNode(PARSER.parse(self.source)).children
        first, rest = Text(self.first), Text(self.rest)
        if self.lead and nodes and nodes[0].type == "paragraph":
            yield Prose(Text.assemble(self.lead, inline(nodes[0], self)), first, rest)
            if nodes[1:]:
                yield Text(rest.plain.rstrip())
            nodes, first = nodes[1:], rest
        elif self.lead:
            yield Prose(self.lead, first, rest)
            first = rest
        yield from blocks(nodes, self, first, rest)


def blocks(
    nodes: Sequence[SyntaxTreeNode], page: Markdown, first: Text, rest: Text, *, is_tight: bool = False
) -> Iterator[RenderableType]:
    for number, node in enumerate(nodes):
        if number and not is_tight:
            yield Text(rest.plain.rstrip())
        yield from block(node, page, rest if number else first, rest)


def block(node: SyntaxTreeNode, page: Markdown, first: Text, rest: Text) -> Iterator[RenderableType]:
    if node.type == "paragraph":
        yield Prose(inline(node, page), first, rest)
    elif node.type == "heading":
        text = inline(node, page)
        text.stylize("bold")
        yield Prose(text, first, rest)
    elif node.type in ("bullet_list", "ordered_list"):
        yield from items(node, page, first, rest)
    elif node.type in ("fence", "code_block"):
        yield from behind(first, code_block(node.content, node.info, page.terminal), rest)
    elif node.type == "blockquote":
        bar = Text("| ", style="dim")
        yield from blocks(node.children, page, first + bar, rest + bar)
    elif node.type == "table":
        yield from behind(first, table(node, page), rest)
    elif node.type == "hr":
        yield Prose(Text("---", style="dim"), first, rest)
    else:  # raw HTML is shown as it stands
        yield Prose(Text(page.terminal.readable(node.content.rstrip("\n"))), first, rest)


def behind(first: Text, renderable: RenderableType, rest: Text) -> Iterator[RenderableType]:
    """A block that cannot carry a bullet: the bullet gets its own line."""
    if first.plain.strip() and first.plain != rest.plain:
        yield first
    yield Padding(renderable, (0, 0, 0, rest.cell_len))


def items(node: SyntaxTreeNode, page: Markdown, first: Text, rest: Text) -> Iterator[RenderableType]:
    start = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
    bullets = [
        f"{start + number}. " if start is not None else ("• " if page.terminal.has_unicode else "- ")
        for number in range(len(node.children))
    ]
    width = max(map(len, bullets))
    for number, (item, bullet) in enumerate(zip(node.children, bullets, strict=True)):
        is_tight = all(child.hidden for child in item.children if child.type == "paragraph")
        if number and not is_tight:
            yield Text(rest.plain.rstrip())
        lead = (rest if number else first) + Text(bullet.rjust(width), style="dim" if start is None else "")
        below = rest + Text(" " * width)
        if item.children:
            yield from blocks(item.children, page, lead, below, is_tight=is_tight)
        else:
            yield lead


def table(node: SyntaxTreeNode, page: Markdown) -> RenderableType:
    """Columns share the width; a head of empty cells is left out."""
    from rich import box  # few questions have a table
    from rich.table import Table

    rows = [list(row.children) for part in node.children for row in part.children]
    heads, *body = [[inline(cell, page) for cell in row] for row in rows]
    shown = Table(
        box=box.SIMPLE_HEAD if page.terminal.has_unicode else box.ASCII2,
        show_header=any(head.plain for head in heads),
        show_edge=False,
        pad_edge=False,
        padding=(0, 1),
        show_lines=False,
    )
    for head in heads:
        shown.add_column(Prose(head), overflow="fold")
    for row in body:
        shown.add_row(*map(Prose, row))
    return shown


def inline(node: SyntaxTreeNode, page: Markdown) -> Text:
    text = Text(style=page.style)
    for child in node.children:
        if child.type == "inline":
            add(text, child.children, page, "")
    return text


def add(text: Text, nodes: Sequence[SyntaxTreeNode], page: Markdown, style: str) -> None:
    """Appends spans of text with their styles; where styles do not show, code keeps its backquotes."""
    for number, node in enumerate(nodes):
        if node.type == "text":
            content = node.content.lstrip(" ") if text.plain[-1:] in ENDS_WITH_ROOM else node.content
            text.append(page.terminal.readable(content), style)
        elif node.type == "code_inline":
            quote = "" if page.terminal.has_colour else "`"
            text.append(f"{quote}{page.terminal.readable(node.content)}{quote}", f"{style} {CODE}".strip())
        elif node.type == "softbreak":
            text.append(joint(text.plain, nodes[number + 1 :]))
        elif node.type == "hardbreak":
            text.append("\n")
        elif node.type in ("em", "strong"):
            add(text, node.children, page, f"{style} {'italic' if node.type == 'em' else 'bold'}".strip())
        elif node.type == "link":
            start = len(text)
            add(text, node.children, page, style)
            if node.attrs["href"] != text.plain[start:]:
                text.append(f" ({node.attrs['href']})", style)
        else:
            text.append(page.terminal.readable(node.content), style)


def joint(before: str, after: Sequence[SyntaxTreeNode]) -> str:
    """What joins two lines of a paragraph: nothing next to a Chinese character, else a space."""
    following = next((node.content for node in after if node.content), " ")
    is_wide = any(get_character_cell_size(character) == 2 for character in (before[-1:] or " ", following[0]))
    return "" if is_wide else " "
