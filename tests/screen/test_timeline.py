"""The Gantt in the terminal: what a column shows, at every width, and that it claims no more than that."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from kit.screen.gantt import letters, program_row, ranks_shown, scale, stretches
from kit.screen.timeline import show_timeline
from kit.world.picture import axis
from kit.world.timeline import Span, Timeline
from tests.screen.pages import page, text_of
from tests.world.timelines import data_parallel, gpipe, one_f_one_b, timeline_of


def drawn(timeline: Timeline, title: str = "", *, language: str = "en", width: int = 80, **terminal: bool) -> str:
    sheet = page(language, width=width, **terminal)  # type: ignore[arg-type]
    show_timeline(sheet, timeline, axis, title)
    return text_of(sheet)


def test_gpipe_looks_as_in_the_papers() -> None:
    assert (
        drawn(gpipe(4, 8), "GPipe, 4 stages, 8 microbatches")
        == """\
GPipe, 4 stages, 8 microbatches

rank 0  F0F1F2F3F4F5F6F7··················B0══B1══B2══B3══B4══B5══B6══B7══
rank 1  ··F0F1F2F3F4F5F6F7············B0══B1══B2══B3══B4══B5══B6══B7══
rank 2  ····F0F1F2F3F4F5F6F7······B0══B1══B2══B3══B4══B5══B6══B7══
rank 3  ······F0F1F2F3F4F5F6F7B0══B1══B2══B3══B4══B5══B6══B7══
        ┴───────────────────┴───────────────────┴───────────────────┴─────
     s  0                   10                  20                  30
F forward, B backward, number: microbatch, · waits

rank  busy  bubble  exposed comm.  in flight
   0  24 s   27.3%            0 s          8
   1  24 s   27.3%            0 s          8
   2  24 s   27.3%            0 s          8
   3  24 s   27.3%            0 s          8
makespan 33 s, bubble 27.3% (idle / makespan, mean over 4 ranks), profile ideal
"""
    )


def test_one_f_one_b_keeps_fewer_microbatches_in_flight() -> None:
    text = drawn(one_f_one_b(4, 8), has_unicode=False)
    assert text.startswith(
        """\
rank 0  F0F1F2F3............B0==F4B1==F5B2==F6B3==F7B4==..B5==..B6==..B7==
rank 1  ..F0F1F2........B0==F3B1==F4B2==F5B3==F6B4==F7B5==..B6==..B7==
rank 2  ....F0F1....B0==F2B1==F3B2==F4B3==F5B4==F6B5==F7B6==..B7==
rank 3  ......F0B0==F1B1==F2B2==F3B3==F4B4==F5B5==F6B6==F7B7==
        +-------------------+-------------------+-------------------+-----
     s  0                   10                  20                  30
F forward, B backward, number: microbatch, . waits
"""
    )
    assert re.findall(r"^ +\d .* (\d)$", text, flags=re.MULTILINE) == ["4", "3", "2", "1"]
    assert text.isascii()


def test_operations_on_the_wire_have_a_row_of_their_own() -> None:
    assert (
        drawn(data_parallel(2), width=60)
        == """\
rank 0  F model─B═══════B═══════B═══════············O───
                        all_reduce~~|~~~~~~~|~~~~~~~
rank 1  F model─B═══════B═══════B═══════············O───
                        all_reduce~~|~~~~~~~|~~~~~~~
        ┴───────────────┴───────────────┴──────────────┴
    ms  0               20              40            60
F forward, B backward, O optimizer, · waits, ~ collective

rank   busy  bubble  exposed comm.
   0  45 ms   25.0%          15 ms
   1  45 ms   25.0%          15 ms
