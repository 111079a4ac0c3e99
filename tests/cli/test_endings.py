"""However a command ends: one line that says why, the right exit code, and never a traceback."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from kit.cli.ending import explain
from tests.cli.conftest import ROOT, Shardkit, environment


def start(*arguments: str | Path, cwd: Path, **streams: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kit", *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        text=True,
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},  # type: ignore[call-overload]
    )


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["lst"], "No such command 'lst'", "shardkit --help"),
        (["list", "--levle", "2"], "No such option", "shardkit list --help"),
        (["list", "--level", "7"], "no level '7'; levels are 1, 2, 3, 4", ""),
        (["list", "--lang", "fr"], "no language 'fr'; there are en and zh", ""),
        (["list", "--bank", "nowhere"], "no folder nowhere", ""),
        (["show"], "Missing argument 'ID'", "shardkit show --help"),
        (["show", "dp/buckted"], "no question 'dp/buckted'; closest: dp/bucketed", ""),
        (["show", "../../etc/passwd"], "no question '../../etc/passwd'", "shardkit list"),
        (["show", "dp/bucketed", "--hints", "-1"], "Invalid value for '--hints'", "shardkit show --help"),
        (["start", "dp/replicas_identical"], "is a multi question and has no starter", "shardkit quiz"),
        (["grade"], "Missing argument '[ID] FILE'", "shardkit grade --help"),
        (["grade", "dp/bucketed"], "which file answers dp/bucketed?", "shardkit grade dp/bucketed FILE"),
        (["grade", "mine.py", "dp/bucketed"], "dp/bucketed is a question", "shardkit grade dp/bucketed FILE"),
        (["grade", "nofile.py"], "no file nofile.py", ""),
        (["grade", "--reference", "dp/buckted"], "closest: dp/bucketed", ""),
        (["grade", "dp/bucketed", "x.py", "--transport", "mpi"], "no transport 'mpi'", ""),
        (["grade", "dp/bucketed", "x.py", "--feedback", "some"], "no feedback 'some'", ""),
        (
            ["quiz", "--kind", "code"],
            "a quiz asks choice, multi, number, order, predict, open, not code",
            "shardkit start",
        ),
        (["quiz", "--count", "0"], "Invalid value for '--count'", "shardkit quiz --help"),
        (["quiz", "--seed", "x"], "Invalid value for '--seed'", "shardkit quiz --help"),
    ],
)
def test_a_user_s_mistake_is_one_message_and_exit_code_2(
    shardkit: Shardkit, arguments: list[str], message: str, hint: str
) -> None:
    ended = shardkit(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    lines = ended.stderr.splitlines()
    assert lines[0].startswith("error: ") and message in lines[0]
    assert len(lines) == (2 if hint else 1), ended.stderr
    assert not hint or (lines[1].startswith("hint: ") and hint in lines[1])


def test_a_malformed_question_is_named_with_its_line(shardkit: Shardkit, bank: Path) -> None:
    broken = bank / "questions" / "sums" / "which.yaml"
    broken.write_text(broken.read_text("utf-8").replace("hints:", "hint:"), encoding="utf-8")
    ended = shardkit("show", "sums/which", "--bank", bank)
    assert ended.returncode == 2
    assert "questions/sums/which.yaml:9: unknown key 'hint' (did you mean 'hints'?)" in ended.stderr
    broken.write_text("kind: [", encoding="utf-8")
    ended = shardkit("list", "--bank", bank)
    assert ended.returncode == 2 and "questions/sums/which.yaml:" in ended.stderr
    broken.write_bytes(b"kind: \xff\xfe")
    ended = shardkit("list", "--bank", bank)
    assert ended.returncode == 2 and "not UTF-8" in ended.stderr


def test_a_name_or_a_line_of_a_file_cannot_drive_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "absent\x1b[2J.py").write_text("")
    (tmp_path / "broken.py").write_text("x = '\x1b]0;title\x07\n")
    for file, shown in (("absent.py", r"absent\x1b[2J.py"), ("broken.py", r"\x1b]0;title\x07")):
        _, told = start("grade", "dp/bucketed", file, cwd=tmp_path).communicate(timeout=60)
        assert shown in told and "\x1b" not in told and "\x07" not in told


def test_the_kit_s_own_fault_is_called_so_and_kept_in_a_file(tmp_path: Path) -> None:
    program = (
        "import sys, kit.cli.app, kit.cli\n"
        "def broken(arguments): raise ZeroDivisionError('a secret\\nof the kit')\n"
        "kit.cli.app.invoke = broken\n"
        "sys.argv = ['shardkit', 'list']\n"
        "kit.cli.main()\n"
    )

    def run(cache: Path) -> subprocess.CompletedProcess[str]:
        changed = environment(XDG_CACHE_HOME=str(cache), TMPDIR=str(tmp_path))
        command = [sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=changed)

    ended = run(tmp_path / "cache")
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "Traceback" not in ended.stderr
    assert "this is a fault of shardkit, not of your file (ZeroDivisionError: a secret of the kit)" in ended.stderr
    report = Path(re.findall(r"traceback in (\S+)", ended.stderr)[0])
    assert report.is_relative_to(tmp_path / "cache")
    assert "ZeroDivisionError" in report.read_text("utf-8") and "['list']" in report.read_text("utf-8")
    (tmp_path / "file").touch()
    ended = run(tmp_path / "file")  # no folder can be made there: the temporary folder takes it
    assert ended.returncode == 3
    assert Path(re.findall(r"traceback in (\S+)", ended.stderr)[0]).parent == tmp_path


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    for arguments in (["list"], ["list", "--json"], ["show", "dp/bucketed", "--answer"], ["--help"]):
        process = start(*arguments, cwd=tmp_path)
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == "", arguments
        assert process.wait(60) in (0, 141), arguments


def test_ctrl_c_is_quiet(tmp_path: Path) -> None:
    process = start("quiz", "--seed", "1", cwd=tmp_path, stdin=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    while "q quit" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr.read() == ""


def test_ctrl_c_while_starting_is_quiet(tmp_path: Path) -> None:
    for delay_s in (0.06, 0.12, 0.2):
        process = start("list", cwd=tmp_path)
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        if process.returncode == 1 and "kit/" not in errors:
            continue  # the interpreter was still importing its own modules, and says so in its own words
        assert process.returncode in (0, 130, -signal.SIGINT), errors
        assert process.returncode == -signal.SIGINT or "Traceback" not in errors


def test_a_working_directory_that_was_deleted_is_said(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    program = "import os, sys; os.rmdir(os.getcwd()); from kit.cli import main; main(sys.argv[1:])"
    ended = subprocess.run(
        [sys.executable, "-c", program, "grade", "dp/bucketed", "/mine.py"],
        cwd=tmp_path / "gone",
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "error: the working directory is not there any more\nhint: change into one that is (cd ..)\n"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_grade_that_is_ended_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "temporary").mkdir()
    (tmp_path / "mine.py").write_text(
        "import os, time\n\n"
        "class DDPBucketed:\n"
        "    def __init__(self, module, bucket_size_mb): ...\n"
        "    def finish_gradient_synchronization(self): ...\n\n"
        f"os.close(os.open({str(tmp_path / 'started')!r}, os.O_CREAT))\ntime.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "kit", "grade", "dp/bucketed", "mine.py"],
        cwd=tmp_path,
        env=environment(TMPDIR=str(tmp_path / "temporary")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "started").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 128 + number
    assert list((tmp_path / "temporary").glob("shardkit-*")) == []


def test_a_hangup_is_told_once_and_where_it_is_ignored_not_at_all(tmp_path: Path) -> None:
    program = """
        import signal, kit.cli

        for before in (signal.SIG_DFL, signal.SIG_IGN):
            signal.signal(signal.SIGHUP, before)
            raised = 0
            with kit.cli.ended_as_by_ctrl_c() as came:
                for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGTERM):
                    try:
                        signal.raise_signal(number)
                    except KeyboardInterrupt:
                        raised += 1
            assert signal.getsignal(signal.SIGHUP) == before and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
            print(raised, *map(int, came))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment())
    assert (ended.stdout, ended.stderr) == ("3 1 1 15 15\n2 15 15\n", "")


