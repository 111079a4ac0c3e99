"""How single ranks end badly, and what their last words say."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from kit.world.sites import is_program

_STACK_LINE = re.compile(r'^\s*File "(.+)", line (\d+) in (.+)$')
_ECHOES = re.compile(r"connection closed by peer|connection reset|timed out waiting|socket closed|broken pipe", re.I)


@dataclass(frozen=True, slots=True)
class Failure:
    """How one rank failed. An echo only reports that a peer is gone."""

    rank: int
    clock: int
    kind: str
    message: str
    exception_type: str = ""
    frames: tuple[tuple[str, int, str, str], ...] = ()
    site: str = ""
    echo: bool = False


def traceback_of(failure: Failure) -> str:
    """The program's own frames, as Python prints them."""
    return "".join(
        f'  File "{os.path.basename(file)}", line {line}, in {function}\n' + (f"    {text}\n" if text else "")
        for file, line, function, text in failure.frames
    )


def alike(first: Failure, failures: Sequence[Failure]) -> str:
    """A line about the other ranks that failed in the same place, if there are any."""
    ranks = sorted({
        other.rank for other in failures
        if other.rank != first.rank and not other.echo
        and (other.exception_type, other.site) == (first.exception_type, first.site)
    })  # fmt: skip
    if not ranks:
        return ""
    return f"\n  ({'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))} failed in the same place)"


def is_echo(text: str) -> bool:
    """Whether an error of gloo only reports that a peer is gone."""
    return _ECHOES.search(text) is not None


def how_it_ended(status: int | None) -> str:
    """An exit status in words."""
    if status is None:
        return "closed its line to the kit"
    if status <= -1000:
        return f"could not be started: {os.strerror(-status - 1000)}"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = "?"
        return f"was killed by signal {-status} ({name})"
    return f"left with exit code {status} before it returned"


def innermost(stacks: str) -> tuple[str, str]:
    """("solution.py:41", "train") of the innermost program frame in what faulthandler wrote."""
    for line in stacks.splitlines():
        match = _STACK_LINE.match(line)
        if match and is_program(match[1]):
            return f"{os.path.basename(match[1])}:{match[2]}", match[3]
    return "", ""