makespan 60 ms, bubble 25.0% (idle / makespan, mean over 2
ranks), profile slow
"""
    )
    assert drawn(data_parallel(2), width=120).count("all_reduce~") == 2 * 3


def test_sends_and_receives_show_their_direction() -> None:
    rows = drawn(gpipe(2, 1, transfer_s=1.0)).splitlines()
    assert "send>" in rows[1] and "recv<" in rows[1]
    assert rows[1].index("send>") == rows[3].index("recv<")
    assert "> send, < recv" in drawn(gpipe(2, 1, transfer_s=1.0))


def test_what_fills_most_of_a_column_is_what_it_shows() -> None:
    """A column a second: mostly F, mostly wait, half B, two F, mostly nothing, more wait than nothing."""
    spans = [
        Span(0, "compute", 0.0, 0.6, "F", "", 0),
        Span(0, "compute", 0.6, 0.9, "B", "", 0),
        Span(0, "compute", 1.0, 1.4, "F", "", 1),
        Span(0, "wait", 1.4, 2.0, "recv"),
        Span(0, "compute", 2.0, 2.5, "B", "", 1),
        Span(0, "compute", 3.0, 3.4, "F", "", 2),
        Span(0, "compute", 3.4, 3.7, "F", "", 3),
        Span(0, "compute", 3.7, 4.0, "B", "", 2),
        Span(0, "compute", 4.0, 4.3, "B", "", 3),
        Span(0, "wait", 4.3, 4.6, "recv"),
        Span(0, "compute", 5.0, 5.4, "B", "", 3),
        Span(0, "wait", 5.4, 5.8, "recv"),
    ]
    timeline = timeline_of([*spans, Span(1, "compute", 0.0, 6.0, "F", "", 0)], 2)
    columns = scale(timeline, 6)
    assert columns.per_column_s == pytest.approx(1.0)
    row = program_row(timeline, 0, columns)
    named = [(box.kind, box.span.microbatch if box.span is not None else None) for box in row]
    assert named == [("F", 0), ("wait", None), ("B", 1), ("F", None), ("", None), ("wait", None)]


def test_spans_that_a_column_cannot_name_are_counted() -> None:
    many = timeline_of([Span(0, "compute", 0.1 * at, 0.1 * at + 0.1, "FB"[at // 500], "", at) for at in range(1000)], 1)
    text = drawn(many)
    assert "F" * 36 + "B" * 36 in text and "number:" not in text
    assert "1,000 spans fill too little of one to be named above" in text
    assert "too little" not in drawn(gpipe(4, 8))


def test_equal_spans_look_equal_where_the_columns_allow_it() -> None:
    columns = scale(gpipe(4, 8), 72)
    assert (columns.num_columns, columns.per_column_s) == (66, 0.5)
    assert scale(gpipe(4, 8), 30).num_columns == 30  # 33 units do not fit
    widths = {box.width for box in program_row(gpipe(3, 7), 1, scale(gpipe(3, 7), 70)) if box.kind == "F"}
    assert len(widths) == 1


def test_many_ranks_show_some_and_say_which_are_missing() -> None:
    spans = [Span(rank, "compute", 0.0, 1.0 if rank == 37 else 5.0 + rank % 2, "F") for rank in range(64)]
    text = drawn(timeline_of(spans, 64))
    rows = re.findall(r"^rank (\d+) ", text, flags=re.MULTILINE)
    assert len(rows) == 16 and {"0", "37", "63"} <= set(rows)
    missing = re.findall(r"48 of 64 ranks are left out: ([\d\s,-]+)\.", text)[0]
    found = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", missing):
        found |= set(range(int(first), int(last or first) + 1))
    assert found == set(range(64)) - set(map(int, rows))
    assert "Bubble from 0.0% (rank 1) to 83.3% (rank 37)." in " ".join(text.split())
    same = timeline_of([Span(rank, "compute", 0.0, 1.0, "F") for rank in range(20)], 20)
    assert "Every rank has a bubble of 0.0%." in " ".join(drawn(same).split())


def test_ranks_shown_are_the_extremes_and_some_between() -> None:
    assert ranks_shown(gpipe(4, 2), 4) == [0, 1, 2, 3]
    chosen = ranks_shown(timeline_of([Span(r, "compute", 0, 1 + (r == 5), "F") for r in range(40)], 40), 16)
    assert len(chosen) == 16 and {0, 5, 39} <= set(chosen) and chosen == sorted(chosen)
    assert stretches([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"


def test_every_kind_of_compute_has_a_letter_of_its_own() -> None:
    assert letters(["B", "F", "loss", "optimizer", "load", "文", "", "wait"]) == {
        "B": "B", "F": "F", "load": "L", "loss": "O", "optimizer": "P", "文": "#",
    }  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("has_unicode", [True, False])
@pytest.mark.parametrize("has_colour", [True, False])
def test_it_fits(language: str, width: int, has_unicode: bool, has_colour: bool) -> None:
    for timeline in (gpipe(4, 8, transfer_s=0.3), data_parallel(3), gpipe(20, 30)):
        text = drawn(timeline, "t", language=language, width=width, has_unicode=has_unicode, has_colour=has_colour)
        lines = re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()
        chart = [line for line in lines if re.match(r"rank \d| +[┴+|<>~]", line)]
        assert chart and max(map(cell_len, chart)) <= width
        if language == "en" and width >= 60:
            assert max(map(cell_len, lines)) <= width
        assert ("\x1b[" in text) == has_colour


def test_with_colour_numbers_stand_where_a_letter_and_a_number_do_not_fit() -> None:
    plain = drawn(gpipe(4, 8), width=45)
    coloured = re.sub(r"\x1b\[[\d;]*m", "", drawn(gpipe(4, 8), width=45, has_colour=True, is_terminal=True))
    assert plain.splitlines()[0] == "rank 0  FFFFFFFF·········B0B1B2B3B4B5B6B7"
    assert coloured.splitlines()[0] == "rank 0  01234567·········B0B1B2B3B4B5B6B7"


def test_chinese_captions() -> None:
    text = drawn(gpipe(2, 2), language="zh")
    assert "F forward，B backward，数字为 microbatch 编号，· 等待" in text
    assert "rank  计算  bubble  暴露的通信  在途 microbatch" in text
    assert "总时长 9 s，bubble 33.3%（空闲 / 总时长，2 个 rank 的平均），硬件 profile：ideal" in "".join(
        text.splitlines()
    )


def test_a_run_that_takes_no_virtual_time_says_so() -> None:
    nothing = timeline_of([Span(0, "communication", 0.0, 0.0, "barrier")], 1)
    assert drawn(nothing) == "Nothing in this run takes virtual time under the profile ideal.\n"


def test_words_of_a_program_cannot_move_the_cursor() -> None:
    evil = timeline_of([Span(0, "compute", 0.0, 1.0, "\x1b[2Jx", "a\nb\x1b[1m\u202e")], 1, profile="p\x1b[0m")
    text = drawn(evil, "t\x1b[H")
    assert "\x1b" not in text and "\u202e" not in text
    assert len([line for line in text.splitlines() if line.startswith("rank 0")]) == 1
