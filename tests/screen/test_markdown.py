"""Markdown as the questions use it."""

from __future__ import annotations

import textwrap

from tests.screen.pages import page, text_of


def shown(source: str, width: int = 40, **options: bool) -> str:
    out = page(width=width, **options)
    out.markdown(textwrap.dedent(source))
    return "\n".join(line.rstrip() for line in text_of(out).splitlines())


def test_lines_of_a_paragraph_are_joined() -> None:
    assert shown("One sentence.\nAnother.\n\nA new paragraph.") == "One sentence. Another.\n\nA new paragraph."


def test_chinese_lines_are_joined_without_a_space() -> None:
    assert shown("先求和。\n再平均。\n用 `mean`\n表示") == "先求和。再平均。用 `mean`表示"


def test_lists_hang_and_nest() -> None:
    assert shown(
        """\
            - a point that is longer than one line of this page
              - below it
            - last

            2. two
            3. three
            """
    ) == textwrap.dedent(
        """\
            • a point that is longer than one line
              of this page
              • below it
            • last

            2. two
            3. three"""
    )


def test_bullets_without_unicode_are_hyphens() -> None:
    assert shown("- one\n- two", has_unicode=False) == "- one\n- two"


def test_code_keeps_its_lines_and_its_backquotes_where_colour_is_missing() -> None:
    assert shown("Call `f(x)`:\n\n```python\nfor x in y:\n    f(x)\n```") == (
        "Call `f(x)`:\n\n  for x in y:\n      f(x)"
    )


def test_code_is_styled_where_there_is_colour() -> None:
    coloured = shown("Call `f(x)`.", has_colour=True)
    assert "\x1b[36mf(x)" in coloured and "`" not in coloured


def test_stars_and_underscores_of_formulas_in_code_stay() -> None:
    assert shown("`2 * a * b` and `_x_`, b_i and l_i, 2 * 3 * 4") == "`2 * a * b` and `_x_`, b_i and l_i, 2 *\n3 * 4"


def test_a_table_fits_and_aligns_chinese() -> None:
    source = "| 名称 | 含义 |\n|---|---|\n| `shape` | 模型输入的形状，各 microbatch 可以不同 |\n| 短 | y |\n"
    text = shown(source, width=30)
    lines = text.splitlines()
    assert all(len(line.encode("gbk")) <= 30 for line in lines if "─" not in line), text
    rows = [line.encode("gbk") for line in (lines[2], lines[-1])]
    starts = {row.index(cell.encode("gbk")) for row, cell in zip(rows, ("模型", "y"), strict=True)}
    assert len(starts) == 1, text


def test_a_table_without_heads_has_no_head() -> None:
    assert shown("| | |\n|---|---|\n| a | b |\n") == "a   b"


def test_quotes_links_html_and_rules() -> None:
    assert shown("> said\n> so") == "| said so"
    assert shown("[text](https://a.b/c) and <https://d.e>", 70) == "text (https://a.b/c) and https://d.e"
    assert shown("a <b> c") == "a <b> c"
    assert shown("a\n\n---\n\nb") == "a\n\n---\n\nb"


def test_bold_labels_in_chinese_leave_no_double_space() -> None:
    assert shown("**通信量。** 每个 rank") == "通信量。每个 rank"


def test_rich_markup_and_emoji_codes_are_plain_text() -> None:
    assert shown("[bold]x[/bold] :smile: [/]") == "[bold]x[/bold] :smile: [/]"


def test_nothing_is_an_empty_page() -> None:
    assert shown("") == ""
