"""An answer that is written in the user's editor."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path

import pytest

from kit.errors import KitError
from kit.screen.editor import edit


def editor(tmp_path: Path, code: str) -> str:
    """A command that runs `code` with `path`, the file to be edited."""
    script = tmp_path / "an editor.py"
    script.write_text(f"import pathlib, sys\npath = pathlib.Path(sys.argv[-1])\n{code}\n", encoding="utf-8")
    return shlex.join([sys.executable, str(script)])


def test_what_the_editor_leaves_is_taken(tmp_path: Path) -> None:
    left = tmp_path / "where.txt"
    code = (
        f"open({str(left)!r}, 'w').write(str(path)); path.write_text(path.read_text('utf-8') + '两\\nlines', 'utf-8')"
    )
    assert edit("first\n", {"EDITOR": editor(tmp_path, code)}) == "first\n两\nlines"
    file = Path(left.read_text())
    assert file.suffix == ".md" and not file.parent.exists()


def test_visual_comes_before_editor(tmp_path: Path) -> None:
    environ = {"VISUAL": editor(tmp_path, "path.write_text('visual')"), "EDITOR": "false"}
    assert edit("", environ) == "visual"
    assert edit("", {**environ, "EDITOR": environ["VISUAL"], "VISUAL": " "}) == "visual"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "neither VISUAL nor EDITOR"),
        ("no-such-editor-here", "cannot be started: No such file"),
        ("an 'open quote", "cannot be started: No closing quotation"),
        ("false", "ended with code 1"),
    ],
)
def test_an_editor_that_does_not_work_is_said(command: str, message: str) -> None:
    with pytest.raises(KitError, match=message):
        edit("text", {"EDITOR": command})


def test_ctrl_c_is_the_editor_s_alone(tmp_path: Path) -> None:
    """It goes to both; an editor that ends of it leaves the answer as it was, and one that goes on is waited for."""
    both = "import os, signal; os.kill(os.getppid(), signal.SIGINT)"
    stays = f"{both}; signal.signal(signal.SIGINT, lambda *_: None); os.kill(os.getpid(), signal.SIGINT)"
    assert edit("text", {"EDITOR": editor(tmp_path, f"{stays}; path.write_text('on')")}) == "on"
    ends = f"{both}; signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGINT)"
    with pytest.raises(KitError, match="was ended by signal 2; nothing was taken over"):
        edit("text", {"EDITOR": editor(tmp_path, ends)})
    inherited = "import signal; path.write_text(str(signal.getsignal(signal.SIGINT) is signal.default_int_handler))"
    assert edit("text", {"EDITOR": editor(tmp_path, inherited)}) == "True"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
