"""Any text as XML can carry it: a label comes from the program that was run."""

from __future__ import annotations

from xml.sax.saxutils import escape


def legal(text: str) -> str:
    """Without the characters that XML cannot carry."""
    if text.isprintable():
        return text
    return "".join(c if _is_legal(c) else "?" for c in text)


def _is_legal(character: str) -> bool:
    if character in "\t\n":
        return True
    return character >= " " and character not in "\ufffe\uffff" and not "\ud800" <= character <= "\udfff"


def quoted(text: str) -> str:
    """As the text of an element."""
    return escape(legal(text))
