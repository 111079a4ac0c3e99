"""A learner's file, read and never run: what can be said about it before any rank starts."""

from __future__ import annotations

import ast
import os
import re
import stat
import warnings
from dataclasses import dataclass
from pathlib import Path

from kit.bank.closest import closest
from kit.errors import KitError

MAX_BYTES = 1 << 20
_MARK = re.compile(r"^#\s*shardkit:\s*(\S+)\s*$")


@dataclass(frozen=True, slots=True)
class Solution:
    """A readable Python file. marked_id is the question that its first lines name (`# shardkit: a/b`), or empty."""

    path: Path
    text: str
    tree: ast.Module
    marked_id: str

    @property
    def name(self) -> str:
        return self.path.name

    def is_untouched(self, starter: Path) -> bool:
        """Whether nothing but comments and blank lines differs from the starter."""
        try:
            return ast.dump(ast.parse(starter.read_text(encoding="utf-8"))) == ast.dump(self.tree)
        except (OSError, ValueError, SyntaxError):
            return False


def read_solution(path: Path) -> Solution:
    """KitError, with what to do, for a file that cannot be a solution."""
    text = _decode(path, _read(path))
    if not text.strip():
        raise KitError(f"{path} is empty", "`shardkit start ID` writes a file to begin with")
    return Solution(path, text, _parse(path, text), marked_id(text))


def marked_id(text: str) -> str:
    """The question that one of the first three lines names."""
    for line in text.splitlines()[:3]:
        found = _MARK.match(line)
        if found:
            return found[1]
    return ""


def read_regular(path: Path) -> bytes:
    """What a file holds; OSError for anything but a file, as a pipe, which would be waited for."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(f"{path} is not a regular file")
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is not a regular file")
        return file.read()


def _read(path: Path) -> bytes:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise KitError(f"{path} is a directory, not a Python file", "give the file itself")
        if not stat.S_ISREG(status.st_mode):
            raise KitError(f"{path} is not a regular file")
        if status.st_size > MAX_BYTES:
            raise KitError(f"{path} has {status.st_size} bytes; a solution has at most {MAX_BYTES}")
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            return file.read(MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise KitError(f"{path} is a link to {os.readlink(path)}, which is not there") from None
        raise KitError(f"no file {path}", _similar_files(path)) from None
    except (OSError, ValueError) as error:
        raise KitError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _similar_files(path: Path) -> str | None:
    try:
        names = sorted(one.name for one in path.parent.iterdir() if one.suffix == ".py")
    except OSError:
        return f"there is no directory {path.parent}"
    near = closest(path.name, names)
    return f"did you mean {' or '.join(str(path.with_name(name)) for name in near)}?" if near else None


def _decode(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise KitError(f"{path}:{line}: byte 0x{raw[error.start]:02x} is not UTF-8", "save the file as UTF-8") from None


def _parse(path: Path, text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename=str(path))
            compile(text, str(path), "exec", dont_inherit=True)  # also `return` outside a function
        return tree
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise KitError(
            f"{path}:{error.lineno or 1}: syntax error: {error.msg}", f"the line is: {line}" if line else None
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise KitError(f"{path} is not Python source: {error or type(error).__name__}") from None
