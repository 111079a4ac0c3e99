"""A grade as a file: JSON (docs/json.md) and JUnit XML. Written whole or not at all, and never through a link."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from xml.etree import ElementTree

from kit.errors import KitError
from kit.grading.result import GradeResult
from kit.world.xml_text import legal

_STATE_TAGS = {"failed": "failure", "kit_error": "error", "not_run": "skipped"}


def json_text(result: GradeResult) -> str:
    text = json.dumps(result.to_json(), indent=2, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")  # a lone surrogate becomes JSON's own escape


def junit_text(result: GradeResult) -> str:
    """One testcase a check, world size and transport."""
    bad = {verdict: sum(check.verdict == verdict for check in result.checks) for verdict in _STATE_TAGS}
    suite = ElementTree.Element(
        "testsuite", name=f"shardkit {result.question}", tests=str(len(result.checks)), failures=str(bad["failed"]),
        errors=str(bad["kit_error"]), skipped=str(bad["not_run"]), time=f"{result.duration_s:.3f}",
    )  # fmt: skip
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("verdict", result.verdict), ("score", result.score), ("max_score", result.max_score),
                        ("seed", result.seed), ("solution", result.solution)):  # fmt: skip
        ElementTree.SubElement(properties, "property", name=name, value=legal(str(value)))
    for check in result.checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"{result.question.replace('/', '.')}.{check.proof}",
            name=f"{check.name}[{check.world_size}-{check.transport}]", time=f"{check.duration_s:.4f}",
        )  # fmt: skip
        if check.verdict in _STATE_TAGS:
            first_line = check.message.splitlines()[0] if check.message else check.title
            problem = ElementTree.SubElement(case, _STATE_TAGS[check.verdict], message=legal(first_line))
            problem.text = legal(check.message)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def write(path: Path, text: str) -> None:
    """Replace the file at `path`. KitError where that cannot be done; then nothing has changed."""
    if path.is_symlink():
        raise KitError(f"{path} is a link; a report is never written through one", "name another file")
    if path.is_dir():
        raise KitError(f"{path} is a directory", "name a file")
    if path.exists() and not path.is_file():
        return _write_into(path, text)
    part = _part(path, text)
    try:
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise KitError(f"{path} cannot be written: {error.strerror}") from None


def _part(path: Path, text: str) -> Path:
    """A new file beside `path` with this text. KitError where there can be none."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        part.unlink(missing_ok=True) if part.exists() else None
        raise KitError(f"{path} cannot be written: {error.strerror}") from None
    return part


def _write_into(path: Path, text: str) -> None:
    """A device or a pipe is not replaced by a file: it takes the text itself."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "w", encoding="utf-8") as file:
            os.set_blocking(file.fileno(), True)
            file.write(text)
    except OSError as error:
        raise KitError(f"{path} cannot be written: {error.strerror}") from None


def require_writable(path: Path) -> None:
    """KitError now, and not after a grade, where a report could not be written: it is tried."""
    if path.is_symlink() or path.is_dir():
        write(path, "")
    if not path.parent.is_dir():
        raise KitError(f"{path} cannot be written: there is no directory {path.parent}")
    if path.is_file() or not path.exists():
        _part(path, "").unlink()
