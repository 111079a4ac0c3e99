"""Pages whose output is kept as text."""

from __future__ import annotations

import io

from kit.screen.page import Page
from kit.screen.terminal import Terminal
from kit.screen.words import Language


def page(
    language: Language = "en",
    *,
    width: int = 60,
    has_colour: bool = False,
    has_unicode: bool = True,
    is_terminal: bool = False,
) -> Page:
    return Page(language, io.StringIO(), Terminal(width, has_colour, has_unicode, is_terminal, False, "utf-8"))


def text_of(shown: Page) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()
