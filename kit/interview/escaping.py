"""Text that somebody else wrote, made harmless inside a Markdown or an HTML page."""

from __future__ import annotations

import html
import re

# Controls could hide text or end a line; the second group turns the direction of what follows.
INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]|[\u202a-\u202e\u2066-\u2069\u200e\u200f\u2028\u2029]"
)
MARKS = re.compile(r"([\\`*_\[\]|~$#!])")
BULLET = re.compile(r"^([-+=])")
NUMBERED = re.compile(r"^(\d{1,9})([.)])(?= |$)")
FENCES = re.compile(r"`{3,}")


def visible(text: str) -> str:
    """Line ends as \\n, tabs as they are, and a replacement sign for what cannot be seen."""
    return INVISIBLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def in_html(text: str) -> str:
    """For an element or an attribute in quotes."""
    return html.escape(visible(text), quote=True)


def in_markdown(text: str) -> str:
    """One line of Markdown that shows `text` and nothing else; white space becomes single spaces."""
    line = " ".join(visible(text).split())
    line = MARKS.sub(r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    return NUMBERED.sub(r"\1\\\2", BULLET.sub(r"\\\1", line))


def fenced(text: str) -> str:
    """A block of Markdown that shows `text` as it stands; its fence is longer than any within."""
    body = visible(text).strip("\n")
    fence = "`" * (1 + max((len(found[0]) for found in FENCES.finditer(body)), default=2))
    return f"{fence}text\n{body}\n{fence}"


def quoted(text: str) -> str:
    """Lines of a note as a block quote, each on a line of its own."""
    lines = [in_markdown(line) for line in visible(text).strip().split("\n")]
    return "\n>\n".join(f"> {line}" for line in lines if line)
