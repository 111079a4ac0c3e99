"""What the terminal can show, from the environment alone."""

from __future__ import annotations

import io
import string

import pytest

from kit.errors import KitError
from kit.screen.terminal import Terminal, colour, detect, preferred_language, require_language, shows_unicode


def terminal(*, has_unicode: bool, encoding: str = "utf-8") -> Terminal:
    return Terminal(80, False, has_unicode, False, False, encoding)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, True),
        ({"LANG": "en_US.UTF-8"}, True),
        ({"LANG": "zh_CN.utf8"}, True),
        ({"LANG": "ca_ES.UTF-8@valencia"}, True),
        ({"LANG": "C"}, False),
        ({"LANG": "POSIX"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),  # as Python sets it in the C locale
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "C", "LC_ALL": "C.UTF-8"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LC_CTYPE": "UTF-8"}, True),
    ],
)
def test_the_locale_says_whether_there_is_unicode(environ: dict[str, str], expected: bool) -> None:
    assert shows_unicode("utf-8", environ) is expected


def test_an_ascii_encoding_has_no_unicode() -> None:
    assert not shows_unicode("ascii", {"LANG": "en_US.UTF-8"})
    assert not shows_unicode("ISO-8859-1", {})


@pytest.mark.parametrize(
    ("is_terminal", "environ", "expected"),
    [
        (True, {"TERM": "xterm-256color"}, True),
        (True, {"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm-256color", "NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {}, False),
        (False, {"TERM": "xterm"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(is_terminal: bool, environ: dict[str, str], expected: bool) -> None:
    assert colour(is_terminal, environ) is expected


def test_signs_have_their_spelling_in_ascii() -> None:
    plain = terminal(has_unicode=False)
    assert plain.readable("2(n-1)/n · Ψ ≤ 3 × α → ∞") == "2(n-1)/n * Psi <= 3 x alpha -> inf"
    assert plain.readable("“naïve”…") == '"naive"...'
    assert plain.readable("模型，Σ") == "模型，Sum "
    assert plain.readable("\u2603") == "?"
    assert terminal(has_unicode=True).readable("Ψ ≤ 3") == "Ψ ≤ 3"


def test_ascii_stays_as_it_is() -> None:
    text = string.ascii_letters + string.digits + string.punctuation + " \n\t"
    assert terminal(has_unicode=False).readable(text) == text


@pytest.mark.parametrize("has_unicode", [True, False])
def test_nothing_moves_the_cursor(has_unicode: bool) -> None:
    assert terminal(has_unicode=has_unicode).readable("a\x1b[2Jb\r\x07\x9bc\x7f") == "a?[2Jb???c?"


def test_a_file_is_no_terminal() -> None:
    found = detect(io.StringIO())
    assert not found.is_terminal and not found.has_colour


@pytest.mark.parametrize(
    ("environ", "expected"),
    [({}, "en"), ({"LANG": "zh_CN.UTF-8"}, "zh"), ({"LANG": "zh_CN.UTF-8", "LC_ALL": "en_US.UTF-8"}, "en")],
)
def test_the_locale_chooses_the_language(environ: dict[str, str], expected: str) -> None:
    assert preferred_language(environ) == expected


def test_chinese_where_the_encoding_has_none_is_refused_with_what_to_do() -> None:
    require_language(terminal(has_unicode=False, encoding="gb18030"), "zh")
    require_language(terminal(has_unicode=False, encoding="ascii"), "en")
    with pytest.raises(KitError, match="ascii, has no Chinese") as caught:
        require_language(terminal(has_unicode=False, encoding="ascii"), "zh")
    assert "LANG" in str(caught.value.hint)
