"""What the terminal can show: its width, colour, and characters beyond ASCII."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from kit.errors import KitError

MIN_WIDTH = 20
MAX_PROSE_WIDTH = 100  # longer lines are hard to read
CONTROLS = {code: "?" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
C_LOCALES = ("", "C", "POSIX")

IN_ASCII = {
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    **dict.fromkeys("–—−‑", "-"),
    **dict.fromkeys("·•∙⋅", "*"),
    **dict.fromkeys("×✕", "x"),
    "…": "...",
    "→": "->",
    "←": "<-",
    "↔": "<->",
    "⇒": "=>",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "≈": "~",
    "±": "+/-",
    "÷": "/",
    "∞": "inf",
    "√": "sqrt ",
    "∂": "d",
    "∇": "grad ",
    "∈": "in",
    "⌈": "ceil(",
    "⌉": ")",
    "⌊": "floor(",
    "⌋": ")",
    "Σ": "Sum ",
    "∑": "Sum ",
    "Π": "Prod ",
    "∏": "Prod ",
    "§": "section ",
    "✓": "+",
    "✗": "-",
}


@dataclass(frozen=True, slots=True)
class Terminal:
    width: int
    has_colour: bool
    has_unicode: bool
    is_terminal: bool
    is_interactive: bool  # the input is typed, whether or not the output goes on to a file
    encoding: str

    def readable(self, text: str) -> str:
        """`text` in characters that this terminal shows: `2(n-1)/n · Ψ` -> `2(n-1)/n * Psi`. Chinese stays Chinese.

        Control characters, which could move the cursor or recolour the screen, become question marks.
        """
        text = text.translate(CONTROLS)
        if self.has_unicode or text.isascii():
            return text
        return "".join(character if character.isascii() else in_ascii(character) for character in text)


def detect(output: TextIO | None = None, environ: Mapping[str, str] = os.environ) -> Terminal:
    """The terminal behind `output` (standard output unless given), without asking it anything."""
    stream = sys.stdout if output is None else output
    is_terminal = stream.isatty()
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return Terminal(
        width=max(shutil.get_terminal_size((80, 24)).columns, MIN_WIDTH),
        has_colour=colour(is_terminal, environ),
        has_unicode=shows_unicode(encoding, environ),
        is_terminal=is_terminal,
        is_interactive=sys.stdin is not None and sys.stdin.isatty(),
        encoding=encoding,
    )


def colour(is_terminal: bool, environ: Mapping[str, str]) -> bool:
    """NO_COLOR and a dumb terminal have none; FORCE_COLOR has it in a pipe too."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return is_terminal and environ.get("TERM", "") not in ("", "dumb", "unknown")


def shows_unicode(encoding: str, environ: Mapping[str, str]) -> bool:
    """Whether the locale asks for UTF-8. Unset altogether, as in most containers, counts as UTF-8."""
    if not encoding.lower().replace("-", "").startswith("utf"):
        return False
    lang = environ.get("LANG", "")
    ctype = environ.get("LC_CTYPE", "")
    if lang in C_LOCALES and ctype in ("C.UTF-8", "C.utf8", "UTF-8"):
        ctype = ""  # Python itself sets this in the C locale, whatever the terminal shows
    locale = environ.get("LC_ALL") or ctype or lang
    return locale == "" or locale.split("@")[0].lower().replace("-", "").endswith("utf8")


def preferred_language(environ: Mapping[str, str] = os.environ) -> str:
    """`zh` where the locale is Chinese, else `en`."""
    locale = environ.get("LC_ALL") or environ.get("LC_MESSAGES") or environ.get("LANG") or ""
    return "zh" if locale.startswith("zh") else "en"


def in_ascii(character: str) -> str:
    if character in IN_ASCII:
        return IN_ASCII[character]
    if unicodedata.east_asian_width(character) in "WF":
        return character
    name = unicodedata.name(character, "")
    if name.startswith("GREEK "):  # GREEK CAPITAL LETTER PSI -> Psi
        letter = name.split(" WITH ")[0].rsplit(" ", 1)[-1].lower()
        return letter.capitalize() if " CAPITAL " in name else letter
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return plain or "?"


def require_language(terminal: Terminal, language: str) -> None:
    """Raises KitError where the output's encoding has no Chinese."""
    if language != "zh":
        return
    try:
        "中文".encode(terminal.encoding)
    except (UnicodeEncodeError, LookupError):
        raise KitError(
            f"this terminal's encoding, {terminal.encoding}, has no Chinese",
            hint="set LANG to a UTF-8 locale, or PYTHONIOENCODING=utf-8, or use --lang en",
        ) from None
