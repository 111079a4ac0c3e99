"""A timeline as one SVG file that needs nothing else: a strip for each rank, time to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kit.world.picture import axis, rows
from kit.world.svg_shapes import Shape, definitions, folded, kind, legend
from kit.world.timeline import Span, Timeline
from kit.world.xml_text import quoted

_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 62.0, 84.0, 36.0
_MANY_RANKS = 16  # from here on strips are thinner
_MOST_SHAPES = 20_000
_LEAST_PX = 0.7  # what is narrower cannot be seen apart
_MOST_ROWS = 12  # of operations in flight together
_MOST_CHUNKS = 4  # of a rank that are told apart
_CHARACTER_PX = 0.62  # width of a character in its font size, of the widest font that is asked for


def svg(timeline: Timeline, title: str = "", width: int = 900) -> str:
    """The picture, `width` pixels wide (at least 400) and as high as its ranks need; equal bytes for equal timelines.

    Upper row of a rank: compute, and hatched where it waits. Below it, thinner: operations on the wire.
    Spans that would be narrower than a pixel are drawn together, and the picture says how many.
    """
    drawing = _Drawing(timeline, max(width, 400))
    body = [line for rank in range(timeline.world_size) for line in drawing.strip(rank)]
    width_px, height_px = drawing.width, drawing.height
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{drawing.css}" width="{width_px}" '
            f'height="{_n(height_px)}" viewBox="0 0 {width_px} {_n(height_px)}" role="img">',
            f"<title>{quoted(title or 'timeline')}</title>",
            definitions(),
            f'<rect width="{width_px}" height="{_n(height_px)}" rx="6" fill="#ffffff" stroke="#cccccc"/>',
            *drawing.head(title),
            *drawing.grid(),
            *body,
            *drawing.foot(),
            "</svg>\n",
        ]
    )


@dataclass(frozen=True, slots=True)
class _Strip:
    """A rank's place: `programs` are compute and waits, `wires` the rows of operations in flight together."""

    top: float
    programs: list[Shape]
    wires: list[list[Shape]]
    wire_height: float


