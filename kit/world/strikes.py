"""Faults at work, from the deciding process's side: when each strikes, and what is told of it afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kit.world.diagnosis import Explanation, table
from kit.world.endings import Failure
from kit.world.failure import Finding
from kit.world.faults import Delay, Drop, Fault, FilesystemEvent, Kill, Operation, Step, Straggler
from kit.world.operations import COLLECTIVES, Issued
from kit.world.rank_state import RankState
from kit.world.trace import Event
from kit.world.wire import ProtocolError

if TYPE_CHECKING:
    from kit.world.run_loop import RunLoop
    from kit.world.switchboard import Switchboard

BEFORE_ALL = -1  # the clock of a kill: whatever else fails is taken for its consequence


@dataclass(slots=True)
class Aim:
    """One fault, how many places of its kind have gone by, and whether it has struck."""

    fault: Fault
    seen: int = 0
    struck: bool = False
    missed: str = ""  # why it could not strike at its place


class SlowLog(list[Event]):
    """The log of a straggler: computes cost `factor` times as much, whoever enters them."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._factor = factor

    def append(self, event: Event) -> None:
        if event.kind == "compute" and event.what != "delay":
            seconds, flops = event.seconds * self._factor, round(event.flops * self._factor)
            event = replace(event, seconds=seconds, flops=flops)
        super().append(event)


