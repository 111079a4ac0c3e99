"""One run, from the deciding process's side: sockets, pipes, the clock on the wall, and the verdict."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NoReturn

from kit.errors import KitError
from kit.world.capture import Capture
from kit.world.diagnosis import Explanation, explain_races, explain_standstill, leftover_misfit, table
from kit.world.endings import Failure, alike, how_it_ended, innermost, is_echo, traceback_of
from kit.world.failure import KINDS, Finding, WorldError
from kit.world.limits import raise_descriptor_limit
from kit.world.record import closing_findings, trace_of
from kit.world.segments import SegmentTable
from kit.world.steps import Steps, Wait
from kit.world.strikes import Strikes
from kit.world.switchboard import Switchboard
from kit.world.trace import Trace
from kit.world.tree import TreeError, decode, encode, read_tensors
from kit.world.wire import Buffer, DeciderEnd, ProtocolError, close_quietly
from kit.world.zygote import Zygote, ZygoteLost

GRACE_S = 1.0  # how long other ranks may go on after one failed, so that the first cause can be told
LOOK_S = 0.5  # how long nothing may happen before the process that starts the ranks is looked at
STACKS_S = 2.0  # how long ranks have, at the deadline, to write their stacks


class RunLoop:
    """Start ranks with `start`, then take its `steps`. A context manager: leaving it ends all processes and files."""

    def __init__(
        self,
        size: int,
        *,
        transport: str,
        deadline: float,
        deadline_s: float,
        memory_limit_bytes: int,
        output_limit_bytes: int,
        zygote: Zygote,
        order_seed: int | None = None,
    ) -> None:
        self._size = size
        self._transport = transport
        self._deadline = deadline
        self._deadline_s = deadline_s
        self._memory_limit_bytes = memory_limit_bytes
        self._output_limit_bytes = output_limit_bytes
        self.zygote = zygote
        self._job = zygote.new_job(size)
        self.segments = SegmentTable(memory_limit_bytes)
        self.board = Switchboard(size, self.segments, self.reply, order_seed=order_seed)
        self.board.store.decide_at_quiescence = transport == "switchboard"
        self._selector = selectors.DefaultSelector()
        self._ends: dict[int, DeciderEnd] = {}
        self._out: list[Capture] = []
        self._err: list[Capture] = []
        self._stacks: list[Capture] = []
        self._values: dict[int, Any] = {}
        self._failures: list[Failure] = []
        self.strikes = Strikes()
        self._failed_at = 0.0

    # -- starting and ending ------------------------------------------------------------------------------

    def __enter__(self) -> RunLoop:
        raise_descriptor_limit(8 * self._size + 256)
        self._selector.register(self.zygote.fileno(), selectors.EVENT_READ, ("zygote", -1))
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        is_whole = self.zygote.kill(self._job)
        for capture in (*self._out, *self._err, *self._stacks):
            capture.read()
            capture.close()
        for end in self._ends.values():
            end.close()
        self.segments.close()
        self._selector.close()
        if kind is None and not is_whole:  # whoever ended it may have come to an end in peace
            self._raise_lost()

    def start(self, rank: int, job: dict[str, Any], inputs: Sequence[Any] | None) -> None:
        """Fork one rank and send it its job; `inputs` holds its one input, or is None."""
        ours, theirs = socket.socketpair()
        pipes = [os.pipe() for _ in range(3)]
        try:
            self.zygote.spawn(self._job, rank, [theirs.fileno(), *(write for _, write in pipes)])
        except ZygoteLost:
            ours.close()
            close_quietly([read for read, _ in pipes])
            self._raise_lost()
        finally:
            theirs.close()
            close_quietly([write for _, write in pipes])
        for name, captures, (read, _) in zip(
            ("out", "err", "stacks"), (self._out, self._err, self._stacks), pipes, strict=True
        ):
            captures.append(Capture(read))
            self._selector.register(read, selectors.EVENT_READ, (name, rank))
        self._ends[rank] = DeciderEnd(ours, 2 * self._memory_limit_bytes)
        self._selector.register(ours, selectors.EVENT_READ, ("rank", rank))
        blobs: list[Buffer] = []
        if inputs is not None:
            try:
                skeleton, tensors = encode(inputs[0])
            except TreeError as error:
                raise KitError(f"the input of rank {rank} cannot be sent: {error}") from None
            job = {**job, "inputs": skeleton, "tensors": [descriptor for descriptor, _ in tensors]}
            blobs = [blob for _, blob in tensors]
        self._ends[rank].send(job, blobs)
        self._watch_writes(rank)

    # -- the loop -----------------------------------------------------------------------------------------

    def steps(self) -> Steps[tuple[Any, ...]]:
        """What the ranks returned, in order; raises WorldError."""
        while any(state.live for state in self.board.ranks):
            now = time.monotonic()
            if now >= self._deadline:
                self._raise_deadline()
            limit = self._deadline
            if self._failures:
                limit = min(limit, self._failed_at + GRACE_S)
                if now >= limit:
                    break
            unattended_s = yield Wait(self._selector, min(limit - now, LOOK_S))
            self._deadline += unattended_s
            self._failed_at += unattended_s
            try:
                self.zygote.require_running(self._job)
                for key, mask in self._selector.select(0):
                    self._serve(key.data[0], key.data[1], mask)
            except ZygoteLost:
                self._raise_lost()
            for rank in self.zygote.exited(self._job):  # also where it was another run that the zygote told
                self._rank_gone(rank)
            if self._stopped():
                break
        if self._failures:
            self._raise_failure()
        race = explain_races(self.board)
        if race is not None:
            self._raise(race)
        misfit = leftover_misfit(self.board)
        if misfit is not None:
            self._raise(misfit)
        return tuple(self._values.get(rank) for rank in range(self._size))  # a killed rank has none

    def _stopped(self) -> bool:
        """At quiescence let one thing happen, or end: True when a failed run has come to rest."""
        while self.board.quiescence.reached and any(state.live for state in self.board.ranks):
            if self._failures:
                return True
            if not self.board.quiescence.resolve():
                if self.strikes.strands(self.board):
                    return True
                self._raise(self.strikes.explain(self.board, explain_standstill(self.board)))
        return False

    def _serve(self, what: str, rank: int, mask: int) -> None:
        if what == "rank":
            if mask & selectors.EVENT_WRITE:
                self._ends[rank].flush()
                self._watch_writes(rank)
            if mask & selectors.EVENT_READ:
                self._read_rank(rank)
        elif what == "zygote":
            self.zygote.read()
        else:
            capture = {"out": self._out, "err": self._err, "stacks": self._stacks}[what][rank]
            if not capture.read():
                self._selector.unregister(capture.fd)
            self._check_output(rank)

    def _watch_writes(self, rank: int) -> None:
        end = self._ends[rank]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if end.wants_write else 0)
        with contextlib.suppress(KeyError):
            if self._selector.get_key(end.socket).events != events:
                self._selector.modify(end.socket, events, ("rank", rank))

    def reply(self, rank: int, header: dict[str, Any], blobs: Sequence[Buffer], fds: Sequence[int]) -> None:
        self._ends[rank].send(header, blobs, fds)
        if self._ends[rank].wants_write:
            self._watch_writes(rank)

    def _read_rank(self, rank: int) -> None:
        try:
            frames, closed = self._ends[rank].receive()
            for header, payload in frames:
                self._take(rank, header, payload)
        except (
            ProtocolError,
            TreeError,
            KeyError,
            TypeError,
            ValueError,
            IndexError,
            OverflowError,
        ) as error:
            self._fail(rank, "refused", f"rank {rank} spoke to the kit past torch.distributed: {str(error)[:200]}")
            self.silence(rank)
            return
        if closed:
            self._wait_for_exit(rank)
            self._rank_gone(rank)

    def silence(self, rank: int) -> None:
        """Take nothing from the rank any more: it is out of the run."""
        with contextlib.suppress(KeyError):
            self._selector.unregister(self._ends[rank].socket)
        self.board.ranks[rank].gone = True

    def _take(self, rank: int, header: dict[str, Any], payload: bytearray) -> None:
        state = self.board.ranks[rank]
        if state.gone:
            return
        if state.finished or (state.returned and header["op"] not in ("finished", "issue", "wait", "note")):
            raise ProtocolError("a message after the end")
        what = header["op"]
        if what == "result":
            self._values[rank] = self._value(rank, header, payload)
            state.returned = True
        elif what == "raised":
            self._raised(rank, header)
        elif what == "finished":
            state.finished = True
            if not (state.returned or state.excused or any(failure.rank == rank for failure in self._failures)):
                raise ProtocolError("an end without a result")
        else:
            self.board.handle(rank, header, payload)

    def _value(self, rank: int, header: dict[str, Any], payload: bytearray) -> Any:
        raw = bytearray(self.board.data_of(rank, header, payload, int(header["bytes"])))
        return decode(header["value"], read_tensors(raw, header["tensors"]))

    def pid(self, rank: int) -> int:
        """The rank's process."""
        return self.zygote.pid_of(self._job, rank)

    # -- failures -----------------------------------------------------------------------------------------

    def fail(self, failure: Failure) -> None:
        """The run has failed; the others go on for a moment, so that the first cause can be told."""
        if not self._failures:
            self._failed_at = time.monotonic()
        self._failures.append(failure)

    def _fail(self, rank: int, kind: str, message: str, **more: Any) -> None:
        self.fail(Failure(rank, self.board.ranks[rank].clock, kind, message, **more))

    def _raised(self, rank: int, header: dict[str, Any]) -> None:
        name, text = str(header["type"])[:200], str(header["message"])[:20_000]
        if self.strikes.excuses(self.board.ranks[rank], text):
            return
        frames = tuple((str(f), int(line), str(func), str(src)) for f, line, func, src in header["frames"])
        kind = str(header["kit_kind"]) if header["kit_kind"] in KINDS else "crash"
        message = f"rank {rank} raised {name}: {text}" if text else f"rank {rank} raised {name}"
        if header["cause"] == "memory":
            kind = "memory"
            message = (
                f"rank {rank} asked for more memory than its limit of "
                f"{self._memory_limit_bytes / 2**30:.3g} GiB beyond its start ({name})"
            )
        elif kind != "crash":
            message = text
        site = f"{os.path.basename(frames[-1][0])}:{frames[-1][1]}" if frames else ""
        echo = self._transport == "gloo" and is_echo(text)
        self._fail(rank, kind, message, exception_type=name, frames=frames, site=site, echo=echo)

    def _wait_for_exit(self, rank: int) -> None:
        """The rank closed its end; its exit status is about to come."""
        limit = time.monotonic() + 2.0
        while (self._job, rank) not in self.zygote.exits and time.monotonic() < limit:
            self.zygote.read(limit - time.monotonic())

    def _rank_gone(self, rank: int) -> None:
        state = self.board.ranks[rank]
        if not state.live:
            return
        self._silence_after_reading(rank)
        if not self.board.ranks[rank].live:
            return
        state.gone = True
        if any(failure.rank == rank for failure in self._failures):
            return
        status = self.zygote.exits.get((self._job, rank))
        self._stacks[rank].read()
        site = innermost(self._stacks[rank].text())[0]
        at = f" at {site}" if site else ""
        self._fail(rank, "crash", f"rank {rank} {how_it_ended(status)}{at}", site=site)

    def _silence_after_reading(self, rank: int) -> None:
        """Take in what the rank still said before it died."""
        end = self._ends[rank]
        with contextlib.suppress(KeyError):
            self._selector.unregister(end.socket)
            try:
                frames, _ = end.receive()
                for header, payload in frames:
                    self._take(rank, header, payload)
            except (ProtocolError, TreeError, KeyError, TypeError, ValueError, IndexError, OverflowError):
                pass

    def _check_output(self, rank: int) -> None:
        if self._out[rank].total_bytes + self._err[rank].total_bytes > self._output_limit_bytes:
            message = f"rank {rank} printed more than {self._output_limit_bytes / 2**20:.3g} MiB"
            self._raise(Explanation("output", message, "", rank))

    def _raise_failure(self) -> None:
        first = min(self._failures, key=lambda failure: (failure.echo, failure.clock, failure.rank))
        if first.rank in self.strikes.killed:
            self._raise(Explanation(first.kind, first.message, table(self.board), first.rank, first.site))
        details = traceback_of(first).rstrip("\n") + alike(first, self._failures)
        self._raise(
            Explanation(first.kind, first.message, details.strip("\n"), first.rank, first.site),
            exception_type=first.exception_type,
            traceback=traceback_of(first),
            frames=first.frames,
        )

    def _raise_deadline(self) -> None:
        if self._failures:
            self._raise_failure()
        live = [state.rank for state in self.board.ranks if state.live]
        stacks = self._dump_stacks(live)
        running = [rank for rank in live if not self.board.ranks[rank].blocked]
        where = {rank: innermost(stacks.get(rank, "")) for rank in live}
        shown = running or live
        parts = [
            f"rank {rank} at {where[rank][0]}" + (f" in {where[rank][1]}" if where[rank][1] else "")
            if where[rank][0]
            else f"rank {rank}"
            for rank in shown[:4]
        ]
        message = f"not done after {self._deadline_s:g} s; still running: {', '.join(parts)}"
        details = table(self.board, lambda rank: where.get(rank, ("", ""))[0])
        self._raise(
            Explanation("deadline", message, details, shown[0] if shown else None, where[shown[0]][0] if shown else "")
        )

    def _dump_stacks(self, ranks: Sequence[int]) -> dict[int, str]:
        """Python stacks of live ranks, by SIGUSR1 and faulthandler, also from inside a blocked C++ call."""
        for rank in ranks:
            pid = self.zygote.rank_pids.get((self._job, rank))
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGUSR1)
        limit = time.monotonic() + STACKS_S
        missing, quiet = set(ranks), False
        while (missing or not quiet) and time.monotonic() < limit:
            # A stack comes line by line: once all have begun, wait until no more lines come.
            ready = self._selector.select(0.02 if not missing else max(0.0, limit - time.monotonic()))
            quiet = not any(key.data[0] == "stacks" for key, _ in ready)
            for key, _ in ready:
                what, rank = key.data
                if what in ("out", "err", "stacks"):
                    self._serve(what, rank, selectors.EVENT_READ)
                if what == "stacks":
                    missing.discard(rank)
        return {rank: self._stacks[rank].text() for rank in ranks}

    def _raise_lost(self) -> NoReturn:
        how = "stopped" if self.zygote.was_stopped else "ended"
        self._raise(Explanation("refused", f"the process that starts the ranks was {how} while they ran", ""))

    def _raise(self, why: Explanation, **more: Any) -> NoReturn:
        for capture in (*self._out, *self._err):
            if capture.fd >= 0:
                capture.read()
        raise WorldError(
            why.kind, why.message, details=why.details, rank=why.rank, site=why.site,
            findings=tuple(self.board.findings), stdout=self.stdout(), stderr=self.stderr(), **more,
        )  # fmt: skip

    # -- what came of it ----------------------------------------------------------------------------------

    def trace(self) -> Trace:
        return trace_of(self.board.ranks)

    def findings(self) -> list[Finding]:
        if self._transport != "switchboard":
            return list(self.board.findings)
        return self.strikes.closing_findings(self.board, closing_findings(self.board.ranks, self.board.findings))

    def stdout(self) -> tuple[str, ...]:
        return tuple(capture.text() for capture in self._out)

    def stderr(self) -> tuple[str, ...]:
        return tuple(capture.text() for capture in self._err)
