"""The command as a user runs it, and a small bank of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pexpect

ROOT = Path(__file__).resolve().parent.parent.parent
Shardkit = Callable[..., subprocess.CompletedProcess[str]]

CODE = """\
kind: code
level: 2
title: {en: Double it, zh: 加倍}
prompt: {en: "Write `double(x)`.", zh: "实现 `double(x)`。"}
interface: ["def double(x)"]
points: {values: 4}
hints: [{en: Add., zh: 相加。}, {en: "x + x", zh: "x + x"}]
explanation: {en: Twice is a sum., zh: 两倍就是和。}
follow_ups: [{question: {en: And three times?, zh: 三倍呢？}, answer: {en: Once more., zh: 再加一次。}}]
sources: [{title: Arithmetic, where: chapter 1}]
"""

CHOICE = """\
kind: choice
level: 1
title: {en: Which sum, zh: 哪个和}
prompt: {en: What is 1 + 1?, zh: 1 + 1 等于几？}
options:
  - {text: {en: two, zh: 二}, correct: true, why: {en: Counting shows it., zh: 数一数。}}
  - {text: {en: three, zh: 三}, why: {en: One too many., zh: 多了一。}}
  - {text: {en: eleven, zh: 十一}, why: {en: That joins digits., zh: 那是拼数字。}}
hints: [{en: Use fingers., zh: 用手指。}, {en: Two of them., zh: 用两根。}]
explanation: {en: The sum of one and one., zh: 一加一。}
follow_ups: [{question: {en: And 2 + 2?, zh: 2 + 2 呢？}, answer: {en: Four., zh: 四。}}]
sources: [{title: Arithmetic, where: chapter 2}]
"""

STARTER = '''\
"""Double a number."""


def double(x):
    raise NotImplementedError
'''


def environment(**changes: str) -> dict[str, str]:
    """Without colour, in English, at 80 columns."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("LC_") and name not in ("LANG", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING")
    }
    return {**kept, "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), **changes}


@pytest.fixture
def shardkit(tmp_path: Path) -> Shardkit:
    """Runs `python -m kit` in an empty folder; keyword arguments go into the environment."""

    def run(*arguments: str | Path, stdin: str = "", **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kit", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            cwd=tmp_path,
            env=environment(XDG_CACHE_HOME=str(tmp_path / "cache"), **changes),
        )

    return run


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """A bank with one code and one choice question, and no references."""
    topic = tmp_path / "bank" / "questions" / "sums"
    topic.mkdir(parents=True)
    (topic / "README.md").write_text("# Sums\n", encoding="utf-8")
    (topic / "double.yaml").write_text(CODE, encoding="utf-8")
    (topic / "double.py").write_text(STARTER, encoding="utf-8")
    (topic / "test_double.py").write_text(textwrap.dedent("# no checks\n"), encoding="utf-8")
    (topic / "which.yaml").write_text(CHOICE, encoding="utf-8")
    return tmp_path / "bank"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., pexpect.spawn[str]]]:
    """Starts commands in terminals of their own (see `terminal.spawn`), and ends them."""
    from tests.cli.terminal import spawn

    started = []

    def run(*arguments: str | Path, **options: object) -> pexpect.spawn[str]:
        started.append(spawn(tmp_path, *arguments, **options))  # type: ignore[arg-type]
        return started[-1]

    yield run
    for child in started:
        child.close(force=True)