class Strikes:
    """The faults of one run. `is_planned`: a rank that was killed, and ranks that wait for it, are no failure."""

    def __init__(self, faults: Sequence[Fault] = (), *, is_planned: bool = False) -> None:
        self.aims = [Aim(fault) for fault in faults]
        self.is_planned = is_planned
        self.killed: list[int] = []
        self.stranded: list[int] = []
        self._dropped: list[tuple[Aim, Issued]] = []
        self._filesystem_events: dict[int, int] = {}
        self._loop: RunLoop | None = None

    def attach(self, loop: RunLoop) -> None:
        """Strike in this run, before its ranks start."""
        self._loop = loop
        loop.strikes = loop.board.strikes = self
        for aim in self.aims:
            if isinstance(aim.fault, Straggler):
                loop.board.ranks[aim.fault.rank].events = SlowLog(aim.fault.factor)
                aim.struck = True
        loop.board.attendants["strike"] = self._on_filesystem_event
        loop.board.attendants["filesystem"] = self._on_filesystem_count

    def job(self, rank: int) -> dict[str, Any]:
        """What the rank has to know: whether it goes on only when told to, and its places in the file system."""
        kills = any(isinstance(a.fault, Kill) and not isinstance(a.fault.at, FilesystemEvent) for a in self._of(rank))
        places = [
            {"aim": index, "n": fault.at.n, "kind": fault.at.kind, "torn": isinstance(fault, Kill) and fault.torn}
            for index, aim in enumerate(self.aims)
            if isinstance(fault := aim.fault, (Kill, Delay))
            and fault.rank == rank
            and isinstance(fault.at, FilesystemEvent)
        ]
        return {"paced": kills, "filesystem_places": places}

    # -- places -------------------------------------------------------------------------------------------

    def on_issue(self, state: RankState, op: Issued) -> bool:
        """An operation came, and is not in the record yet. False: it takes no part in anything."""
        takes_part = True
        for aim in self._of(state.rank):
            fault = aim.fault
            if isinstance(fault, Straggler):
                self._delay(state, aim, fault.operation_delay_s, op.site)
            elif isinstance(fault.at, Operation) and _is_like(op, fault.at) and self._is_reached(aim, fault.at.n):
                if isinstance(fault, Delay):
                    self._delay(state, aim, fault.seconds, op.site)
                elif isinstance(fault, Drop):
                    takes_part &= not self._drop(aim, op)
                elif not self.is_dead(state.rank):
                    self._kill(state, aim, f"at its operation {op.order + 1}, {op.title()}", op.site)
                    takes_part = False
        return takes_part

    def on_mark(self, state: RankState, mark: Event) -> None:
        """The rank is at a mark, which is in the record."""
        for aim in self._of(state.rank):
            fault = aim.fault
            if isinstance(fault, (Straggler, Drop)) or not isinstance(fault.at, Step):
                continue
            if fault.at.name in (None, mark.what) and self._is_reached(aim, fault.at.n):
                if isinstance(fault, Delay):
                    self._delay(state, aim, fault.seconds, mark.site)
                elif not self.is_dead(state.rank):
                    count = sum(event.kind == "mark" for event in state.events)
                    self._kill(state, aim, f"at its step {count}, the mark {mark.what!r}", mark.site)

    def _on_filesystem_event(self, state: RankState, header: dict[str, Any], payload: bytearray) -> None:
        index, count = header["aim"], header["count"]
        if type(index) is not int or not 0 <= index < len(self.aims) or type(count) is not int:
            raise ProtocolError("a fault that does not exist")
        aim = self.aims[index]
        fault = aim.fault
        if fault.rank != state.rank or not isinstance(fault, (Kill, Delay)) or aim.struck:
            raise ProtocolError("a fault that does not exist")
        aim.struck = True
        site = str(header["site"])[:200]
        if isinstance(fault, Delay):
            self._delay(state, aim, fault.seconds, site)
            assert self._loop is not None
            self._loop.reply(state.rank, {"id": header["id"]}, (), ())
        else:
            what = f"before its filesystem event {count}, {str(header['kind'])[:20]} of {str(header['name'])[:200]!r}"
            self._kill(state, aim, what, site)

    def _on_filesystem_count(self, state: RankState, header: dict[str, Any], payload: bytearray) -> None:
        self._filesystem_events[state.rank] = int(header["count"])

    def _of(self, rank: int) -> list[Aim]:
        return [aim for aim in self.aims if aim.fault.rank == rank]

    def _is_reached(self, aim: Aim, n: int) -> bool:
        aim.seen += 1
        return aim.seen == n

    # -- what they do -------------------------------------------------------------------------------------

    def is_dead(self, rank: int) -> bool:
        return rank in self.killed

    def _delay(self, state: RankState, aim: Aim, seconds: float, site: str) -> None:
        aim.struck = True
        if seconds:
            state.events.append(Event("compute", seconds=seconds, what="delay", label=repr(aim.fault), site=site))

    def _drop(self, aim: Aim, op: Issued) -> bool:
        if op.name == "recv":
            aim.missed = f"operation {op.order + 1} of rank {op.rank} is {op.title()}, which sends nothing"
            return False
        aim.struck = True
        self._dropped.append((aim, op))
        return True

    def _kill(self, state: RankState, aim: Aim, where: str, site: str) -> None:
        """The rank waits for our answer, which never comes: it does nothing more."""
        assert self._loop is not None
        aim.struck = True
        self.killed.append(state.rank)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._loop.pid(state.rank), signal.SIGKILL)
        state.waits.clear()
        state.store_waits.clear()
        state.killed = True
        self._loop.silence(state.rank)
        at = f" ({site})" if site else ""
        message = f"rank {state.rank} was killed by the fault {aim.fault!r} {where}{at}"
        if self.is_planned:
            text = f"was killed by the fault {aim.fault!r} {where}"
            self._loop.board.findings.append(Finding("killed", state.rank, text, site))
        else:
            self._loop.fail(Failure(state.rank, BEFORE_ALL, "crash", message, site=site))

    # -- what is told -------------------------------------------------------------------------------------

    def excuses(self, state: RankState, message: str) -> bool:
        """Whether a rank that raised this only saw that another one is dead, as planned."""
        if not (self.is_planned and self.killed and message and state.timed_out == message):
            return False
        state.excused = True
        self._strand(state.rank, f"ended by {message!r} after {_ranks(self.killed)} had been killed", "")
        return True

    def strands(self, board: Switchboard) -> bool:
        """Nothing can move: whether that is because every live rank waits, in the end, for one that was killed."""
        if not (self.is_planned and self.killed):
            return False
        lost, waiting = set(self.killed), {state.rank for state in board.ranks if state.live}
        while found := {rank for rank in waiting - lost if _waits_for(board, board.ranks[rank], lost)}:
            lost |= found
        if not waiting <= lost:
            return False
        for rank in sorted(waiting):
            title, site = _wait_of(board.ranks[rank])
            self._strand(rank, f"waited for ever in {title} after {_ranks(self.killed)} had been killed", site)
        return True

    def _strand(self, rank: int, message: str, site: str) -> None:
        assert self._loop is not None
        self.stranded.append(rank)
        self._loop.board.findings.append(Finding("stranded", rank, message, site))

    def explain(self, board: Switchboard, plain: Explanation) -> Explanation:
        """A standstill in which somebody waits for what was dropped is explained by the drop."""
        for aim, op in self._dropped:
            if plain.kind == "hang" and _is_awaited(board, op) and not _is_made_good(board, op):
                at = f" ({op.site})" if op.site else ""
                what = "message" if op.name == "send" else "part"
                message = f"the {what} of rank {op.rank}'s {op.title()}{at} was dropped by the fault {aim.fault!r}"
                return Explanation("hang", message, table(board), op.rank, op.site)
        return plain

    def closing_findings(self, board: Switchboard, plain: Sequence[Finding]) -> list[Finding]:
        """What was found, without what killed ranks left lying; and the faults that never struck, and why."""
        ended = {*self.killed, *self.stranded}
        lost = {
            Finding("incomplete", op.rank, f"{op.title()} never completed", op.site)
            for _, dropped in self._dropped
            for state in board.ranks
            for op in state.issued
            if not op.matched and (op is dropped or (op.group == dropped.group and _would_meet(op, dropped)))
        }
        left_lying = ("incomplete", "unwaited", "portability")
        kept = [f for f in plain if f not in lost and (f.rank not in ended or f.kind not in left_lying)]
        return kept + [
            Finding("fault", aim.fault.rank, f"the fault {aim.fault!r} never struck: {self._why(board, aim)}")
            for aim in self.aims
            if not aim.struck
        ]

    def _why(self, board: Switchboard, aim: Aim) -> str:
        fault = aim.fault
        state = board.ranks[fault.rank]
        if aim.missed or isinstance(fault, Straggler):
            return aim.missed
        if isinstance(fault.at, Operation):
            alike = "" if fault.at == Operation(fault.at.n) else f", {aim.seen} of them like that"
            seen = f"{_count(len(state.issued), 'operation')}{alike}"
        elif isinstance(fault.at, Step):
            alike = "" if fault.at.name is None else f", {aim.seen} of them of that name"
            seen = f"{_count(sum(event.kind == 'mark' for event in state.events), 'mark')}{alike}"
        elif fault.rank in self._filesystem_events:
            seen = _count(self._filesystem_events[fault.rank], "filesystem event")
        else:
            seen = "fewer filesystem events"
        return f"rank {fault.rank} had {seen}" + (" before it was killed" if self.is_dead(fault.rank) else "")


