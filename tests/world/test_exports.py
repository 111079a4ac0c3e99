"""Timelines as files: a strict reader of Chrome's trace format, and of the SVG."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from kit.world.export_chrome import chrome_text, chrome_trace
from kit.world.export_svg import svg
from kit.world.picture import axis, rows
from kit.world.svg_shapes import folded
from kit.world.timeline import Mark, Span, Timeline
from tests.world.timelines import data_parallel, gpipe, one_f_one_b, timeline_of

SVG = "{http://www.w3.org/2000/svg}"
AWKWARD = timeline_of(
    [
        Span(0, "compute", 0.1, 0.1 + 0.2, "F", '<b> & "quoted"\x00\x1b[31m\ud800', 0),
        Span(0, "compute", 0.3, 0.30000000049, "compute", "Σ 中文"),
        Span(0, "communication", 0.0, 0.0, "barrier", "WORLD", operation=0, meeting=(0, 0)),
        Span(1, "communication", 0.0, 0.0, "barrier", "WORLD", operation=0, meeting=(0, 0)),
        Span(1, "communication", 0.0, 0.5, "send", "rank 0", operation=1, meeting=None),
    ],
    3,
    marks=[Mark(0, 0.2, "a\u2028<mark>")],
)
TIMELINES = {
    "gpipe": gpipe(4, 8),
    "gpipe with transfers": gpipe(4, 8, transfer_s=0.3),
    "1f1b": one_f_one_b(3, 5),
    "data parallel": data_parallel(4),
    "awkward": AWKWARD,
    "empty": timeline_of([], 2),
}


@pytest.fixture(params=TIMELINES)
def drawn(request: pytest.FixtureRequest) -> Timeline:
    return TIMELINES[request.param]


# -- what both lean on ------------------------------------------------------------------------------------------------


def test_spans_that_overlap_get_rows_of_their_own_and_rows_are_used_again() -> None:
    assert rows([(0, 4), (1, 2), (2, 3), (2, 6), (4, 5), (5, 5)]) == [0, 1, 1, 2, 0, 0]
    assert rows([]) == []


@pytest.mark.parametrize(
    ("start_s", "end_s", "most", "unit", "texts"),
    [
        (0, 33, 4, "s", ["0", "10", "20", "30"]),
        (0, 0.033, 5, "ms", ["0", "10", "20", "30"]),
        (0, 24, 6, "s", ["0", "5", "10", "15", "20"]),
        (0, 1, 6, "s", ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (7.3, 9.1, 4, "s", ["7.5", "8", "8.5", "9"]),
        (0, 3e-9, 4, "ns", ["0", "1", "2", "3"]),
        (0, 5e-6, 2, "us", ["0", "5"]),
        (0, 4162, 5, "s", ["0", "1000", "2000", "3000", "4000"]),
        (3, 3, 5, "s", []),
    ],
)
def test_an_axis_has_round_numbers(start_s: float, end_s: float, most: int, unit: str, texts: list[str]) -> None:
    found = axis(start_s, end_s, most)
    assert (found.unit, [text for _, text in found.ticks]) == (unit, texts)
    factor = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
    assert all(math.isclose(at_s, float(text) * factor, abs_tol=1e-18) for at_s, text in found.ticks)


# -- Chrome -----------------------------------------------------------------------------------------------------------


def problems_of(trace: dict[str, Any]) -> list[str]:
    """What the format forbids, or a viewer draws wrongly."""
    wrong: list[str] = []
    threads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    flows: dict[tuple[str, str, int], list[tuple[str, int]]] = {}
    named: set[tuple[int, int]] = set()
    for event in trace["traceEvents"]:
        missing = {"ph", "pid", "tid", "ts", "name"} - set(event)
        if missing:
            wrong.append(f"{event} lacks {missing}")
            continue
        ts = round(event["ts"] * 1000)
        if event["ts"] < 0 or abs(ts / 1000 - event["ts"]) > 0:
            wrong.append(f"{event}: ts is no whole nanosecond from 0")
        place = (event["pid"], event["tid"])
        if event["ph"] == "X":
            if not event["dur"] >= 0:
                wrong.append(f"{event}: dur")
            threads.setdefault(place, []).append((ts, ts + round(event["dur"] * 1000)))
        elif event["ph"] in "stf":
            flows.setdefault((event["cat"], event["name"], event["id"]), []).append((event["ph"], ts))
            if not any(begin <= ts <= end for begin, end in threads.get(place, [])):
                wrong.append(f"{event}: no event there for the flow to be tied to")
            if event["ph"] == "f" and event.get("bp") != "e":
                wrong.append(f"{event}: would be tied to the event that follows")
        elif event["ph"] == "i":
            if event["s"] not in "gpt":
                wrong.append(f"{event}: scope")
        elif event["ph"] == "M":
            if event["name"] == "thread_name":
                named.add(place)
            elif event["name"] not in ("process_name", "process_sort_index", "thread_sort_index"):
                wrong.append(f"{event}: unknown metadata")
        else:
            wrong.append(f"{event}: unknown phase")
    for place, stretches in threads.items():
        stretches.sort()
        wrong += [f"{place}: {a} and {b} overlap" for a, b in itertools.pairwise(stretches) if b[0] < a[1]]
        if place not in named:
            wrong.append(f"{place} has no name")
    for flow, steps in flows.items():
        phases = "".join(phase for phase, _ in steps)
        if not re.fullmatch("st*f", phases):
            wrong.append(f"flow {flow}: {phases}")
        if [ts for _, ts in steps] != sorted(ts for _, ts in steps):
            wrong.append(f"flow {flow} goes back in time: {steps}")
    return wrong


def test_a_chrome_trace_holds_to_the_format(drawn: Timeline) -> None:
    trace = json.loads(chrome_text(drawn))
    assert problems_of(trace) == []
    assert trace == json.loads(json.dumps(chrome_trace(drawn)))
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == len(drawn.spans)


def test_the_strict_reader_sees_what_is_wrong() -> None:
    """Or the test above would show nothing."""
    base = chrome_trace(gpipe(2, 2, transfer_s=0.5))
    events = base["traceEvents"]
    computes = [e for e in events if e["ph"] == "X" and e["cat"] == "compute" and e["pid"] == 0]
    begin = next(event for event in events if event["ph"] == "s")

    def spoiled(event: dict[str, Any], **changes: Any) -> dict[str, Any]:
        return {"traceEvents": [{**event, **changes} if other is event else other for other in events]}

    assert problems_of(base) == []
    assert any("overlap" in text for text in problems_of(spoiled(computes[1], ts=computes[0]["ts"] + 1)))
    assert any("dur" in text for text in problems_of(spoiled(computes[0], dur=-1)))
    assert any("no event there" in text for text in problems_of(spoiled(begin, tid=77)))
    assert any("flow" in text for text in problems_of({"traceEvents": [e for e in events if e is not begin]}))


def test_operations_in_flight_together_have_threads_of_their_own() -> None:
    trace = chrome_trace(data_parallel(1))
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert list(names.values()) == ["compute", "wait", "communication", "communication 2"]
    by_thread = [
        names[e["tid"]] for e in trace["traceEvents"] if e["name"] == "all_reduce" and e["cat"] == "communication"
    ]
    assert by_thread == ["communication", "communication 2", "communication"]


def test_a_flow_ties_each_send_to_its_receive_and_collectives_across_ranks() -> None:
    flows = [e for e in chrome_trace(gpipe(3, 2, transfer_s=0.5))["traceEvents"] if e.get("cat") == "meeting"]
    assert len(flows) == 2 * 8
    first = [(e["ph"], e["pid"]) for e in flows if e["id"] == flows[0]["id"]]
    assert first == [("s", 0), ("f", 1)]
    flows = [e for e in chrome_trace(data_parallel(4))["traceEvents"] if e.get("cat") == "meeting"]
    assert [(e["ph"], e["pid"]) for e in flows if e["id"] == 1] == [("s", 0), ("t", 1), ("t", 2), ("f", 3)]


def test_a_flow_begins_when_both_sides_are_there() -> None:
    """The receive stood ready from 0 on, the send came at 1.57e-05 s: the arrow does not go back in time."""
    send = Span(1, "communication", 1.57e-05, 1.0, "send", "rank 0", operation=0, meeting=(1, 0))
    recv = Span(0, "communication", 0.0, 1.0, "recv", "rank 1", operation=0, meeting=(1, 0))
    trace = chrome_trace(timeline_of([send, recv], 2))
    assert problems_of(trace) == []
    flows = [(e["ph"], e["pid"], e["ts"]) for e in trace["traceEvents"] if e["ph"] in "sf"]
    assert flows == [("s", 1, 15.7), ("f", 0, 15.7)]


def test_what_a_chrome_event_tells() -> None:
    trace = chrome_trace(gpipe(2, 1, transfer_s=0.5))
    event = next(e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == "B 0")
    assert event == {
        "ph": "X", "pid": 0, "tid": 1, "ts": 5000000.0, "dur": 2000000.0, "cat": "compute", "name": "B 0",
        "args": {"label": "stage 0", "microbatch": 0, "site": "mine.py:7"},
    }  # fmt: skip
    assert trace["otherData"] == {"profile": "ideal", "world_size": 2, "makespan_s": 7.0}


def test_equal_timelines_give_equal_bytes(drawn: Timeline) -> None:
    shuffled = replace(drawn, spans=tuple(replace(span) for span in drawn.spans))
    assert chrome_text(drawn) == chrome_text(shuffled)
    assert svg(drawn) == svg(shuffled)


# -- SVG --------------------------------------------------------------------------------------------------------------


def boxes_of(text: str) -> list[ElementTree.Element]:
    """The boxes of spans: groups with a tooltip."""
    return [group for group in ElementTree.fromstring(text).iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]


def words_of(text: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(text).iter(f"{SVG}text")]


def test_an_svg_is_valid_and_stays_inside_its_frame(drawn: Timeline) -> None:
    root = ElementTree.fromstring(svg(drawn, "a <title> & more\x00"))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert width == 900
    for rect in root.iter(f"{SVG}rect"):
        x, y = float(rect.get("x", 0)), float(rect.get("y", 0))
        assert x >= 0 and x + float(rect.attrib["width"]) <= width + 0.5
        assert y >= 0 and y + float(rect.attrib["height"]) <= height + 0.5
    assert "a <title> & more?" in words_of(svg(drawn, "a <title> & more\x00"))
    assert not re.search(r"https?://(?!www\.w3\.org)|@import|<script", svg(drawn))


def test_an_svg_says_who_did_what() -> None:
    text = svg(gpipe(4, 8), "GPipe")
    words = words_of(text)
    assert "profile ideal   ·   makespan 33 s   ·   bubble 27.3% (idle / makespan, mean of 4 ranks)" in words
    assert {"rank 0", "rank 3", "F forward", "B backward", "waits", "F0", "B7", "30", "time, s"} <= set(words)
    assert words.count("27.3%") == 4
    tooltips = [box.findtext(f"{SVG}title") for box in boxes_of(text)]
    assert "rank 1: B, microbatch 2, stage 1\n19 s to 21 s (2 s)\nmine.py:7" in tooltips


def test_boxes_of_one_row_stand_where_their_time_is() -> None:
    boxes = [box for box in boxes_of(svg(gpipe(2, 2), width=1000)) if box.get("class") in ("F", "B")]
    rects = [box.find(f"{SVG}rect") for box in boxes]
    places = [(float(rect.attrib["x"]), float(rect.attrib["width"])) for rect in rects if rect is not None]
    per_s = (1000 - 64 - 62) / 9
    spans = [span for rank in (0, 1) for span in gpipe(2, 2).of(rank, "compute")]
    for (x, width), span in zip(places, spans, strict=True):
        assert x == pytest.approx(64 + span.start_s * per_s, abs=0.01)
        assert width == pytest.approx(span.duration_s * per_s, abs=0.01)


def test_kinds_differ_in_shade_or_hatch_and_not_in_colour_alone() -> None:
    """Of each kind the luminance of its fill; two that are close must differ in their hatch."""
    kinds = ("F", "B", "I", "W")
    spans = [Span(0, "compute", place, place + 1.0, kind) for place, kind in enumerate((*kinds, "loss"))]
    text = svg(timeline_of([*spans, Span(0, "wait", 5.0, 6.0, "recv")], 1))
    look = {}
    for kind in (*kinds, "other", "wait"):
        paint = re.findall(rf"\.sk \.{kind} rect{{fill:([^;]+);", text)[0]
        hatch = re.findall(rf'id="sk-{kind}".*?fill="(#\w+)"/><path d="([^"]+)"', text)
        colour, path = hatch[0] if "url" in paint else (paint, "")
        red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        look[kind] = (0.2126 * red + 0.7152 * green + 0.0722 * blue, path)
    for one in look:
        for other in look:
            if one < other:
                (shade, hatch_of_one), (shade_of_other, hatch_of_other) = look[one], look[other]
                assert abs(shade - shade_of_other) > 0.15 or hatch_of_one != hatch_of_other, (one, other)


def test_further_chunks_of_a_rank_are_marked() -> None:
    spans = [Span(0, "compute", float(at), at + 1.0, "F", f"chunk {at % 2}", at // 2) for at in range(4)]
    text = svg(timeline_of(spans, 1))
    assert [len(box.findall(f"{SVG}path")) for box in boxes_of(text)] == [0, 1, 0, 1]
    assert "a further chunk of the rank" in words_of(text)
    assert "a further chunk of the rank" not in words_of(svg(gpipe(4, 4)))


def test_short_neighbours_become_one_shape_of_what_fills_most() -> None:
    def span(start_s: float, end_s: float, what: str) -> Span:
        return Span(0, "compute", start_s, end_s, what)

    spans = [
        span(0.0, 0.2, "F"), span(0.2, 0.2, "W"), span(0.2, 0.7, "B"),  # within one unit
        span(0.7, 2.7, "F"),  # long enough
        span(2.8, 3.0, "B"), span(3.0, 3.2, "F"), span(3.2, 3.4, "F"),
        span(9.0, 9.1, "I"),  # short, and far from its neighbours
    ]  # fmt: skip
    shapes = folded(spans, 1.0)
    assert [(shape.kind, shape.start_s, shape.end_s, shape.count) for shape in shapes] == [
        ("B", 0.0, 0.7, 2),
        ("F", 0.7, 2.7, 1),
        ("F", 2.8, 3.4, 3),
        ("I", 9.0, 9.1, 1),
    ]


def test_many_spans_make_a_sane_file_that_says_what_it_left_out() -> None:
    spans = [
        Span(rank, "compute", at + 0.01 * rank, at + 0.01 * rank + (0.9 if at % 5 else 1.0), "FB"[at % 2], "layer", at)
        for rank in range(64)
        for at in range(600)
    ]
    text = svg(timeline_of(spans, 64))
    boxes = boxes_of(text)
    assert 64 * 100 < len(boxes) <= 20_000 and len(text) < 4e6
    counts = [re.findall(r"(\d+) spans,", box.findtext(f"{SVG}title") or "") for box in boxes]
    num_drawn_together = sum(int(found[0]) for found in counts if found)
    assert sum(1 for found in counts if not found) + num_drawn_together == len(spans)
    assert f"{num_drawn_together:,} of 38,400 spans are too narrow here and drawn together" in words_of(text)


def test_a_few_spans_are_all_drawn_and_those_without_length_counted() -> None:
    text = svg(gpipe(4, 8))
    assert len([box for box in boxes_of(text) if box.get("class") in ("F", "B")]) == 64
    assert "96 take no time and are not drawn" in words_of(text)
    assert not any("take no time" in word for word in words_of(svg(gpipe(4, 8, transfer_s=0.1))))
