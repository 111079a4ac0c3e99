"""What ranks keep in memory, read from outside by the process that decides (Linux).

A rank that calls `kit.world.inside.hold(label)` stands still while its pages are counted in /proc, so nothing that a
program reports about itself is believed. Counted as its own is every anonymous page, and shared memory that the kit
did not make. The kit's own segments, and files, are no part of it.

Anonymous pages and not Private_Dirty: what a rank writes to a page that it inherited, a reference count for instance,
makes a private page of it and is no state; and a child of the rank would turn its private pages into shared ones.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kit.world.failure import NotMeasured
from kit.world.rank_state import RankState
from kit.world.wire import ProtocolError

if TYPE_CHECKING:
    from kit.world.run_loop import RunLoop

MAX_HOLDS = 1000  # of one rank
_ROLLUP = re.compile(rb"^(Rss|Anonymous|Swap): +(\d+) kB$", re.MULTILINE)
_MAPPING = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ [r-][w-][x-][sp] [0-9a-f]+ [0-9a-f]+:[0-9a-f]+ (\d+) *(.*)$")
# What the kernel calls memory that is shared and lies in no file of a disk.
_SHARED = (b"/memfd:", b"/dev/shm/", b"/dev/zero", b"/SYSV", b"/[aio]")


@dataclass(frozen=True, slots=True)
class Reading:
    """One rank at one hold. peak_bytes: the most that it had since its previous hold, or since its start.

    beside_bytes: what was resident and is not counted as its own: files, and the kit's segments.
    """

    rank: int
    label: str
    persistent_bytes: int
    peak_bytes: int
    beside_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Metering:
    """What a rank's own meter said (`World(meter=True)`), so advisory. Bytes of storages, each counted once.

    live_bytes: storages in memory now; by_kind splits them: parameter, gradient, optimizer_state, other.
    peak_bytes: the most since the previous reading. file_bytes: storages that are mapped files, counted nowhere else.
    """

    live_bytes: int
    peak_bytes: int
    file_bytes: int
    by_kind: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Memory:
    """All readings of a run. reason: why nothing could be read from outside, or empty.

    inside[rank][label]: the readings of the meter inside the ranks, where the world has one.
    Asking for a number raises NotMeasured where there is a reason, and KeyError for a hold that never was.
    """

    readings: tuple[Reading, ...] = ()
    inside: Mapping[int, Mapping[str, Metering]] = field(default_factory=dict)
    reason: str = ""

    def reading(self, rank: int, label: str) -> Reading:
        if self.reason:
            raise NotMeasured(self.reason)
        for one in self.readings:
            if one.rank == rank and one.label == label:
                return one
        raise KeyError(f"rank {rank} was not held at {label!r}")

    def persistent_bytes(self, rank: int, label: str) -> int:
        """What the rank had at this hold, all of Python and torch included: compare it with a baseline."""
        return self.reading(rank, label).persistent_bytes

    def peak_bytes(self, rank: int, label: str) -> int:
        """The most that the rank had between its previous hold and this one."""
        return self.reading(rank, label).peak_bytes

    def grown_bytes(self, rank: int, label: str, *, since: str) -> int:
        """By how much the rank has grown from one hold to another; negative where it shrank."""
        return self.persistent_bytes(rank, label) - self.persistent_bytes(rank, since)

    def peak_growth_bytes(self, rank: int, label: str, *, since: str) -> int:
        """By how much the peak before this hold exceeds what the rank had at the hold `since`."""
        return self.peak_bytes(rank, label) - self.persistent_bytes(rank, since)


class Ledger:
    """Collects the readings of one run."""

    def __init__(self) -> None:
        self._readings: list[Reading] = []
        self._inside: dict[int, dict[str, Metering]] = {}
        self._reason = ""

    def add(self, reading: Reading) -> None:
        self._readings.append(reading)

    def beside_bytes(self, rank: int) -> int:
        """What was resident beside the rank's own at its latest hold."""
        return next((one.beside_bytes for one in reversed(self._readings) if one.rank == rank), 0)

    def give_up(self, reason: str) -> None:
        self._reason = self._reason or reason

    def labels(self, rank: int) -> Collection[str]:
        return {one.label for one in self._readings if one.rank == rank}

    def note(self, rank: int, label: str, metering: Metering) -> None:
        told = self._inside.setdefault(rank, {})
        if len(told) < MAX_HOLDS:
            told[label] = metering

    def memory(self) -> Memory:
        return Memory(tuple(self._readings), self._inside, self._reason)


