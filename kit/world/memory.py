"""What ranks keep in memory, read from outside by the process that decides (Linux).

A rank that calls `kit.world.inside.hold(label)` stands still while its pages are counted in /proc, so nothing that a
program reports about itself is believed. Counted as its own is every anonymous page, and shared memory that the kit
did not make. The kit's own segments, and files, are no part of it; but a file that a rank mapped itself is part of its
peaks, since nobody saw whether it was there at the peak.

What a rank had before it ran a line of anyone's is known too, from the process that it was forked from: whoever keeps
something in reserve before a baseline, and frees it or uses it afterwards, seems to keep less than it does.

Anonymous pages and not Private_Dirty: what a rank writes to a page that it inherited, a reference count for instance,
makes a private page of it and is no state; and a child of the rank would turn its private pages into shared ones.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kit.world.failure import NotMeasured
from kit.world.rank_state import RankState
from kit.world.resident import Birth, resident
from kit.world.wire import ProtocolError

if TYPE_CHECKING:
    from kit.world.run_loop import RunLoop

MAX_HOLDS = 1000  # of one rank


@dataclass(frozen=True, slots=True)
class Reading:
    """One rank at one hold. peak_bytes: the most that it had since its previous hold, or since its start.

    born_bytes: what it had when it was forked; None where it was not, but began as a fresh Python.
    beside_bytes: what was resident and is in no peak: the files that it was forked with, and the kit's segments.
    """

    rank: int
    label: str
    persistent_bytes: int
    peak_bytes: int
    born_bytes: int | None = None
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

    def grown_since_birth_bytes(self, rank: int, label: str) -> int:
        """By how much the rank has grown since it was forked. Raises NotMeasured where it was not forked."""
        reading = self.reading(rank, label)
        if reading.born_bytes is None:
            raise NotMeasured("what a rank began with is not known where ranks are not forked")
        return reading.persistent_bytes - reading.born_bytes

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
                pid, before_bytes = loop.pid(state.rank), ledger.beside_bytes(state.rank)
                ledger.add(read(state.rank, label, pid, loop.segments.inodes(), loop.zygote.birth, before_bytes))
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


def read(
    rank: int,
    label: str,
    pid: int,
    kit_inodes: Collection[int] = (),
    birth: Birth | None = None,
    beside_bytes: int = 0,
) -> Reading:
    """Count the pages of a process that stands still, and begin its next peak. Raises NotMeasured.

    beside_bytes: that of this rank's previous reading.
    """
    if sys.platform != "linux":
        raise NotMeasured(f"memory is read from /proc, which {sys.platform} does not have")
    try:
        own, beside = resident(f"/proc/{pid}", kit_inodes, birth)
        with open(f"/proc/{pid}/status", "rb") as file:
            found = re.search(rb"^VmHWM:\s+(\d+) kB$", file.read(), re.MULTILINE)
        with open(f"/proc/{pid}/clear_refs", "wb") as file:
            file.write(b"5")
    except OSError as error:
        raise NotMeasured(f"memory cannot be read here: {error.filename}: {error.strerror}") from None
    if found is None:
        raise NotMeasured("memory cannot be read here: /proc says no high-water mark")
    # The mark is of all that is resident. Libraries and segments stay mapped, so there is more of them now than there
    # was at the peak; but a kernel that runs short of memory takes pages of files away, and then there was more of them
    # before. So the peak comes out a little low, and not too high.
    peak = int(found[1]) * 1024 - max(beside, beside_bytes)
    return Reading(rank, label, own, max(own, peak), birth.own_bytes if birth is not None else None, beside)
