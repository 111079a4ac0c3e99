"""A failed launch in words: no exception of a solution fills the screen, and the line that failed is always told."""

from __future__ import annotations

import pytest

from kit.grading.sentences import launch_failure, shortened, trace_lines
from kit.world.failure import WorldError


def calls(count: int) -> list[tuple[str, int, str, str]]:
    return [("/tmp/mine.py", number, f"call_{number}", "again()") for number in range(1, count + 1)]


def test_of_a_deep_recursion_both_ends_are_told() -> None:
    lines = trace_lines(calls(40))
    assert [line.split()[-1] for line in lines if "File" in line] == [
        f"call_{n}" for n in [*range(1, 7), *range(35, 41)]
    ]
    assert lines[12] == "  ... 28 more calls ..."
    assert len(trace_lines(calls(12))) == 24


@pytest.mark.parametrize("message", ["short", "two\nlines", "x" * 2000, "\n".join("x" * 25), "ends with a line\n"])
def test_a_message_that_fits_is_told_as_it_is(message: str) -> None:
    assert shortened(message) == message


def test_a_message_that_would_fill_screens_is_cut_and_says_so() -> None:
    assert shortened("y" * 20_000) == "y" * 2000 + " ... (20,000 characters)"
    assert shortened("line\n" * 1000).splitlines()[24:] == ["line ... (5,000 characters)"]


@pytest.mark.parametrize("kind", ["crash", "memory"])
def test_the_failing_line_stands_below_a_long_message_and_frames_of_the_checks_do_not(kind: str) -> None:
    frames = (("/tmp/test_mine.py", 3, "train", "solution.f()"), *calls(2))
    error = WorldError(kind, "y\n" * 9000, details="  File test_mine.py", frames=frames)
    told = launch_failure(error, "/tmp/mine.py")
    assert told.count("y") < 100 and "test_mine.py" not in told
    assert told.endswith('  File "mine.py", line 2, in call_2\n    again()')
