"""Shared memory for large tensors: memfds that the deciding process makes, sizes and seals.

A rank that could truncate a shared file would kill its reader with SIGBUS, so every segment is sealed against
shrinking, growing and further sealing before anyone else sees it. Segments have no name anywhere.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from collections import deque

from kit.world.wire import ProtocolError

INLINE_BYTES = 1 << 16  # payloads up to this many bytes travel in the socket
_ADD_SEALS = 1033
_SEAL, _SHRINK, _GROW, _FUTURE_WRITE = 1, 2, 4, 16
_GRAIN = 1 << 16


def supported() -> bool:
    return hasattr(os, "memfd_create")


def rounded(nbytes: int) -> int:
    return max(_GRAIN, -(-nbytes // _GRAIN) * _GRAIN)


class Segment:
    """One mapped memfd in the deciding process."""

    __slots__ = ("fd", "index", "known_to", "map", "nbytes", "readers")

    def __init__(self, index: int, nbytes: int, *, read_only_for_others: bool) -> None:
        self.index = index
        self.nbytes = nbytes
        self.known_to: set[int] = set()
        self.readers = 0
        self.fd = os.memfd_create("shardkit", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, nbytes)
        # Mapped before the seal, so that this process keeps the only writable mapping of a read-only segment.
        self.map = mmap.mmap(self.fd, nbytes, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
        seals = _SEAL | _SHRINK | _GROW | (_FUTURE_WRITE if read_only_for_others else 0)
        try:
            fcntl.fcntl(self.fd, _ADD_SEALS, seals)
        except OSError:  # kernels before 5.1 know no FUTURE_WRITE; ranks still map it read-only themselves
            fcntl.fcntl(self.fd, _ADD_SEALS, _SEAL | _SHRINK | _GROW)

    def close(self) -> None:
        os.close(self.fd)
        with contextlib.suppress(BufferError):  # a view of it may live; then the mapping goes with the view
            self.map.close()


class SegmentTable:
    """All segments of a run: those that a rank fills, and those that results are delivered in."""

    def __init__(self, limit_bytes_per_rank: int) -> None:
        self._limit_bytes_per_rank = limit_bytes_per_rank
        self._given: dict[int, dict[int, Segment]] = {}
        self._given_bytes: dict[int, int] = {}
        self._results: list[Segment] = []
        self._next = 0

    def give(self, rank: int, nbytes: int) -> Segment:
        """A segment for the rank to fill."""
        size = rounded(nbytes)
        used = self._given_bytes.get(rank, 0) + size
        if nbytes < 0 or used > self._limit_bytes_per_rank:
            raise ProtocolError(f"a rank asked for {used} bytes of shared memory, more than it may have")
        self._given_bytes[rank] = used
        segment = self._make(size, read_only_for_others=False)
        self._given.setdefault(rank, {})[segment.index] = segment
        return segment

    def view(self, rank: int, index: object, nbytes: int) -> memoryview:
        """The first nbytes of a segment that was given to this rank."""
        segment = self._given.get(rank, {}).get(index) if isinstance(index, int) else None
        if segment is None or nbytes > segment.nbytes:
            raise ProtocolError("a tensor in shared memory that the rank was not given")
        return memoryview(segment.map)[:nbytes]

    def for_result(self, nbytes: int) -> Segment:
        """A segment that nobody reads any more, or a new one; the caller sets `readers`."""
        size = rounded(nbytes)
        free = [s for s in self._results if not s.readers and size <= s.nbytes <= 2 * size]
        if free:
            return min(free, key=lambda s: s.nbytes)
        segment = self._make(size, read_only_for_others=True)
        self._results.append(segment)
        return segment

    def inodes(self) -> set[int]:
        """What the kernel calls the files of this run's segments, all of one file system."""
        given = (segment for segments in self._given.values() for segment in segments.values())
        return {os.fstat(segment.fd).st_ino for segment in (*given, *self._results)}

    def _make(self, nbytes: int, *, read_only_for_others: bool) -> Segment:
        self._next += 1
        return Segment(self._next, nbytes, read_only_for_others=read_only_for_others)

    def close(self) -> None:
        for segments in self._given.values():
            for segment in segments.values():
                segment.close()
        for segment in self._results:
            segment.close()
        self._given.clear()
        self._results.clear()


class RankSegments:
    """A rank's own view: segments it fills (reused once an operation is done) and results it reads."""

    def __init__(self) -> None:
        self._mine: dict[int, mmap.mmap] = {}
        self._free: list[int] = []
        self._results: dict[int, mmap.mmap] = {}
        self._read: deque[int] = deque()

    def take(self, nbytes: int) -> tuple[int, mmap.mmap] | None:
        """A free segment of about that size."""
        size = rounded(nbytes)
        fits = [i for i in self._free if size <= len(self._mine[i]) <= 2 * size]
        if not fits:
            return None
        index = min(fits, key=lambda i: len(self._mine[i]))
        self._free.remove(index)
        return index, self._mine[index]

    def adopt(self, index: int, fd: int, nbytes: int) -> mmap.mmap:
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        self._mine[index] = mmap.mmap(fd, nbytes, flags=flags)
        os.close(fd)
        return self._mine[index]

    def give_back(self, index: int) -> None:
        self._free.append(index)

    def result(self, index: int, fd: int | None, nbytes: int) -> mmap.mmap:
        """The read-only mapping of a result segment; fd comes with the first delivery in it."""
        if fd is not None:
            self._results[index] = mmap.mmap(fd, nbytes, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
            os.close(fd)
        return self._results[index]

    def have_read(self, index: int) -> None:
        """The result in this segment was copied out; the next message says so, and it may be written again."""
        self._read.append(index)

    def take_read(self) -> list[int]:
        return [self._read.popleft() for _ in range(len(self._read))]