def test_a_machine_that_gives_no_more_is_no_fault_of_the_kit(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(OSError(errno.EMFILE, "Too many open files", "/tmp/x")) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: the machine allows no more: Too many open files\n") and "fault" not in told


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_is_said(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        process = start("list", cwd=tmp_path, stdout=full)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (2, "error: output cannot be written: No space left on device\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_fault(tmp_path: Path, closed: str) -> None:
    for arguments, code in (("list", 0), ("quiz --seed 1", 0), ("show x/y", 2)):
        command = f"exec '{sys.executable}' -m kit {arguments} {closed}"
        ended = subprocess.run(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment(),
            cwd=tmp_path,
        )
        assert ended.returncode == code, (arguments, ended.stderr)
        assert "Traceback" not in ended.stderr and "fault" not in ended.stderr


def test_names_that_are_not_utf_8_are_no_fault(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\xfe.d")
    ended = subprocess.run(
        [sys.executable, "-m", "kit", "list", "--bank", name], capture_output=True, cwd=tmp_path, env=environment()
    )
    assert ended.returncode == 2 and b"no folder" in ended.stderr
    ended = subprocess.run(
        [sys.executable, "-m", "kit", "start", "dp/bucketed", "--dir", name],
        capture_output=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / name / "bucketed.py").exists()


def test_chinese_without_an_encoding_for_it_is_refused(shardkit: Shardkit) -> None:
    ended = shardkit("list", "--lang", "zh", PYTHONIOENCODING="ascii")
    assert ended.returncode == 2 and "has no Chinese" in ended.stderr
    ended = shardkit("list", "--lang", "en", PYTHONIOENCODING="ascii")
    assert ended.returncode == 0 and ended.stdout.isascii()
