"""A command in a real terminal, typed by pexpect: what was shown, and keys."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect

from tests.cli.conftest import environment

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
Start = Callable[..., "pexpect.spawn[str]"]


def spawn(folder: Path, *arguments: str | Path, columns: int = 60, **changes: str) -> pexpect.spawn[str]:
    """`python -m kit` with these arguments in `folder`; keyword arguments go into the environment."""
    return pexpect.spawn(
        sys.executable,
        ["-m", "kit", *map(str, arguments)],
        cwd=str(folder),
        env=environment(TERM="xterm-256color", **changes),
        encoding="utf-8",
        dimensions=(40, columns),
        timeout=120,
    )


def screen(child: pexpect.spawn[str]) -> str:
    """What was shown before the last match, without colour and the terminal's own line ends."""
    return ESCAPES.sub("", child.before or "").replace("\r\n", "\n")


def until(child: pexpect.spawn[str], text: str) -> str:
    child.expect_exact(text)
    return screen(child)


def press(child: pexpect.spawn[str], line: str) -> None:
    child.expect_exact("> ")
    child.sendline(line)
