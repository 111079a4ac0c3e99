"""A failed launch in the words of the person whose file it ran."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from kit.world.failure import WorldError

Frame = tuple[str, int, str, str]
MOST_PRINTED = 4000  # characters of a rank's output that are kept
_MOST_TOLD = 2000  # characters of what an exception says
_MOST_LINES = 25
_MOST_CALLS = 6  # at either end of a traceback
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")


def launch_failure(error: WorldError, solution: str = "") -> str:
    """The whole diagnosis; a crash's traceback holds the solution's own frames alone where there are any."""
    if error.kind == "refused" and error.frames:
        return error.message  # it names the line itself
    if error.kind not in ("crash", "memory") or not solution:
        return str(error)
    frames = own_frames(error.frames, solution)
    told = str(error) if not frames else "\n".join([shortened(error.message), *trace_lines(frames)])
    return "\n".join([told, *_advice(error, solution)])


def _advice(error: WorldError, solution: str) -> list[str]:
    """A solution that leans on a file beside it, which no rank can see."""
    found = _NO_MODULE.search(error.message) if error.exception_type == "ModuleNotFoundError" else None
    if found is None:
        return []
    beside = os.path.join(os.path.dirname(solution), found[1].split(".")[0])
    is_there = os.path.isfile(f"{beside}.py") or os.path.isdir(beside)
    return ["  a solution is one file: it cannot import what lies beside it"] if is_there else []


def own_frames(frames: Sequence[Frame], solution: str) -> list[Frame]:
    """Those of the solution's file, in the order of calls."""
    return [frame for frame in frames if os.path.realpath(frame[0]) == os.path.realpath(solution)]


def shortened(message: str) -> str:
    """The beginning of a message that would fill screens, and how long it was."""
    begun = "\n".join(message.splitlines()[:_MOST_LINES])[:_MOST_TOLD]
    return message if len(message) <= len(begun) + 1 else f"{begun} ... ({len(message):,} characters)"


def trace_lines(frames: Sequence[Frame]) -> list[str]:
    """As Python prints them; of a deep recursion only the first calls and the last."""
    if len(frames) > 2 * _MOST_CALLS:
        left = f"  ... {len(frames) - 2 * _MOST_CALLS} more calls ..."
        return [*trace_lines(frames[:_MOST_CALLS]), left, *trace_lines(frames[-_MOST_CALLS:])]
    lines = []
    for file, number, function, text in frames:
        lines.append(f'  File "{os.path.basename(file)}", line {number}, in {function}')
        if text.strip():
            lines.append(f"    {text.strip()}")
    return lines


def is_not_written(error: WorldError, solution: str) -> bool:
    """Whether a rank stopped at a `raise NotImplementedError` of the solution itself."""
    if error.kind != "crash" or error.exception_type != "NotImplementedError" or not error.frames:
        return False
    file, _, _, text = error.frames[-1]
    return os.path.realpath(file) == os.path.realpath(solution) and "NotImplementedError" in text


def printed_by_ranks(stdout: Sequence[str], stderr: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """("rank 0, stdout", text) of each rank that wrote something, the end of it where it is long."""
    return tuple(
        (f"rank {rank}, {name}", text if len(text) <= MOST_PRINTED else "...\n" + text[-MOST_PRINTED:])
        for name, texts in (("stdout", stdout), ("stderr", stderr))
        for rank, text in enumerate(texts)
        if text.strip()
    )
