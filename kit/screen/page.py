"""One output for a person: a console, what its terminal can show, and the language."""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console, RenderableType
from rich.text import Text

from kit.screen.code import code_block
from kit.screen.terminal import MAX_PROSE_WIDTH, Terminal, detect, require_language
from kit.screen.words import Language, say
from kit.screen.wrap import Prose


class PipeConsole(Console):
    """Leaves a broken pipe to the command, which knows its exit code."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Page:
    """Prints to standard output unless given another file. Raises KitError where the language cannot be shown."""

    def __init__(self, language: Language = "en", file: TextIO | None = None, terminal: Terminal | None = None) -> None:
        self.language: Language = language
        self.file = file or sys.stdout
        self.terminal = terminal or detect(self.file)
        require_language(self.terminal, language)
        self.console = PipeConsole(
            file=self.file,
            width=page_width(self.terminal),
            height=24,
            force_terminal=self.terminal.has_colour,
            no_color=not self.terminal.has_colour,
            highlight=False,
            markup=False,
            emoji=False,
        )

    @property
    def width(self) -> int:
        return self.console.width

    def say(self, key: str, *parts: object, **values: object) -> str:
        """A phrase of the screens in this page's language."""
        return self.readable(say(self.language, key, *parts, **values))

    def readable(self, text: str) -> str:
        return self.terminal.readable(text)

    def blank(self) -> None:
        self.console.print()

    def line(self, text: str | Text = "", style: str = "", indent: str = "") -> None:
        """Plain text, wrapped."""
        styled = Text(self.readable(text), style=style) if isinstance(text, str) else text
        self.console.print(Prose(styled, Text(indent), Text(indent)))

    def heading(self, text: str) -> None:
        self.blank()
        self.line(text, style="bold")

    def markdown(
        self, source: str, first: str = "", rest: str | None = None, style: str = "", lead: Text | None = None
    ) -> None:
        from kit.screen.markdown import Markdown  # a list shows none

        self.console.print(Markdown(source, self.terminal, first, first if rest is None else rest, style, lead))

    def source(self, text: str, language: str = "python") -> None:
        self.console.print(code_block(text, language, self.terminal))

    def print(self, renderable: RenderableType) -> None:
        self.console.print(renderable)

    def unbroken(self, text: str, style: str = "") -> None:
        """A line that must stay whole, as an address does."""
        self.console.print(Text(text, style=style), soft_wrap=True)

    def rule(self) -> None:
        """A line across the page, between questions."""
        self.blank()
        self.line(("─" if self.terminal.has_unicode else "-") * self.width, style="dim")
        self.blank()

    def fit(self) -> None:
        """Follow a window that has changed its size."""
        if self.terminal.is_terminal:
            self.console.width = page_width(detect(self.file))


def page_width(terminal: Terminal) -> int:
    return min(terminal.width, MAX_PROSE_WIDTH)
