"""Claims about what a rank keeps in memory, read from outside at `kit.world.inside.hold`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kit.grading.diagnosis import fail
from kit.grading.scenario import Run

_MIB = 1 << 20
# What may come with a file's imports, its first steps and their threads, before it is given anything: less than 1 MiB
# was seen, and 3 where matrix products are large.
BASELINE_ROOM_BYTES = 3 * _MIB
_NEARLY = 0.1  # a quantity that explains a reading is met to a tenth of it


def _nothing(rank: int) -> int:
    return 0


def claim_baseline(
    run: Run,
    label: str,
    *,
    given_bytes: Callable[[int], int] = _nothing,
    room_bytes: int = BASELINE_ROOM_BYTES,
) -> None:
    """By the hold `label` no rank has grown by more than given_bytes(rank) + room_bytes since it was forked.

    So that nothing is kept in reserve before a baseline, to be freed or used after it, where it would hide as much.
    given_bytes: what the program itself has made by then. Raises CheckFailed, and NotMeasured like claim_persistent.
    """
    for rank in range(run.world_size):
        try:
            grown, given = run.memory.grown_since_birth_bytes(rank, label), given_bytes(rank)
        except KeyError as missing:
            fail(f"{missing.args[0]}: the program did not come that way", rank=rank, world_size=run.world_size)
        if grown > given + room_bytes:
            fail(
                f"had {mib(grown)} of its own at the hold {label!r}, from which its memory is counted, where "
                f"{mib(given)} + {mib(room_bytes)} at most are due to it: what is kept in reserve would hide what is "
                "kept later",
                rank=rank,
                world_size=run.world_size,
            )


def claim_persistent(
    run: Run,
    label: str,
    *,
    since: str,
    expected_bytes: Callable[[int], int],
    room_bytes: int,
    given_bytes: Callable[[int], int] = _nothing,
    whole_bytes: int | None = None,
    of: str = "state",
    is_least_too: bool = False,
) -> None:
    """From the hold `since` to the hold `label` no rank has grown by more than expected_bytes(rank) + room_bytes.

    room_bytes: what else may stay; the question has to promise it, and readings are exact to 1 MiB.
    given_bytes: what the program itself has made before `since`; see claim_baseline, which is claimed as well.
    whole_bytes: what an unsharded program keeps, and of: what it is; both serve the diagnosis.
    is_least_too: to have grown by less than expected_bytes(rank) - room_bytes is wrong as well.
    Raises CheckFailed, and NotMeasured where this machine cannot read memory: such a check has not run.
    """
    if room_bytes < 2 * _MIB:
        raise ValueError(f"room_bytes={room_bytes}: readings are exact to 1 MiB, so leave 2 MiB at least")
    claim_baseline(run, since, given_bytes=given_bytes)
    grown, expected = [], []
    for rank in range(run.world_size):
        try:
            grown.append(run.memory.grown_bytes(rank, label, since=since))
        except KeyError as missing:
            fail(f"{missing.args[0]}: the program did not come that way", rank=rank, world_size=run.world_size)
        expected.append(expected_bytes(rank))
    for rank, (got, right) in enumerate(zip(grown, expected, strict=True)):
        if got > right + room_bytes or (is_least_too and got < right - room_bytes):
            why = explanation(grown, expected, rank, whole_bytes, of)
            sign = "+" if got > right else "-"
            fail(
                f"keeps {mib(got)} of {of}, expected {mib(right)} {sign} {mib(room_bytes)} at most"
                f"{': ' if why else ''}{why}",
                rank=rank,
                world_size=run.world_size,
            )


def explanation(grown: Sequence[int], expected: Sequence[int], rank: int, whole: int | None, of: str = "state") -> str:
    """The one mistake that makes what is expected into what was found, in words; empty where none does.

    grown, expected: of every rank, since a mistake of the program shows on all of them; rank: the one to speak of.
    """
    if whole is not None and whole > expected[rank]:
        if all(_is_near(got, whole) for got in grown):
            return f"this is the whole {of}, nothing is sharded"
        if _is_near(grown[rank], whole):
            return f"this is the whole {of}, on one rank"
    for times, word in ((2, "twice"), (3, "three times")):
        if all(_is_near(got, times * right) for got, right in zip(grown, expected, strict=True)):
            return f"{word} the expected: {of}, kept {word}"
    return ""


def _is_near(one: int, other: int) -> bool:
    return abs(one - other) <= _NEARLY * other


def mib(nbytes: int) -> str:
    return f"{nbytes / _MIB:.1f} MiB"
