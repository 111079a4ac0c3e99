"""Scenarios of several launches in one directory, and with faults: a crash-consistency check tells writers apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.grading import Scenario

ROOT = Path(__file__).resolve().parents[2]
CRASH = Path(__file__).parent / "bank" / "crash"


def held_against(solution: str, folder: Path) -> str:
    """What pytest says of the checks."""
    scratch = folder / "scratch"
    scratch.mkdir()
    ended = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "kit.grading.plugin", "-q", "-rA",
            "--noconftest", f"--rootdir={folder}", str(CRASH / "test_checkpoint.py"),
            "--solution", str(CRASH / solution),
        ],
        capture_output=True, text=True, timeout=240, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert list(scratch.glob("shardkit-*")) == [], "the shared directory was left behind"
    return ended.stdout + ended.stderr


def test_a_writer_that_renames_passes_a_crash_at_every_event(tmp_path: Path) -> None:
    said = held_against("atomic.py", tmp_path)
    assert "6 passed" in said and "failed" not in said and "skipped" not in said, said


def test_a_writer_in_place_fails_it_and_nothing_else(tmp_path: Path) -> None:
    said = held_against("in_place.py", tmp_path)
    assert "2 failed, 4 passed" in said, said
    assert "after a crash before filesystem event 2, neither the old nor the new state loads" in said


@pytest.mark.parametrize("more", [{"gloo": (2,)}, {"gloo": (), "phases": lambda problem, size: iter(())}])
def test_faults_that_could_not_strike_are_refused(more: dict[str, Any]) -> None:
    def program(solution: Any, inputs: Any) -> None: ...

    program.__qualname__ = "program"
    parts: dict[str, Any] = {"problem": max, "rank_inputs": max, "expected": max, "faults": lambda problem, size: []}
    assert Scenario(program, **parts, gloo=()).faults is not None
    with pytest.raises(ValueError, match="faults strike on the switchboard alone"):
        Scenario(program, **{**parts, **more})
