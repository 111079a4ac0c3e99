"""`watch` in a real terminal: a save is graded, keys tell more, and what cannot be graded ends nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from rich.cells import cell_len

from tests.cli.conftest import ROOT, Shardkit, environment
from tests.cli.terminal import Start, screen, until

TOY = ROOT / "tests" / "grading" / "bank"
RIGHT = (TOY / "reference/toy/mean.py").read_text("utf-8")
WRONG = RIGHT.replace("/ dist.get_world_size(group)", "")
END = "q quit"


def save(file: Path, text: str) -> None:
    """As many editors do: a new file in the place of the old one."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, file)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "mean.py"
    path.parent.mkdir()
    path.write_text(WRONG, encoding="utf-8")
    return path


@pytest.mark.parametrize("columns", [60, 80])
def test_from_wrong_to_right(start: Start, file: Path, columns: int) -> None:
    child = start("watch", "toy/mean", file, "--bank", TOY, columns=columns)
    shown = until(child, "keys: h hint")
    assert f"every save is graded: {file}\n" in shown
    shown = until(child, END) and until(child, END)
    assert "Every rank returns the mean over ranks." in shown and "wrong   0 of" in shown
    assert "First cause" in shown and "world_size=2" in shown and "still" not in shown.split()
    child.send("h")
    until(child, "Hint 1 of 2")
    child.send("f")
    assert "rank 0" in until(child, "a hint: shardkit grade toy/mean")
    save(file, WRONG + "\n")
    shown = until(child, END)
    assert "still" in shown.split()
    save(file, "def mean_over_ranks(:\n")
    until(child, "syntax error")
    save(file, RIGHT)
    until(child, "on the switchboard in ")
    shown = until(child, END)
    assert "passed   8 of 8 points" in shown
    assert max(cell_len(line) for line in shown.splitlines()) <= columns
    child.send("q")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_a_save_that_changes_nothing_is_none_and_r_grades_all_the_same(start: Start, file: Path) -> None:
    child = start("watch", "toy/mean", file, "--bank", TOY, "--transport", "switchboard")
    until(child, "keys: h hint")
    until(child, END) and until(child, END)
    save(file, WRONG)
    child.send("h")
    assert "grading" not in until(child, "Hint 1 of 2")
    child.send("r")
    assert "still" in until(child, END).split()
    for text in ("Hint 2 of 2", "no more hints"):
        child.send("h")
        until(child, text)
    child.send("q")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 1


def test_ctrl_c_puts_the_terminal_back(start: Start, file: Path, tmp_path: Path) -> None:
    command = f"trap : INT; '{sys.executable}' -m kit watch toy/mean '{file}' --bank '{TOY}'; stty -a | tr ';' '\\n'"
    child = pexpect.spawn(
        "/bin/sh", ["-c", command], env=environment(TERM="xterm"), cwd=str(tmp_path), encoding="utf-8", timeout=30
    )
    until(child, "First cause")
    until(child, END)
    child.sendintr()
    child.expect(pexpect.EOF)
    words = screen(child).split()
    assert "icanon" in words and "echo" in words
    child.close(force=True)


def test_without_a_terminal_saves_are_graded_until_it_is_ended(file: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kit", "watch", "toy/mean", str(file), "--bank", str(TOY), "--transport", "switchboard"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment(),
    )  # fmt: skip
    try:
        assert process.stdout is not None
        shown = ""
        while "seed" not in shown:
            shown += process.stdout.readline()
        assert "Ctrl-C ends it" in shown and "q quit" not in shown and "\x1b" not in shown
        save(file, RIGHT)
        while "passed " not in shown:
            shown += process.stdout.readline()
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["toy/mean", "none.py"], "no file none.py"),
        (["toy/mean"], "which file answers toy/mean?"),
        (["toy/mean", "none.py", "--transport", "mpi"], "no transport 'mpi'"),
    ],
)
def test_what_makes_no_sense_is_said_at_once(shardkit: Shardkit, arguments: list[str], message: str) -> None:
    ended = shardkit("watch", *arguments, "--bank", TOY)
    assert ended.returncode == 2 and message in ended.stderr and "Traceback" not in ended.stderr
