"""A failed launch in the words of the person whose file it ran."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kit.world.failure import WorldError

Frame = tuple[str, int, str, str]


def launch_failure(error: WorldError, solution: str = "") -> str:
    """The whole diagnosis; a crash's traceback holds the solution's own frames alone where there are any."""
    if error.kind != "crash" or not solution:
        return str(error)
    frames = own_frames(error.frames, solution)
    if not frames or len(frames) == len(error.frames):
        return str(error)
    return "\n".join([error.message, *trace_lines(frames)])


def own_frames(frames: Sequence[Frame], solution: str) -> list[Frame]:
    """Those of the solution's file, in the order of calls."""
    return [frame for frame in frames if os.path.realpath(frame[0]) == os.path.realpath(solution)]


def trace_lines(frames: Sequence[Frame]) -> list[str]:
    lines = []
    for file, number, function, text in frames:
        lines.append(f"  {os.path.basename(file)}:{number}, in {function}")
        if text.strip():
            lines.append(f"    {text.strip()}")
    return lines


def is_not_written(error: WorldError, solution: str) -> bool:
    """Whether a rank stopped at a `raise NotImplementedError` of the solution itself."""
    if error.kind != "crash" or error.exception_type != "NotImplementedError" or not error.frames:
        return False
    file, _, _, text = error.frames[-1]
    return os.path.realpath(file) == os.path.realpath(solution) and "NotImplementedError" in text
