"""Source code on the screen."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from kit.screen.terminal import Terminal
from kit.screen.wrap import longest_fit

INDENT = 2
MIN_CODE_WIDTH = 10


def code_block(source: str, language: str, terminal: Terminal) -> RenderableType:
    """Indented, highlighted where there is colour, and otherwise as it stands; long lines fold."""
    plain = terminal.readable(source.rstrip("\n"))
    if terminal.has_colour and language:
        from rich.syntax import Syntax

        syntax = Syntax(plain, language, theme="ansi_dark", background_color="default", word_wrap=True)
        return Padding(syntax, (0, 0, 0, INDENT))
    return Padding(Text(plain, overflow="fold"), (0, 0, 0, INDENT))


def numbered_code(source: str, language: str, terminal: Terminal, width: int) -> Iterator[Text]:
    """Each line with its number, from 1; what is wider than `width` goes on below, under its own beginning."""
    text = highlighted(source, language, terminal)
    lines = list(text.split("\n", allow_blank=False))
    digits = len(str(len(lines)))
    for number, line in enumerate(lines, 1):
        yield from folded(line, f"{number:>{digits}}  ", width)


def highlighted(source: str, language: str, terminal: Terminal) -> Text:
    plain = terminal.readable(source.rstrip("\n"))
    if not (terminal.has_colour and language):
        return Text(plain)
    from rich.syntax import Syntax

    return Syntax(plain, language, theme="ansi_dark", background_color="default").highlight(plain)


def folded(line: Text, lead: str, width: int, style: str = "dim") -> Iterator[Text]:
    """One line of code in as many as it takes; the later ones begin two cells deeper than its own code."""
    depth = len(line.plain) - len(line.plain.lstrip())
    deeper = " " * min(depth + INDENT, max(width - len(lead) - MIN_CODE_WIDTH, 0))
    first = True
    while first or line.plain:
        room = max(width - len(lead) - (0 if first else len(deeper)), MIN_CODE_WIDTH)
        count = best_cut(line.plain, room)
        part, line = line[:count], line[count:]
        part.rstrip()
        begin = Text(lead, style=style) if first else Text(" " * len(lead) + deeper)
        yield Text.assemble(begin, part, no_wrap=True, overflow="ignore")
        first = False


def best_cut(plain: str, room: int) -> int:
    """How many characters stay on this line: up to a space, else a bracket or dot, in its later half."""
    count = longest_fit(plain, room)
    if count == len(plain):
        return count
    code = plain[:count]
    for place in (code.rfind(" ") + 1, max(code.rfind(each) for each in "([{,") + 1, code.rfind(".")):
        if place > count // 2 and plain[:place].strip():
            return place
    return count
