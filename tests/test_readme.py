"""The sessions in both READMEs are what the commands print today, but for numbers that differ from run to run.

`SHARDKIT_UPDATE_README=1 pytest tests/test_readme.py` writes today's output into them.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
READMES = ("README.md", "README.zh.md")
BLOCK = re.compile(r"^```[^\n]*\n(.*?)\n```$", flags=re.MULTILINE | re.DOTALL)
GRADE = "shardkit grade examples/"
TIMELINE = "shardkit timeline "
CALC = "shardkit calc "
WORLD = "pytest -q test_exchange.py"
QUIZ = "$ .venv/bin/shardkit quiz "
TYPED = re.compile(r"^> (\S)$", flags=re.MULTILINE)


def terminal() -> dict[str, str]:
    """The environment of an 80-column terminal without colours, in which pytest does not take itself for CI's."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS")}
    return {**kept, "COLUMNS": "80", "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}


def shardkit(arguments: list[str], typed: str = "") -> str:
    command = [sys.executable, "-c", "from kit.cli import main; main()", *arguments]
    ended = subprocess.run(command, input=typed, capture_output=True, text=True, timeout=300, cwd=ROOT, env=terminal())
    return ended.stdout.rstrip()


def world_session(directory: Path) -> str:
    try:
        importlib.metadata.distribution("shardkit")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("shardkit is not installed in this environment, so pytest cannot find its plugin")
    shutil.copy(ROOT / "examples" / "world" / "test_exchange.py", directory)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_exchange.py"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=directory, env=terminal())
    return ended.stdout.rstrip()


def without_numbers(text: str) -> str:
    """Numbers masked, since machines round and take their time, and spaces, since columns follow their width."""
    return re.sub(r"[ \n]+", " ", re.sub(r"-?\d[\d.e+-]*", "N", text))


def commands(text: str) -> list[tuple[str, str]]:
    """(command, whole block) of each session of `grade`, `timeline` and `calc`, or of the world's example."""
    found = []
    for block in BLOCK.findall(text):
        first = block.split("\n", 1)[0]
        if first.startswith("$ ") and (GRADE in first or TIMELINE in first or CALC in first or first == f"$ {WORLD}"):
            found.append((first, block))
        elif block.startswith("dp/bucketed  "):  # what the line under "Run it" ends with
            found.append((f"{GRADE}dp/bucketed/right.py", block))
    return found


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Command of a session -> what it prints today, with the seed that the session names."""
    shown = {}
    for name in READMES:
        shown.update(commands((ROOT / name).read_text(encoding="utf-8")))
    today = {}
    for command, block in sorted(shown.items()):
        if WORLD in command:
            today[command] = world_session(tmp_path_factory.mktemp("empty"))
        else:
            seed = re.findall(r"--seed (\d+)", block)
            again = ["--seed", seed[0]] if seed else []
            today[command] = shardkit([*shlex.split(command.split("shardkit ", 1)[1]), *again])
    return today


@pytest.mark.parametrize("name", READMES)
def test_sessions_are_what_the_commands_print(name: str, outputs: dict[str, str]) -> None:
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    sessions = commands(text)
    assert len(sessions) == 6, [command for command, _ in sessions]
    for command, block in sessions:
        lead = f"{command}\n" if command.startswith("$ ") else ""
        if os.environ.get("SHARDKIT_UPDATE_README"):
            text = text.replace(block, lead + outputs[command])
        else:
            assert without_numbers(block) == without_numbers(lead + outputs[command]), command
    if os.environ.get("SHARDKIT_UPDATE_README"):
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", READMES)
def test_the_quiz_is_what_it_asks_today(name: str) -> None:
    """Word for word as far as the README shows it, with the answers that it shows."""
    blocks = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    (block,) = [block for block in blocks if block.startswith(QUIZ)]
    command, session = block.split("\n", 1)
    shown, cut = session.rsplit("\n\n", 1)
    assert cut.startswith("[")
    typed = "".join(f"{line}\n" for line in TYPED.findall(shown))
    printed = shardkit(shlex.split(command.split("shardkit ", 1)[1]), typed)
    today = "\n".join(line.rstrip() for line in printed.split("\n"))
    assert today.startswith(shown + "\n"), today
