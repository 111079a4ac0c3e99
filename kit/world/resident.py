"""Which resident pages of a process count as its own: read from /proc (Linux)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kit.world.failure import NotMeasured

_ROLLUP = re.compile(rb"^(Rss|Anonymous|Swap): +(\d+) kB$", re.MULTILINE)
_MAPPING = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ [r-][w-][x-][sp] [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+ (\d+)) *(.*)$")
# What the kernel calls memory that is shared and lies in no file of a disk.
_SHARED = (b"/memfd:", b"/dev/shm/", b"/dev/zero", b"/SYSV", b"/[aio]")


@dataclass(frozen=True, slots=True)
class Birth:
    """What ranks that are forked from one process begin with. files: device and inode of those that it has mapped."""

    own_bytes: int
    files: frozenset[bytes]


def birth_of_forks() -> Birth | None:
    """What a process that is forked from this one begins with; None where that cannot be read."""
    try:
        own, _ = resident("/proc/self")
        with open("/proc/self/maps", "rb") as file:
            return Birth(own, frozenset(lies.file for lies in filter(None, map(_lies_in, file))))
    except (OSError, NotMeasured):
        return None


def resident(folder: str, kit_inodes: Collection[int] = (), birth: Birth | None = None) -> tuple[int, int]:
    """(the process's own bytes, resident bytes that it was forked with or that the kit gave it)."""
    with open(f"{folder}/smaps_rollup", "rb") as file:
        total = {name: int(number) * 1024 for name, number in _ROLLUP.findall(file.read())}
    if b"Rss" not in total or b"Anonymous" not in total:
        raise NotMeasured("memory cannot be read here: /proc says no anonymous pages")
    own = total[b"Anonymous"] + total.get(b"Swap", 0)
    with open(f"{folder}/maps", "rb") as file:
        found = set(filter(None, map(_lies_in, file)))

    def is_own(lies: _Lies) -> bool:
        return lies.is_shared and lies.inode not in kit_inodes

    def is_later(lies: _Lies) -> bool:
        return not lies.is_shared and birth is not None and lies.file not in birth.files

    later = 0
    if any(is_own(lies) or is_later(lies) for lies in found):  # rare, and slow to count
        with open(f"{folder}/smaps", "rb") as file:
            lines = file.readlines()
        own += resident_bytes(lines, is_own, with_swap=True)
        later = resident_bytes(lines, is_later)
    return own, total[b"Rss"] - own - later


def resident_bytes(smaps: Iterable[bytes], is_counted: Callable[[_Lies], bool], *, with_swap: bool = False) -> int:
    """Resident bytes, but for private copies, of those mappings in the lines of a smaps file that are counted."""
    kib, counts = 0, False
    for line in smaps:
        if line[:1] in b"0123456789abcdef":  # a mapping's own line; what is said of it begins with a capital
            lies = _lies_in(line)
            counts = lies is not None and is_counted(lies)
        elif counts and (line.startswith(b"Rss:") or (with_swap and line.startswith(b"Swap:"))):
            kib += int(line.split()[1])
        elif counts and line.startswith(b"Anonymous:"):
            kib -= int(line.split()[1])  # a private copy, counted with all anonymous pages
    return kib * 1024


class _Lies(NamedTuple):
    """What a mapping is of. file: device and inode; shared: memory that is shared and in no file of a disk."""

    file: bytes
    inode: int
    is_shared: bool


def _lies_in(line: bytes) -> _Lies | None:
    """What the mapping in this line is of; None where it is private memory."""
    mapping = _MAPPING.match(line)
    if mapping is None:
        return None
    is_shared = mapping[3].startswith(_SHARED)
    return _Lies(mapping[1], int(mapping[2]), is_shared) if is_shared or mapping[2] != b"0" else None
