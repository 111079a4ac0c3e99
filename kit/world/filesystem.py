"""What a rank changes in the file system, seen from inside it, so that a fault can strike at the n-th change.

Python's audit events tell of opens, renames, removals and the like; writes and fsyncs have none, so `open`, `os.write`,
`os.sendfile` and `os.fsync` are wrapped. Installed only in ranks with a fault at a filesystem event, since neither can
be taken out of a process again.
"""

from __future__ import annotations

import _io
import builtins
import io
import os
import stat
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import serialization

from kit.world.connection import Connection
from kit.world.sites import call_site

_KINDS = {
    "open": "open",
    "os.rename": "rename",
    "os.remove": "remove",
    "os.rmdir": "remove",
    "os.mkdir": "mkdir",
    "os.truncate": "truncate",
    "os.link": "link",
    "os.symlink": "link",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_UNCOUNTED = ("/dev/", "/proc/", "/sys/")
Place = dict[str, Any]


class FilesystemWatch:
    """Counts this rank's filesystem events. places: {"aim", "n", "kind", "torn"} of the faults that may strike."""

    def __init__(self, connection: Connection, places: Sequence[Place]) -> None:
        self._connection = connection
        self._places = list(places)
        self._counts: dict[str | None, int] = {None: 0}
        self._unsynced: dict[str, tuple[int, int] | None] = {}  # path -> (size, mtime) at its last fsync
        self._is_striking = False

    def install(self) -> None:
        """Watch from now on, until the process ends."""
        sys.addaudithook(self._audit)
        _wrap(os, "write", lambda fd, *_: self._at_descriptor("write", fd))
        _wrap(os, "sendfile", lambda fd, *_: self._at_descriptor("write", fd))
        for name in ("fsync", "fdatasync"):
            _wrap(os, name, lambda fd: self._at_descriptor("fsync", fd), self._synced)
        opened = _opening(self)
        for module in (builtins, io, _io):
            vars(module)["open"] = opened
        vars(serialization)["_open_zipfile_writer_file"] = _SavedThroughPython

    def tell(self) -> None:
        """Say how many events there were."""
        self._connection.post({"op": "filesystem", "count": self._counts[None]})

    # -- events -------------------------------------------------------------------------------------------

    def _audit(self, name: str, arguments: tuple[Any, ...]) -> None:
        kind = _KINDS.get(name)
        if kind is None or self._is_striking:
            return
        target = arguments[0]
        if isinstance(target, int):
            if kind == "truncate":
                self._at_descriptor(kind, target)
            return
        if kind == "open" and (not arguments[2] & _WRITES or os.path.isdir(target)):
            return  # a directory "opened for writing" is tempfile's way, which opens the file itself next
        path = os.path.abspath(os.fsdecode(target))
        self._event(kind, path)
        if kind in ("open", "truncate"):
            self._unsynced.setdefault(path, None)
        elif kind == "rename":
            new = os.path.abspath(os.fsdecode(arguments[1]))
            for old in [old for old in self._unsynced if old == path or old.startswith(path + os.sep)]:
                self._unsynced[new + old[len(path) :]] = self._unsynced.pop(old)

    def _at_descriptor(self, kind: str, fd: Any) -> None:
        try:
            number = fd if isinstance(fd, int) else fd.fileno()
            mode = os.fstat(number).st_mode
        except (OSError, AttributeError, ValueError):
            return  # the call itself will say so
        if stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and kind == "fsync"):
            self._event(kind, self._path_of(number))

    def at_write(self, file: io.FileIO) -> None:
        """Before bytes go from Python to a file."""
        self._at_descriptor("write", file.fileno())

    def _path_of(self, fd: int) -> str:
        here = os.fstat(fd)
        for path in self._unsynced:
            if _is_same(path, here):
                return path
        try:
            return os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            return "?"

    def _event(self, kind: str, path: str) -> None:
        if path.startswith(_UNCOUNTED) or self._is_striking:
            return
        for key in (None, kind):
            self._counts[key] = self._counts.get(key, 0) + 1
        for place in self._places:
            if place["kind"] in (None, kind) and self._counts[place["kind"]] == place["n"]:
                self._strike(place, kind, path)

    def _strike(self, place: Place, kind: str, path: str) -> None:
        self._is_striking = True
        try:
            if place["torn"]:
                self._tear()
            site, _ = call_site()
            header = {"op": "strike", "aim": place["aim"], "count": self._counts[None], "kind": kind, "site": site}
            self._connection.request({**header, "name": os.path.basename(path)})  # a kill gets no answer
        finally:
            self._is_striking = False

    # -- what power loss leaves ---------------------------------------------------------------------------

    def _synced(self, fd: Any) -> None:
        here = os.fstat(fd if isinstance(fd, int) else fd.fileno())
        for path in list(self._unsynced):
            if _is_same(path, here):
                self._unsynced[path] = (here.st_size, here.st_mtime_ns)

    def _tear(self) -> None:
        """Cut every file that was written and not fsynced since to half of its length."""
        for path, synced in self._unsynced.items():
            try:
                now = os.stat(path)
            except OSError:
                continue
            if stat.S_ISREG(now.st_mode) and (now.st_size, now.st_mtime_ns) != synced:
                os.truncate(path, now.st_size // 2)


def _is_same(path: str, there: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), there)
    except OSError:
        return False


def _wrap(
    module: Any, name: str, before: Callable[..., None], after: Callable[..., None] = lambda *arguments: None
) -> None:
    plain = getattr(module, name, None)
    if plain is None:  # not on every platform
        return

    def wrapped(*arguments: Any, **named: Any) -> Any:
        before(*arguments)
        answer = plain(*arguments, **named)
        after(*arguments)
        return answer

    setattr(module, name, wrapped)


def _opening(watch: FilesystemWatch) -> Callable[..., Any]:
    """`open`, whose files for writing tell the watch of every write that reaches the system."""
    plain = io.open

    class WatchedFile(io.FileIO):
        def write(self, data: Any, /) -> int:
            watch.at_write(self)
            return super().write(data)

        def truncate(self, size: int | None = None, /) -> int:
            watch._at_descriptor("truncate", self.fileno())
            return super().truncate(size)

    def opened(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
        newline: str | None = None, closefd: bool = True, opener: Any = None,
    ) -> Any:  # fmt: skip
        is_written = isinstance(mode, str) and set(mode) & set("wax+")
        if not is_written:
            return plain(file, mode, buffering, encoding, errors, newline, closefd, opener)
        if ("b" in mode and (encoding or errors or newline)) or ("b" not in mode and not buffering):
            return plain(file, mode, buffering, encoding, errors, newline, closefd, opener)  # says what is wrong
        raw = WatchedFile(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if buffering == 0:
            return raw
        size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
        buffer = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw, size)
        if "b" in mode:
            return buffer
        text = io.TextIOWrapper(buffer, encoding, errors, newline, buffering == 1)
        text.mode = mode  # type: ignore[misc]
        return text

    return opened


class _SavedThroughPython(serialization._open_zipfile_writer_file):
    """torch.save to a path writes through a file of Python, as it does for names that are not ASCII."""

    def __init__(self, name: str) -> None:
        self.file_stream = open(name, mode="wb")  # noqa: SIM115  # __exit__ closes it
        self.name = name
        writer = torch._C.PyTorchFileWriter(
            self.file_stream, serialization.get_crc32_options(), serialization._get_storage_alignment()
        )
        serialization._opener.__init__(self, writer)
