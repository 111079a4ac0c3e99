"""Whatever is typed is shown, and is never Markdown or HTML: held against a parser of each."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from kit.interview.escaping import fenced, in_html, in_markdown, quoted, visible

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
SIGNS = st.text(alphabet=st.sampled_from("`*_[]()<>&#+-=.!|~$\\\"'/:; \n\t1a中\u202e\x1b"), max_size=30)
HOSTILE = [
    "<script>alert(1)</script>",
    "# Hired",
    "[a](javascript:alert(1))",
    "![a](https://example.org/a.png)",
    "1. one",
    "12) twelve",
    "- a list",
    "+ a list",
    "===",
    "---",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "```\ncode\n```",
    "    four spaces",
    "&lt;b&gt;",
    "&#60;b>",
    "a\\",
    "\\<b>",
    "<https://example.org>",
    "[ref]: https://example.org",
    "> quoted",
    "*a* _b_ ~~c~~ `d`",
    "<!-- hidden",
    "</pre></article>",
]


def plain(node: SyntaxTreeNode) -> str:
    """The text of a node that holds nothing but text."""
    assert all(child.type in ("text", "inline") for child in node.children), [child.type for child in node.children]
    return "".join(child.content if child.type == "text" else plain(child) for child in node.children)


def one_line(text: str) -> str:
    return " ".join(visible(text).split())


@pytest.mark.parametrize("text", HOSTILE)
def test_a_line_of_markdown_shows_the_text_and_nothing_else(text: str) -> None:
    (paragraph,) = SyntaxTreeNode(PARSER.parse(in_markdown(text))).children
    assert paragraph.type == "paragraph" and plain(paragraph) == one_line(text)


@given(SIGNS | st.text(max_size=40))
@example("1.")
@example("&amp;")
def test_any_text_is_one_paragraph_of_text(text: str) -> None:
    blocks = SyntaxTreeNode(PARSER.parse(in_markdown(text))).children
    assert "".join(map(plain, blocks)) == one_line(text)
    assert [block.type for block in blocks] == ["paragraph"] * bool(one_line(text))


@given(SIGNS | st.text(max_size=40))
@example("```\n````\n`````")
@example("~~~")
def test_a_fence_holds_any_text(text: str) -> None:
    (block,) = SyntaxTreeNode(PARSER.parse(fenced(text) + "\n\nafter")).children[:1]
    assert block.type == "fence" and block.content.strip("\n") == visible(text).strip("\n")
    last = SyntaxTreeNode(PARSER.parse(fenced(text) + "\n\nafter")).children[-1]
    assert last.type == "paragraph" and plain(last) == "after"


@given(SIGNS | st.text(max_size=40))
@example("a\n\n    b\n- c")
def test_a_note_is_a_quote_of_paragraphs(text: str) -> None:
    blocks = SyntaxTreeNode(PARSER.parse(quoted(text))).children
    wanted = [line for line in map(one_line, visible(text).split("\n")) if line]
    assert [block.type for block in blocks] == ["blockquote"] * bool(wanted)
    assert [plain(each) for block in blocks for each in block.children] == wanted


@given(SIGNS | st.text(max_size=40))
@example('"><img src=x onerror=alert(1)>')
def test_html_is_text_in_an_element_and_in_an_attribute(text: str) -> None:
    seen: list[object] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            seen.append((tag, attrs))

        def handle_data(self, content: str) -> None:
            seen.append(content)

    reader = Reader()
    reader.feed(f'<p title="{in_html(text)}">{in_html(text)}</p>')
    reader.close()
    assert seen[0] == ("p", [("title", visible(text))])
    assert all(isinstance(each, str) for each in seen[1:]) and "".join(map(str, seen[1:])) == visible(text)


def test_what_cannot_be_seen_is_shown_as_such() -> None:
    assert visible("a\x1b[31mb\x00\u202ec\r\nd\te\ud800") == "a\ufffd[31mb\ufffd\ufffdc\nd\te\ufffd"
