"""`watch` in a real terminal: a save is graded, keys tell more, and what cannot be graded ends nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
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


HANGS = RIGHT.replace("    total = tensor", "    import time\n    time.sleep(600)\n    total = tensor")


def ranks_of(child: pexpect.spawn[str]) -> list[int]:
    """The processes below those that it started."""

    def below(pid: int) -> list[int]:
        try:
            text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        except OSError:
            return []
        return [each for first in map(int, text.split()) for each in (first, *below(first))]

    assert child.pid is not None
    return below(child.pid)


def wait_until(is_so: Callable[[], bool], limit_s: float = 20) -> None:
    limit = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_q_and_r_interrupt_a_grade_and_leave_no_process(start: Start, file: Path) -> None:
    file.write_text(HANGS, encoding="utf-8")
    child = start("watch", "toy/mean", file, "--bank", TOY)
    until(child, "grading")
    wait_until(lambda: len(ranks_of(child)) > 1)  # the process that forks ranks, and one of them
    child.send("r")
    until(child, "grading")
    file.write_text(RIGHT, encoding="utf-8")
    child.send("r")
    assert "First cause" not in until(child, "passed")
    file.write_text(HANGS, encoding="utf-8")
    until(child, "grading")
    wait_until(lambda: len(ranks_of(child)) > 1)
    left, since = ranks_of(child), time.monotonic()
    child.send("q")
    child.expect(pexpect.EOF)
    assert time.monotonic() - since < 8
    child.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)


def test_keys_are_heard_after_ctrl_z(start: Start, file: Path) -> None:
    child = start("watch", "toy/mean", file, "--bank", TOY, "--transport", "switchboard")
    until(child, END) and until(child, END)
    before = termios.tcgetattr(child.child_fd)
    cooked = list(before)
    cooked[3] |= termios.ICANON | termios.ECHO
    child.kill(signal.SIGSTOP)
    termios.tcsetattr(child.child_fd, termios.TCSANOW, cooked)  # as a shell does
    child.kill(signal.SIGCONT)
    wait_until(lambda: not termios.tcgetattr(child.child_fd)[3] & termios.ICANON)
    child.send("h")
    until(child, "Hint 1 of 2")
    child.send("q")
    child.expect(pexpect.EOF)


def test_a_file_that_changes_during_its_grade_is_graded_again_and_nothing_is_said_of_the_first(
    start: Start, file: Path
) -> None:
    file.write_text(RIGHT, encoding="utf-8")
    child = start("watch", "toy/mean", file, "--bank", TOY, "--transport", "switchboard")
    until(child, "passed")
    file.write_text(RIGHT.replace("    total = tensor", "    import time\n    time.sleep(0.5)\n    raise ValueError"))
    until(child, "grading")
    time.sleep(0.3)
    file.write_text("def mean_over_ranks(", encoding="utf-8")
    time.sleep(0.1)
    file.write_text(RIGHT + "\n", encoding="utf-8")
    shown = until(child, "passed")
    for text in ("changed while", "ValueError", "syntax error", "First cause"):
        assert text not in shown
    child.send("q")
    child.expect(pexpect.EOF)


def test_a_pipe_in_the_file_s_place_is_not_waited_for(start: Start, file: Path) -> None:
    child = start("watch", "toy/mean", file, "--bank", TOY, "--transport", "switchboard")
    until(child, END) and until(child, END)
    os.mkfifo(file.with_suffix(".pipe"))
    os.replace(file.with_suffix(".pipe"), file)
    until(child, "is not a regular file")
    file.unlink()
    save(file, RIGHT)
    until(child, "passed")
    child.send("q")
    child.expect(pexpect.EOF)


def test_a_link_to_nothing_is_called_so(shardkit: Shardkit, tmp_path: Path) -> None:
    (tmp_path / "answer.py").symlink_to("gone.py")
    ended = shardkit("watch", "toy/mean", tmp_path / "answer.py", "--bank", TOY)
    assert ended.returncode == 2 and "is a link to gone.py, which is not there" in ended.stderr