def attach(loop: RunLoop) -> Ledger:
    """Let the ranks of this loop be held, and take in what their meters say."""
    ledger = Ledger()

    def hold(state: RankState, header: dict[str, Any], payload: bytearray) -> None:
        label = str(header["label"])[:200]
        held = ledger.labels(state.rank)
        if len(held) >= MAX_HOLDS:
            raise ProtocolError(f"more than {MAX_HOLDS} holds")
        answer: dict[str, Any] = {"id": header["id"]}
        if label in held:
            answer |= {"type": "ValueError", "error": f"hold({label!r}): this rank was held there before; name it anew"}
        else:
            try:
                beside = ledger.beside_bytes(state.rank)
                ledger.add(read(state.rank, label, loop.pid(state.rank), loop.segments.inodes(), beside))
            except NotMeasured as problem:
                ledger.give_up(problem.message)
        loop.reply(state.rank, answer, (), ())

    def meter(state: RankState, header: dict[str, Any], payload: bytearray) -> None:
        kinds = {str(kind)[:40]: int(nbytes) for kind, nbytes in list(header["by_kind"].items())[:20]}
        live, peak, file = (int(header[name]) for name in ("live", "peak", "file"))
        ledger.note(state.rank, str(header["label"])[:200], Metering(live, peak, file, kinds))

    loop.board.attendants["hold"] = hold
    loop.board.attendants["meter"] = meter
    return ledger


# -- /proc --------------------------------------------------------------------------------------------------


def read(rank: int, label: str, pid: int, kit_inodes: Collection[int] = (), beside_bytes: int = 0) -> Reading:
    """Count the pages of a process that stands still, and begin its next peak. Raises NotMeasured.

    beside_bytes: that of this rank's previous reading.
    """
    if sys.platform != "linux":
        raise NotMeasured(f"memory is read from /proc, which {sys.platform} does not have")
    try:
        own, resident = _resident(f"/proc/{pid}", kit_inodes)
        with open(f"/proc/{pid}/status", "rb") as file:
            found = re.search(rb"^VmHWM:\s+(\d+) kB$", file.read(), re.MULTILINE)
        with open(f"/proc/{pid}/clear_refs", "wb") as file:
            file.write(b"5")
    except OSError as error:
        raise NotMeasured(f"memory cannot be read here: {error.filename}: {error.strerror}") from None
    if found is None:
        raise NotMeasured("memory cannot be read here: /proc says no high-water mark")
    beside = resident - own
    # The mark is of all that is resident. Files and segments stay mapped, so there is more of them now than there was
    # at the peak; but a kernel that runs short of memory takes pages of files away, and then there was more of them
    # before. So the peak comes out a little low, and not too high.
    peak = int(found[1]) * 1024 - max(beside, beside_bytes)
    return Reading(rank, label, own, max(own, peak), beside)


def _resident(folder: str, kit_inodes: Collection[int]) -> tuple[int, int]:
    """(the process's own bytes, all that is resident)."""
    with open(f"{folder}/smaps_rollup", "rb") as file:
        total = {name: int(number) * 1024 for name, number in _ROLLUP.findall(file.read())}
    if b"Rss" not in total or b"Anonymous" not in total:
        raise NotMeasured("memory cannot be read here: /proc says no anonymous pages")
    own = total[b"Anonymous"] + total.get(b"Swap", 0)
    with open(f"{folder}/maps", "rb") as file:
        is_shared = any(_is_shared(line, kit_inodes) for line in file)
    if is_shared:  # rare, and slow to count
        with open(f"{folder}/smaps", "rb") as file:
            own += shared_bytes(file, kit_inodes)
    return own, total[b"Rss"]


def shared_bytes(smaps: Iterable[bytes], kit_inodes: Collection[int]) -> int:
    """Resident bytes of shared memory in the lines of a smaps file, but for files with these inodes."""
    kib, is_counted = 0, False
    for line in smaps:
        if line[:1] in b"0123456789abcdef" and _MAPPING.match(line):
            is_counted = _is_shared(line, kit_inodes)
        elif is_counted and line.startswith((b"Rss:", b"Swap:")):
            kib += int(line.split()[1])
        elif is_counted and line.startswith(b"Anonymous:"):
            kib -= int(line.split()[1])  # a private copy, counted with all anonymous pages
    return kib * 1024


def _is_shared(line: bytes, kit_inodes: Collection[int]) -> bool:
    """Whether this mapping is of memory that is shared and not the kit's."""
    mapping = _MAPPING.match(line)
    return mapping is not None and mapping[2].startswith(_SHARED) and int(mapping[1]) not in kit_inodes