class _Drawing:
    def __init__(self, timeline: Timeline, width: int) -> None:
        self.timeline = timeline
        self.width = width
        self.start_s = timeline.start_s
        self.per_px_s = timeline.makespan_s / (width - _LEFT - _RIGHT)
        is_dense = timeline.world_size > _MANY_RANKS
        self.row_height, self.gap, self.wire_height = (11.0, 3.0, 4.0) if is_dense else (24.0, 8.0, 11.0)
        self.css = "sk dense" if is_dense else "sk"
        least_px = _LEAST_PX
        self.strips = self._strips(least_px * self.per_px_s)
        while self._num_shapes() > _MOST_SHAPES:
            least_px *= 2
            self.strips = self._strips(least_px * self.per_px_s)
        last = self.strips[-1] if self.strips else None
        self.bottom = self._bottom_of(last) if last else _TOP
        self.num_folded = sum(shape.count for shape in self._shapes() if shape.count > 1)
        self.num_empty = sum(span.duration_s <= 0 for span in timeline.spans)
        self.height = self.bottom + _BOTTOM + (16 if self.num_folded or self.num_empty else 0)

    # -- where things are ---------------------------------------------------------------------------------

    def _strips(self, least_s: float) -> list[_Strip]:
        strips, top = [], _TOP
        for rank in range(self.timeline.world_size):
            program = sorted(
                [*self.timeline.of(rank, "compute"), *self.timeline.of(rank, "wait")],
                key=lambda span: (span.start_s, span.end_s),
            )
            wires = [folded(row, least_s) for row in self._wires(rank)]
            wire_height = min(self.wire_height, 4 * self.wire_height / len(wires)) if wires else 0.0
            strip = _Strip(top, folded(program, least_s), wires, wire_height)
            strips.append(strip)
            top = self._bottom_of(strip) + self.gap
        return strips

    def _wires(self, rank: int) -> list[list[Span]]:
        """Operations in rows in which none overlaps another; beyond the last row they share it."""
        spans = [span for span in self.timeline.of(rank, "communication") if span.duration_s > 0]
        spans.sort(key=lambda span: (span.start_s, span.end_s))
        edges = [(round(self._x(span.start_s) * 100), round(self._x(span.end_s) * 100)) for span in spans]
        placed: dict[int, list[Span]] = {}
        for span, row in zip(spans, rows(edges), strict=True):
            placed.setdefault(min(row, _MOST_ROWS - 1), []).append(span)
        return [placed[row] for row in sorted(placed)]

    def _bottom_of(self, strip: _Strip) -> float:
        return strip.top + self.row_height + (1 + len(strip.wires) * strip.wire_height if strip.wires else 0)

    def _shapes(self) -> Iterator[Shape]:
        for strip in self.strips:
            yield from strip.programs
            for wire in strip.wires:
                yield from wire

    def _num_shapes(self) -> int:
        return sum(1 for _ in self._shapes())

    def _x(self, at_s: float) -> float:
        return _LEFT + ((at_s - self.start_s) / self.per_px_s if self.per_px_s > 0 else 0.0)

    # -- what is drawn ------------------------------------------------------------------------------------

    def head(self, title: str) -> Iterator[str]:
        timeline = self.timeline
        size = timeline.world_size
        bubble = sum(timeline.bubble_fraction(rank) for rank in range(size)) / size if size else 0.0
        line = f"profile {timeline.profile}   ·   makespan {_time(timeline.makespan_s)}"
        if timeline.makespan_s > 0:
            line += f"   ·   bubble {bubble:.1%} (idle / makespan, mean of {size} rank{'' if size == 1 else 's'})"
        yield f'<text class="title" x="16" y="27">{quoted(title or "timeline")}</text>'
        yield f'<text class="small" x="16" y="46" xml:space="preserve">{quoted(line)}</text>'
        x = 16.0
        for name, meaning in legend(shape.kind for shape in self._shapes()):
            yield f'<g class="{name}"><rect x="{_n(x)}" y="57" width="18" height="11" stroke-width=".6"/></g>'
            yield f'<text class="small" x="{_n(x + 23)}" y="66">{quoted(meaning)}</text>'
            x += 23 + len(meaning) * 11 * _CHARACTER_PX + 16
        if any(len(_chunks(timeline.of(rank, "compute"))) > 1 for rank in range(size)):
            yield f'<path class="bar" d="M{_n(x)} 68v-4h18v4z"/>'
            yield f'<text class="small" x="{_n(x + 23)}" y="66">a further chunk of the rank</text>'
        yield f'<text class="small end" x="{self.width - 12}" y="{_n(_TOP - 8)}">bubble</text>'

    def grid(self) -> Iterator[str]:
        timeline = self.timeline
        end_s = self.start_s + timeline.makespan_s
        marks = axis(self.start_s, end_s, max(int((self.width - _LEFT - _RIGHT) / 80), 2))
        for at_s, text in marks.ticks:
            x = _n(self._x(at_s))
            yield f'<path class="grid" d="M{x} {_n(_TOP - 4)}V{_n(self.bottom + 6)}"/>'
            yield f'<text class="small mid" x="{x}" y="{_n(self.bottom + 20)}">{quoted(text)}</text>'
        yield f'<path class="line" d="M{_n(_LEFT)} {_n(self.bottom + 6)}H{_n(self.width - _RIGHT)}"/>'
        yield f'<text class="small end" x="{_n(_LEFT - 8)}" y="{_n(self.bottom + 20)}">time, {marks.unit}</text>'

    def strip(self, rank: int) -> Iterator[str]:
        strip, timeline = self.strips[rank], self.timeline
        middle = _n(strip.top + self.row_height / 2 + 4)
        end = self._x(timeline.ends_s[rank]) if rank < len(timeline.ends_s) else _LEFT
        yield f'<text class="small end" x="{_n(_LEFT - 8)}" y="{middle}">rank {rank}</text>'
        yield (
            f'<rect class="base" x="{_n(_LEFT)}" y="{_n(strip.top)}" width="{_n(end - _LEFT)}" '
            f'height="{_n(self.row_height)}"/>'
        )
        chunks = _chunks(timeline.of(rank, "compute"))
        for shape in strip.programs:
            yield self._box(shape, strip.top, self.row_height, chunks.get(shape.span.label, 0))
        for row, wire in enumerate(strip.wires):
            top = strip.top + self.row_height + 1 + row * strip.wire_height
            for shape in wire:
                yield self._box(shape, top, strip.wire_height)
        for mark in timeline.marks:
            if mark.rank == rank:
                x = self._x(mark.at_s)
                yield (
                    f'<path class="mark" d="M{_n(x - 3)} {_n(strip.top - 4)}h6l-3 4z">'
                    f"<title>{quoted(f'rank {rank}: {mark.name}, {_time(mark.at_s)}')}</title></path>"
                )
        if timeline.makespan_s > 0:
            bubble = f"{timeline.bubble_fraction(rank):.1%}"
            yield f'<text class="small end" x="{self.width - 12}" y="{middle}">{bubble}</text>'

    def _box(self, shape: Shape, top: float, height: float, chunk: int = 0) -> str:
        x, width = self._x(shape.start_s), (shape.end_s - shape.start_s) / self.per_px_s
        box = (
            f'<g class="{shape.kind}"><title>{quoted(_tooltip(shape))}</title>'
            f'<rect x="{_n(x)}" y="{_n(top)}" width="{_n(max(width, 0.3))}" height="{_n(height)}"/>'
        )
        text = _fitting(_labels(shape), width, height)
        if text is not None:
            label, size = text
            y = top + height / 2 + size * 0.32
            box += (
                f'<text class="mid" font-size="{_n(size)}" x="{_n(x + width / 2)}" y="{_n(y)}">{quoted(label)}</text>'
            )
        if chunk and shape.span.microbatch is not None:
            bar = height * min(chunk, 3) / 8
            box += f'<path class="bar" d="M{_n(x)} {_n(top + height)}v{_n(-bar)}h{_n(width)}v{_n(bar)}z"/>'
        return box + "</g>"

    def foot(self) -> Iterator[str]:
        notes = []
        if self.num_folded:
            notes.append(
                f"{self.num_folded:,} of {len(self.timeline.spans):,} spans are too narrow here and drawn together"
            )
        if self.num_empty:
            notes.append(f"{self.num_empty:,} take no time and are not drawn")
        if notes:
            yield f'<text class="small" x="16" y="{_n(self.bottom + 42)}">{quoted("; ".join(notes))}</text>'