def _is_like(op: Issued, place: Operation) -> bool:
    return place.name in (None, op.name) and place.group in (None, op.members)


def _is_awaited(board: Switchboard, dropped: Issued) -> bool:
    """Whether a rank waits for an operation that could only have met the dropped one."""
    for state in board.ranks:
        for wait in state.waits.values():
            for seq in wait.seqs:
                op = state.open[seq]
                if op is dropped or (op.group == dropped.group and _would_meet(op, dropped)):
                    return True
    return False


def _is_made_good(board: Switchboard, dropped: Issued) -> bool:
    """Whether the sender noticed, and sent again."""
    later = board.ranks[dropped.rank].issued[dropped.order + 1 :]
    return dropped.given_up and any(op.name == "send" and op.matched and _is_like_send(op, dropped) for op in later)


def _is_like_send(op: Issued, other: Issued) -> bool:
    return (op.name, op.group, op.peer, op.tag) == (other.name, other.group, other.peer, other.tag)


def _would_meet(op: Issued, dropped: Issued) -> bool:
    if dropped.name in COLLECTIVES:
        return op.name in COLLECTIVES and op.index == dropped.index
    return (
        op.name == "recv"
        and op.tag == dropped.tag
        and op.group_rank == dropped.peer
        and op.peer in (-1, dropped.group_rank)
    )


def _waits_for(board: Switchboard, state: RankState, lost: set[int]) -> bool:
    """Whether a rank that waits does so for one of the lost ranks."""
    if state.store_waits:
        return True  # nobody is left to set the key
    for wait in state.waits.values():
        for seq in wait.seqs:
            op = state.open[seq]
            if op.name in COLLECTIVES:
                slot = board.slots.get((op.group, op.index))
                if slot and any(m in lost and i not in slot.calls for i, m in enumerate(slot.members)):
                    return True
            elif op.global_peer in lost or (op.global_peer is None and lost & set(op.members)):
                return True
    return False


def _wait_of(state: RankState) -> tuple[str, str]:
    """(what the rank waits in, where)."""
    for wait in state.waits.values():
        op = state.open[wait.seqs[0]]
        return op.title(), wait.site or op.site
    for request in state.store_waits.values():
        return request.title(), request.site
    return "nothing", ""


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, sorted(ranks)))}"


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'s' if number != 1 else ''}"
