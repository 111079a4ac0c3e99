"""`doctor`: each finding says what is wrong and what to do, and the exit code says whether anything is missing."""

from __future__ import annotations

import errno
import importlib.metadata
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.cli import doctor
from kit.screen.doctor import Finding
from kit.screen.terminal import Terminal
from tests.cli.conftest import Shardkit


def named(findings: Iterator[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_a_machine_that_has_everything(shardkit: Shardkit) -> None:
    """For real: ranks start and talk on both transports."""
    ended = shardkit("doctor")
    assert (ended.returncode, ended.stderr) == (0, "")
    states = {line[9:29].strip(): line[:9].strip() for line in ended.stdout.splitlines() if line[:1].strip()}
    for name in ("Python", "system", "questions", "torch", "ranks, switchboard", "ranks, gloo"):
        assert states[name] == "ok", ended.stdout
    assert ended.stdout.endswith("all that is needed is here\n")


def test_a_limit_of_the_shell_is_a_problem_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    def getrlimit(which: int) -> tuple[int, int]:
        return (64, 4096) if which == resource.RLIMIT_NOFILE else (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    monkeypatch.setattr(resource, "getrlimit", getrlimit)
    found = named(doctor.limits())
    assert (found["open files"].state, found["open files"].advice) == ("problem", "raise it: ulimit -n 256")
    assert found["processes"].detail == "unlimited"


def test_torch_that_is_missing_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
    def versioned(version: str) -> Finding:
        monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
        return doctor.torch_found()

    assert versioned("2.13.0+cpu").state == "ok"
    assert versioned("3.0").state == "ok"
    assert versioned("2.9.1").state == "problem"

    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert doctor.torch_found().detail == "not installed"


def test_without_torch_no_rank_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "torch_found", lambda: Finding("torch", "problem", "not installed"))
    monkeypatch.setattr(doctor, "ranks", lambda: pytest.fail("ranks were tried"))
    found = named(doctor.everything(None, Terminal(80, True, True, True, True, "utf-8")))
    assert found["torch"].state == "problem" and "ranks" not in found
    assert doctor.examine(None) == 1


def test_a_torch_that_breaks_on_import_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    import kit.world.probe

    def broken(transports: Any) -> None:
        raise ImportError("libtorch_cpu.so: cannot open shared object file")

    monkeypatch.setattr(kit.world.probe, "try_ranks", broken)
    (finding,) = doctor.ranks()
    assert finding.state == "problem" and "libtorch_cpu.so" in finding.detail


def test_a_bank_with_a_broken_question_or_none(bank: Path) -> None:
    assert doctor.bank_found(bank).state == "note"  # no references
    (bank / "reference").mkdir()
    found = doctor.bank_found(bank)
    assert found.state == "ok" and found.detail.startswith("2 (1 code, 1 choice) in ")
    (bank / "questions" / "sums" / "which.yaml").write_text("kind: choise\n", encoding="utf-8")
    found = doctor.bank_found(bank)
    assert found.state == "problem" and "which.yaml:1: unknown kind 'choise'" in found.detail
    assert doctor.bank_found(bank / "nowhere").state == "problem"


def test_terminals() -> None:
    assert doctor.screen(Terminal(80, True, True, True, True, "utf-8")).state == "ok"
    assert doctor.screen(Terminal(40, True, True, True, True, "utf-8")).state == "note"
    assert doctor.screen(Terminal(80, True, False, True, True, "utf-8")).state == "note"
    assert doctor.screen(Terminal(80, False, True, False, False, "utf-8")).state == "ok"


def test_memory_and_disk_that_run_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "available_bytes", lambda: 512 << 20)
    assert doctor.memory().state == "note" and "0.5 GiB" in doctor.memory().detail
    monkeypatch.setattr(doctor, "available_bytes", lambda: None)
    assert doctor.memory().state == "note"
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent/folder")
    assert doctor.disk().state == "problem"


@pytest.mark.skipif(sys.platform != "linux", reason="memfd is of Linux")
def test_a_container_that_forbids_memfd(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.memfd().state == "ok"

    def forbidden(name: str) -> int:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.memfd_create", forbidden)
    assert doctor.memfd().state == "problem"
    monkeypatch.delattr("os.memfd_create")
    assert doctor.memfd().state == "note"