def _chunks(spans: Sequence[Span]) -> dict[str, int]:
    """Which piece of the model a label is, where a rank holds several: 0 for the first that it computes."""
    labels = list(dict.fromkeys(span.label for span in spans if span.microbatch is not None and span.label))
    return {label: number for number, label in enumerate(labels)} if len(labels) <= _MOST_CHUNKS else {}


def _labels(shape: Shape) -> Sequence[str]:
    """What may stand in a box, the longest first."""
    span = shape.span
    if shape.count > 1 or shape.kind == "wait":
        return ()
    if span.microbatch is not None:
        return (f"{span.what}{span.microbatch}", str(span.microbatch))
    return (f"{span.what} {span.label}", span.what) if span.label and shape.kind in _LABELLED else (span.what,)


def _fitting(labels: Sequence[str], width: float, height: float) -> tuple[str, float] | None:
    """The first label that fits, and its font size."""
    sizes = [size for size in (11.0, 8.5) if size <= height - 1]
    return next(
        ((label, size) for label in labels for size in sizes if len(label) * size * _CHARACTER_PX + 3 <= width), None
    )


_LABELLED = ("F", "B", "I", "W", "other", "message")


def _tooltip(shape: Shape) -> str:
    span = shape.span
    times = f"{_time(shape.start_s)} to {_time(shape.end_s)}"
    if shape.count > 1:
        return f"rank {span.rank}: {shape.count} spans, {times}"
    what = [f"waits for {span.what}" if kind(span) == "wait" else span.what]
    what += [f"microbatch {span.microbatch}"] if span.microbatch is not None else []
    what += [span.label] if span.label else []
    what += [f"{span.nbytes:,} B"] if span.nbytes else []
    lines = [f"rank {span.rank}: {', '.join(what)}", f"{times} ({_time(span.duration_s)})", span.site]
    return "\n".join(filter(None, lines))


def _time(seconds: float) -> str:
    """`1.25 ms`: six digits, since a tooltip is there for the exact value."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= factor:
            return f"{seconds / factor:.6g} {unit}"
    return f"{seconds / 1e-9:.6g} ns" if seconds else "0 s"


def _n(pixels: float) -> str:
    """Two decimals at most."""
    return f"{pixels:.2f}".rstrip("0").rstrip(".")
