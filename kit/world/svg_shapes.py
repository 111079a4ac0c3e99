"""What the SVG of a timeline is made of: the styles of the spans, and spans folded together.

Every kind of span differs from the others in shade or hatch as well as in colour, for print and for colour-blind eyes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kit.world.timeline import Span

POINT_TO_POINT = ("send", "recv")
# class of a span -> (fill of its box, colour of its text, lines over the fill: colour and path in a square of 6, label)
_KINDS = {
    "F": ("#dbe9f6", "#10243a", "", "", "F forward"),
    "B": ("#356a9a", "#ffffff", "", "", "B backward"),
    "I": ("#b5d3a2", "#16300b", "#7fa768", "M0 1.5H6", "I input gradient"),
    "W": ("#5d8a3c", "#ffffff", "#8fb573", "M-1 5L1 7M-1 -1L7 7M5 -1L7 1", "W weight gradient"),
    "other": ("#efe8da", "#33291a", "#b9aa8c", "M1.5 1h.9M4.5 4h.9", "other compute"),
    "wait": ("#ffffff", "#666666", "#b8b8b8", "M-1 1L1 -1M-1 7L7 -1M5 7L7 5", "waits"),
    "message": ("#efa743", "#2b1a00", "", "", "send, recv"),
    "collective": ("#a3481f", "#ffffff", "", "", "collective"),
}


def kind(span: Span) -> str:
    """The class of the span in the drawing."""
    if span.lane == "wait":
        return "wait"
    if span.lane == "communication":
        return "message" if span.what in POINT_TO_POINT else "collective"
    return span.what if span.what in ("F", "B", "I", "W") else "other"


def legend(kinds: Iterable[str]) -> list[tuple[str, str]]:
    """(class, what it means) of those that occur, in a fixed order."""
    present = set(kinds)
    return [(name, meaning) for name, (*_, meaning) in _KINDS.items() if name in present]


def definitions() -> str:
    """The style sheet and the hatches."""
    styles = [
        ".sk text{font-family:system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#222}",
        ".sk .grid{stroke:#e2e2e2}.sk .line{stroke:#888;fill:none}.sk .base{fill:#f7f7f7}",
        ".sk .small{font-size:11px;fill:#555}.sk .title{font-size:16px;font-weight:600}.sk .mid{text-anchor:middle}"
        ".sk .end{text-anchor:end}.sk .mark{fill:#c2185b}.sk .bar{fill:#000;fill-opacity:.45}"
        ".sk .B .bar,.sk .W .bar{fill:#fff;fill-opacity:.6}",
    ]
    hatches = []
    for name, (fill, ink, lines, path, _) in _KINDS.items():
        paint = f"url(#sk-{name})" if path else fill
        edge = "none" if name == "wait" else "#26415c"
        styles.append(f".sk .{name} rect{{fill:{paint};stroke:{edge};stroke-width:.6}}.sk .{name} text{{fill:{ink}}}")
        if path:
            hatches.append(
                f'<pattern id="sk-{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
                f'<path d="M0 0H6V6H0Z" fill="{fill}"/><path d="{path}" stroke="{lines}" fill="none"/></pattern>'
            )
    styles.append(".sk.dense g rect{stroke-width:.15}")
    return f"<style>{''.join(styles)}</style><defs>{''.join(hatches)}</defs>"


@dataclass(frozen=True, slots=True)
class Shape:
    """What is drawn as one box: a span, or several that are too narrow to be told apart."""

    kind: str
    start_s: float
    end_s: float
    span: Span
    count: int = 1


def folded(spans: Sequence[Span], least_s: float) -> list[Shape]:
    """Spans of one row, in order; neighbours shorter than least_s become one shape of the kind that fills most of it.

    Spans without length are left out.
    """
    shapes: list[Shape] = []
    run: list[Span] = []
    for span in spans:
        if span.duration_s <= 0:
            continue
        is_short = span.duration_s < least_s
        if run and (span.start_s - run[-1].end_s >= least_s or span.end_s - run[0].start_s > least_s):
            shapes.append(_together(run))
            run = []
        if is_short:
            run.append(span)
        else:
            shapes.append(Shape(kind(span), span.start_s, span.end_s, span))
    return [*shapes, _together(run)] if run else shapes


def _together(run: Sequence[Span]) -> Shape:
    filled_s: dict[str, float] = {}
    for span in run:
        filled_s[kind(span)] = filled_s.get(kind(span), 0.0) + span.duration_s
    most = max(filled_s, key=lambda name: filled_s[name])
    first = next(span for span in run if kind(span) == most)
    return Shape(most, run[0].start_s, max(span.end_s for span in run), first, len(run))
