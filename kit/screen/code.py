"""Source code on the screen."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from kit.screen.terminal import Terminal

INDENT = 2


def code_block(source: str, language: str, terminal: Terminal) -> RenderableType:
    """Indented, highlighted where there is colour, and otherwise as it stands; long lines fold."""
    plain = terminal.readable(source.rstrip("\n"))
    if terminal.has_colour and language:
        from rich.syntax import Syntax

        syntax = Syntax(plain, language, theme="ansi_dark", background_color="default", word_wrap=True)
        return Padding(syntax, (0, 0, 0, INDENT))
    return Padding(Text(plain, overflow="fold"), (0, 0, 0, INDENT))
