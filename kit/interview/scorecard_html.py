"""A scorecard as one HTML file: no scripts, nothing from outside, readable on a screen, in the dark and on paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from markdown_it import MarkdownIt

from kit.interview.card_words import say
from kit.interview.escaping import in_html, visible
from kit.interview.sheet import Answer, Line, Row, Section, Sheet

STYLE = """\
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c2128; --quiet: #57606a; --line: #d0d7de; --soft: #f4f6f8;
  --good: #1a7f37; --bad: #b42318; --bar: #3866c4; }
@media screen and (prefers-color-scheme: dark) {
  :root { --page: #14181d; --ink: #e6e9ed; --quiet: #a3adb8; --line: #3a434d; --soft: #1d232a; --good: #5bc873;
    --bad: #ff8f85; --bar: #7aa2f7; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.55;
  font-family: system-ui, -apple-system, "Segoe UI", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; }
main { max-width: 50rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin: 1.75rem 0 .75rem; }
h4 { font-size: 1.05rem; margin: 0; }
h5 { font-size: .85rem; margin: 1rem 0 .25rem; color: var(--quiet); }
p { margin: .35rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; margin: 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); font-size: .9rem; font-weight: 400; }
.warning { border-left: 4px solid var(--bad); padding: .4rem .8rem; background: var(--soft); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--quiet); font-weight: 600; font-size: .9rem; }
tbody th { font-weight: 600; }
.share { display: flex; align-items: center; gap: .6rem; min-width: 9rem; }
.share > span:last-child { min-width: 3rem; text-align: right; }
.bar { flex: 1; height: .6rem; border: 1px solid var(--line); border-radius: .3rem; overflow: hidden; }
.bar > span { display: block; height: 100%; background: var(--bar); print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
article { border: 1px solid var(--line); border-radius: .5rem; padding: .9rem 1.1rem 1.1rem; margin: 0 0 1rem; }
.verdict { float: right; margin-left: 1rem; font-weight: 600; }
pre { margin: .25rem 0; padding: .6rem .8rem; background: var(--soft); border-radius: .35rem; overflow-x: auto;
  font: .88rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Noto Sans Mono CJK SC", monospace; }
code { font: .9em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.typed { white-space: pre-wrap; overflow-wrap: anywhere; }
ul, ol { margin: .25rem 0; padding-left: 1.4rem; }
ul.points { list-style: none; padding: 0; }
ul.points > li { display: grid; grid-template-columns: 1.2rem 1fr max-content; gap: .4rem; padding: .2rem 0; }
ul.points p { margin: 0; }
ul.points > li > div { min-width: 0; }
.met { color: var(--good); font-weight: 700; }
.partly { font-weight: 700; }
.missed { color: var(--bad); font-weight: 700; }
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--quiet); }
@media (max-width: 32rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; } }
@media print {
  @page { margin: 16mm; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  h2, h3, h4, h5, summary { break-after: avoid; }
  tr, li, pre { break-inside: avoid; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--line); }
  details::details-content { content-visibility: visible; display: block; block-size: auto; }
}
"""

SIGNS = {"met": "✓", "partly": "~", "missed": "✗", "open": "–"}
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(sheet: Sheet) -> str:
    language = sheet.language
    lines = [
        "<!doctype html>",
        f'<html lang="{"zh-CN" if language == "zh" else "en"}">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{in_html(POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{in_html(sheet.title)}</title>",
        f"<style>\n{STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        *head(sheet),
        *topics(sheet),
        *parts(sheet),
        *study(sheet),
        f"<h2>{text(sheet, 'answers')}</h2>",
        *(line for section in sheet.sections for line in answers(sheet, section)),
        f'<p class="quiet">{text(sheet, "made_by")}</p>',
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def text(sheet: Sheet, key: str) -> str:
    return in_html(say(sheet.language, key))


def head(sheet: Sheet) -> list[str]:
    overall = [f"<h2>{text(sheet, 'overall')}</h2>", f'<p class="typed">{in_html(sheet.overall.strip())}</p>']
    overall = overall if sheet.overall.strip() else []
    warning = [] if sheet.is_finished else [f'<p class="warning">{text(sheet, "unfinished")}</p>']
    return [
        "<header>",
        f"<h1>{in_html(sheet.title)}</h1>",
        *warning,
        "<dl>",
        *(f"<dt>{in_html(label)}</dt><dd>{in_html(value)}</dd>" for label, value in sheet.facts),
        "</dl>",
        f'<p class="quiet">{text(sheet, "plan_compares")}</p>',
        "</header>",
        *overall,
    ]


def topics(sheet: Sheet) -> list[str]:
    if not sheet.topics:
        return []
    return table(sheet, "topics", ("head_topic", "head_questions", "head_score"), sheet.topics)


def parts(sheet: Sheet) -> list[str]:
    heads = ("head_part", "head_planned", "head_used", "head_asked", "head_score")
    return table(sheet, "parts", heads, sheet.parts)


def table(sheet: Sheet, title: str, heads: Sequence[str], rows: Iterable[Row]) -> list[str]:
    """Under a heading, which names it for a screen reader as well."""
    return [
        f'<h2 id="{title}">{text(sheet, title)}</h2>',
        f'<table aria-labelledby="{title}">',
        "<thead><tr>" + "".join(f'<th scope="col">{text(sheet, name)}</th>' for name in heads) + "</tr></thead>",
        "<tbody>",
        *(row_of(row) for row in rows),
        "</tbody>",
        "</table>",
    ]


def row_of(row: Row) -> str:
    first, *others = row.cells
    cells = "".join(f"<td>{in_html(cell)}</td>" for cell in others)
    return f'<tr><th scope="row">{in_html(first)}</th>{cells}<td>{bar(row)}</td></tr>'


def bar(row: Row) -> str:
    if row.share is None:
        return in_html(row.shown)
    filled = f'<span style="width: {100 * min(max(row.share, 0.0), 1.0):.0f}%"></span>'
    drawn = f'<span class="bar" aria-hidden="true">{filled}</span>'
    return f'<div class="share">{drawn}<span>{in_html(row.shown)}</span></div>'


def study(sheet: Sheet) -> list[str]:
    lines = [f"<h2>{text(sheet, 'study')}</h2>"]
    if not sheet.study:
        return [*lines, f"<p>{text(sheet, 'study_nothing' if sheet.is_answered else 'study_unknown')}</p>"]
    comma = text(sheet, "comma")
    entries = [
        f"<li>{in_html(each.title)} <code>{in_html(each.question_id)}</code>{comma}{in_html(each.reason)}</li>"
        for each in sheet.study
    ]
    lead = text(sheet, "study_command") + text(sheet, "colon")
    commands = [f"<p>{lead}<code>{in_html(command)}</code></p>" for command in sheet.commands]
    return [*lines, "<ol>", *entries, "</ol>", *commands]


def answers(sheet: Sheet, section: Section) -> list[str]:
    title = f'<h3>{in_html(section.title)} <span class="quiet">{in_html(section.time)}</span></h3>'
    return [
        "<section>",
        title,
        *(line for answer in section.answers for line in article(sheet, answer)),
        "</section>",
    ]


def article(sheet: Sheet, answer: Answer) -> list[str]:
    facts = text(sheet, "comma").join(map(in_html, answer.facts))
    shown = answer.verdict if not answer.is_asked else f"{answer.verdict}{say(sheet.language, 'comma')}{answer.score}"
    lines = [
        "<article>",
        f'<p class="verdict">{in_html(shown)}</p>',
        f"<h4>{in_html(answer.title)}</h4>",
        f'<p class="quiet"><code>{in_html(answer.question_id)}</code>{text(sheet, "comma")}{facts}</p>',
    ]
    if not answer.is_touched:
        return [*lines, "</article>"]
    if answer.prompt:
        lines += folded(sheet, "question", rendered(answer.prompt))
    else:
        lines.append(f"<p>{text(sheet, 'no_question')}</p>")
    if answer.is_asked or answer.given.strip():
        lines += [f"<h5>{text(sheet, 'answer')}</h5>", typed(answer.given, text(sheet, "no_answer"))]
        lines += entries_of(answer.picked, is_ordered=answer.is_ordered)
    if answer.right:
        lines += [f"<h5>{text(sheet, 'right_answer')}</h5>", *entries_of(answer.right, is_ordered=answer.is_ordered)]
    if answer.explanation:
        lines += folded(sheet, "explanation", rendered(answer.explanation))
    lines += listed(sheet, "points", answer.points)
    if answer.grade:
        entries = [f"<li>{in_html(entry)}</li>" for entry in answer.grade]
        lines += [f"<h5>{text(sheet, 'grade')}</h5>", "<ul>", *entries, "</ul>"]
    lines += listed(sheet, "follow_ups", answer.follow_ups)
    if answer.red_flags:
        lines += [f"<h5>{text(sheet, 'red_flags')}</h5>", *entries_of(answer.red_flags)]
    if answer.notes.strip():
        lines += [f"<h5>{text(sheet, 'notes')}</h5>", f'<p class="typed">{in_html(answer.notes.strip())}</p>']
    if answer.model_answer:
        lines += folded(sheet, "model_answer", rendered(answer.model_answer))
    return [*lines, "</article>"]


def reply_to(sheet: Sheet, line: Line) -> str:
    said = typed(line.typed, "") if line.typed.strip() else ""
    return said + ("\n".join(folded(sheet, "strong_answer", rendered(line.model))) if line.model else "")


def entries_of(entries: Sequence[str], *, is_ordered: bool = False) -> list[str]:
    """A list of the bank's Markdown; none for nothing."""
    tag = "ol" if is_ordered else "ul"
    return [f"<{tag}>", *(f"<li>{rendered(entry)}</li>" for entry in entries), f"</{tag}>"] if entries else []


def typed(given: str, otherwise: str) -> str:
    """What somebody typed, line by line as it stands."""
    if not given.strip():
        return f'<p class="quiet">{otherwise}</p>'
    return f'<pre class="typed">{in_html(given.strip(chr(10)))}</pre>'


def folded(sheet: Sheet, key: str, content: str) -> list[str]:
    return ["<details>", f"<summary>{text(sheet, key)}</summary>", content, "</details>"]


def listed(sheet: Sheet, key: str, lines: Sequence[Line]) -> list[str]:
    if not lines:
        return []
    entries = [
        f'<li><span class="{line.state}">{SIGNS[line.state]}</span>'
        f"<div>{rendered(line.text)}{reply_to(sheet, line)}</div><span>{in_html(line.said)}</span></li>"
        for line in lines
    ]
    return [f"<h5>{text(sheet, key)}</h5>", '<ul class="points">', *entries, "</ul>"]


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """The bank's Markdown, without raw HTML and without pictures, which would come from outside."""
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def rendered(markdown: str) -> str:
    return str(parser().render(visible(markdown))).rstrip("\n")
