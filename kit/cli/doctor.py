"""`doctor`: what this machine has of what the commands need, and what to do about the rest."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kit.cli import NOT_PASSED, PASSED
from kit.errors import KitError
from kit.screen.doctor import Finding, show_findings
from kit.screen.page import Page
from kit.screen.terminal import Terminal

MIN_PYTHON = (3, 10)
MIN_TORCH = (2, 13)
MIN_MEMORY_BYTES = 2 << 30
MIN_DISK_BYTES = 256 << 20
MIN_OPEN_FILES = 256
MIN_PROCESSES = 128
MIN_ADDRESS_SPACE_BYTES = 16 << 30
MIN_COLUMNS = 60


def examine(directory: Path | None) -> int:
    """Prints the findings as they come. Returns the exit code: 1 where something needed is missing."""
    page = Page()
    findings = show_findings(page, everything(directory, page.terminal))
    return NOT_PASSED if any(finding.state == "problem" for finding in findings) else PASSED


def everything(directory: Path | None, terminal: Terminal) -> Iterator[Finding]:
    yield python()
    yield system()
    yield bank_found(directory)
    yield screen(terminal)
    yield memory()
    yield disk()
    yield from limits()
    yield memfd()
    torch = torch_found()
    yield torch
    if torch.state != "problem":
        yield from ranks()


def python() -> Finding:
    detail = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < MIN_PYTHON:
        return Finding("Python", "problem", detail, "install Python 3.10 or newer")
    return Finding("Python", "ok", detail)


def system() -> Finding:
    detail = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    if platform.system() == "Linux":
        return Finding("system", "ok", f"{detail}; ranks are forked")
    if platform.system() == "Windows":
        return Finding("system", "problem", detail, "use shardkit inside WSL")
    return Finding(
        "system", "note", f"{detail}; ranks are started afresh", "each rank imports torch: grades are slower"
    )


def bank_found(directory: Path | None) -> Finding:
    from kit.bank.layout import find_bank
    from kit.bank.load import KINDS, headers

    try:
        bank = find_bank(directory)
        found = headers(bank)
    except KitError as error:
        return Finding("questions", "problem", error.message, error.hint or "`shardkit lint` says more")
    counts = [f"{sum(header.kind == kind for header in found)} {kind}" for kind in KINDS]
    detail = f"{len(found)} ({', '.join(count for count in counts if not count.startswith('0 '))}) in {bank.questions}"
    if not found:
        return Finding("questions", "problem", detail, "give the folder that contains questions/ with --bank DIR")
    if not bank.answers.is_dir():
        return Finding(
            "questions", "note", f"{detail}; no references", "`grade --reference` and full lint need reference/"
        )
    return Finding("questions", "ok", detail)


def screen(terminal: Terminal) -> Finding:
    shown = [
        f"{terminal.width} columns" if terminal.is_terminal else "not a terminal",
        "colour" if terminal.has_colour else "no colour",
        "Unicode" if terminal.has_unicode else "ASCII",
        terminal.encoding,
    ]
    detail = ", ".join(shown)
    if terminal.is_terminal and terminal.width < MIN_COLUMNS:
        return Finding("terminal", "note", detail, f"screens are made for {MIN_COLUMNS} columns and more")
    if not terminal.has_unicode:
        return Finding("terminal", "note", detail, "for Chinese and for signs beyond ASCII set LANG to a UTF-8 locale")
    return Finding("terminal", "ok", detail)


def memory() -> Finding:
    available = available_bytes()
    if available is None:
        return Finding("memory", "note", "not known on this system", f"a grade needs about {in_gib(MIN_MEMORY_BYTES)}")
    detail = f"{in_gib(available)} available"
    if available < MIN_MEMORY_BYTES:
        return Finding(
            "memory", "note", detail, f"a grade needs about {in_gib(MIN_MEMORY_BYTES)}: close other programs"
        )
    return Finding("memory", "ok", detail)


def available_bytes() -> int | None:
    """What the kernel would give without swapping, or what is left to this control group if that is less."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
    except (OSError, ValueError):  # no limit, or no control groups
        return free
    return limit if free is None else min(free, limit)


def disk() -> Finding:
    try:
        with tempfile.TemporaryDirectory(prefix="shardkit-") as directory:
            free = shutil.disk_usage(directory).free
    except OSError as error:
        return Finding("temporary files", "problem", str(error), "point TMPDIR to a folder that can be written to")
    detail = f"{in_gib(free)} free in {tempfile.gettempdir()}"
    if free < MIN_DISK_BYTES:
        return Finding("temporary files", "problem", detail, "make room, or point TMPDIR elsewhere")
    return Finding("temporary files", "ok", detail)


def limits() -> Iterator[Finding]:
    """The limits of this shell that ranks run into."""
    import resource

    wanted = [
        ("open files", resource.RLIMIT_NOFILE, MIN_OPEN_FILES, "-n", 1),
        ("processes", resource.RLIMIT_NPROC, MIN_PROCESSES, "-u", 1),
        ("address space", resource.RLIMIT_AS, MIN_ADDRESS_SPACE_BYTES, "-v", 1024),
    ]
    for name, which, least, flag, unit in wanted:
        soft, _ = resource.getrlimit(which)
        if soft == resource.RLIM_INFINITY:
            yield Finding(name, "ok", "unlimited")
        elif soft < least:
            yield Finding(name, "problem", f"limited to {soft}", f"raise it: ulimit {flag} {least // unit}")
        else:
            yield Finding(name, "ok", f"limited to {soft}")


def memfd() -> Finding:
    """Large tensors go through memory that the kernel seals, where it can."""
    if not hasattr(os, "memfd_create"):
        return Finding(
            "memfd", "note", "not on this system", "large tensors travel through sockets: slower, else the same"
        )
    try:
        os.close(os.memfd_create("shardkit"))
    except OSError as error:
        return Finding(
            "memfd", "problem", f"memfd_create: {error.strerror}", "allow it in the container's seccomp profile"
        )
    return Finding("memfd", "ok", "available")


def torch_found() -> Finding:
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        advice = "grading needs it (the quiz does not): install the CPU build, see README, Run it"
        return Finding("torch", "problem", "not installed", advice)
    numbers = version.split("+")[0].split(".")
    if tuple(int(number) for number in numbers[:2] if number.isdigit()) < MIN_TORCH:
        least = ".".join(map(str, MIN_TORCH))
        return Finding("torch", "problem", version, f"grading needs torch {least} or newer")
    return Finding("torch", "ok", version)


def ranks() -> Iterator[Finding]:
    """Two ranks on each transport, for real."""
    from kit.world.probe import NUM_RANKS, try_ranks

    names = {"switchboard": "ranks, switchboard", "gloo": "ranks, gloo"}
    try:
        outcomes = try_ranks(list(names))
    except Exception as error:  # whatever a broken torch raises is the finding
        yield Finding("ranks", "problem", f"{type(error).__name__}: {error}", "reinstall torch, or report this")
        return
    for transport, outcome in outcomes.items():
        if isinstance(outcome, str):
            advice = "report this, with what `shardkit doctor` prints"
            yield Finding(names[transport], "problem", outcome, advice)
        else:
            detail = f"{NUM_RANKS} ranks and an all_reduce in {1000 * outcome:.0f} ms"
            yield Finding(names[transport], "ok", detail)


def in_gib(nbytes: int) -> str:
    return f"{nbytes / 2**30:.1f} GiB"
