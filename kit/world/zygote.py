"""The zygote: a process that has imported torch once and forks ranks from that state.

Forked from the deciding process (`grade`, which has torch itself) or exec'd fresh (the pytest plugin, whose process
may have used threads, after which a fork hangs every child). It has one thread and never runs a tensor operation.

Where a fork after importing torch is unproven (anything but Linux), ranks are started by exec instead, each with its
own import of torch: slow, and the same in every other respect.

Between the two: one socket pair, a JSON message a line. To the zygote: spawn (with a rank's four descriptors), kill,
gather. From it: ready, birth, spawned, exited, killed.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from kit.errors import KitError
from kit.world.limits import hide_memory
from kit.world.line import Line, python_running
from kit.world.preload import preload
from kit.world.resident import Birth
from kit.world.zygote_server import serve

_START_LIMIT_S = 120.0
_LOOK_S = 0.2  # between two looks at whether it is stopped, each a read from /proc
_LOOKS = 3  # so many in a row find it stopped: Ctrl-Z stops it for a moment longer than this process


def default_start() -> str:
    """How ranks come to life: "fork" where that is proven, else "exec"."""
    return "fork" if sys.platform == "linux" else "exec"


class ZygoteLost(KitError):
    """The zygote is gone, or was stopped, though nobody closed it. The next run starts a new one."""


class Zygote:
    """The deciding process's handle. Use as a context manager, or call close()."""

    def __init__(
        self, pid: int, sock: socket.socket, process: subprocess.Popen[bytes] | None, modules: Sequence[str]
    ) -> None:
        self.pid = pid
        self._line = Line(sock)
        self._inbox: deque[dict[str, Any]] = deque()
        self._process = process
        self._owner = os.getpid()
        self._modules = tuple(modules)
        self._ready = False
        self._lost = False
        self.num_lost = 0  # how many processes ended, or were stopped, though nobody closed them
        self.was_stopped = False  # the last of these
        self._looked_at = 0.0
        self._stopped_looks = 0
        self._jobs = 0
        self._job_ranks: dict[int, int] = {}
        self._job_pids: dict[int, int] = {}  # the zygote's own pid when a job began
        self._closed = False
        self.rank_pids: dict[tuple[int, int], int] = {}
        self.exits: dict[tuple[int, int], int] = {}
        self.birth: Birth | None = None  # what the ranks that it forks begin with; said before the first of them

    @classmethod
    def fork(cls, modules: Sequence[str] = ()) -> Zygote:
        """Fork from this process, which must have one thread and must not have run a tensor operation with more."""
        if default_start() != "fork":
            return cls.execute(modules)
        preload(modules)
        ours, theirs = socket.socketpair()
        gc.freeze()
        sys.stdout.flush()
        sys.stderr.flush()
        hide_memory()
        pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                serve(theirs, "fork")
            finally:
                os._exit(70)
        gc.unfreeze()
        theirs.close()
        return cls(pid, ours, None, modules)

    @classmethod
    def execute(cls, modules: Sequence[str] = (), *, start: str | None = None) -> Zygote:
        """Start a fresh Python; returns at once, the imports go on in the background until the first run.

        start: "fork" or "exec", how it starts its ranks; None for what suits the platform.
        """
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(
            [*python_running("kit.world.zygote_server"), str(theirs.fileno()), start or default_start(), *modules],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        theirs.close()
        return cls(process.pid, ours, process, modules)

    def _receive(self, limit_s: float) -> dict[str, Any] | None:
        """The next message, None when there is none within the limit; KitError when the zygote is gone."""
        if not self._inbox:
            if not self._can_read(limit_s):
                return None
            messages = self._line.receive()
            if messages is None:
                raise self._loss()
            self._inbox.extend(messages)
            if not self._inbox:
                return None
        message = self._inbox.popleft()
        key = (message.get("job", -1), message.get("rank", -1))
        if message["say"] == "spawned":
            self.rank_pids[key] = message["pid"]
        elif message["say"] == "exited":
            self.exits[key] = message["status"]
        elif message["say"] == "birth":
            self.birth = Birth(message["own_bytes"], frozenset(file.encode() for file in message["files"]))
        return message

    def _can_read(self, limit_s: float) -> bool:
        limit = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._line.socket, selectors.EVENT_READ)
            while not selector.select(min(_LOOK_S, max(0.0, limit - time.monotonic()))):
                if time.monotonic() >= limit:
                    return False
                self._look()
        return True

    def _loss(self) -> ZygoteLost:
        self.num_lost += not self._lost
        self._lost = True
        return self._lost_error()

    def _lost_error(self) -> ZygoteLost:
        what = "was stopped" if self.was_stopped else "ended by itself"
        return ZygoteLost(
            f"the process that starts ranks {what}", "run `shardkit doctor`; if memory is short, close other programs"
        )

    def require_running(self, job: int) -> None:
        """To be called now and then while a job runs. Raises ZygoteLost where its zygote is lost, or stopped."""
        if self._lost or self._job_pids[job] != self.pid:
            raise self._lost_error()
        self._look()

    def _look(self) -> None:
        """End it where a rank has stopped it; raises ZygoteLost then."""
        now = time.monotonic()
        if now < self._looked_at + _LOOK_S:
            return
        self._looked_at = now
        self._stopped_looks = self._stopped_looks + 1 if _is_stopped(self.pid) else 0
        if self._stopped_looks < _LOOKS:
            return
        self._stopped_looks = 0
        self.was_stopped = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        while self._receive(_START_LIMIT_S) is not None:  # what it still said: the ranks that are to be ended
            pass

    def wait_ready(self) -> None:
        """Block until its imports are done; a zygote that was lost is replaced by a fresh one."""
        if self._lost and not self._closed:
            self._replace()
        if not self._ready:
            if self._receive(_START_LIMIT_S) is None:
                raise KitError(f"torch was not imported within {_START_LIMIT_S:.0f} s", "run `shardkit doctor`")
            self._ready = True

    def _replace(self) -> None:
        self._line.socket.close()
        self._end_process(5)
        fresh = Zygote.execute(self._modules)
        self.pid, self._line, self._process = fresh.pid, fresh._line, fresh._process
        self._lost = self._ready = self.was_stopped = False
        self.birth = None
        self._inbox.clear()

    def new_job(self, num_ranks: int) -> int:
        """The number of a job that is about to start so many ranks."""
        self._jobs += 1
        self._job_ranks[self._jobs] = num_ranks
        self._job_pids[self._jobs] = self.pid
        return self._jobs

    def pids(self, job: int) -> list[int]:
        """The processes of a job's ranks, as far as they are known."""
        return [pid for (of, _), pid in self.rank_pids.items() if of == job]

    def exited(self, job: int) -> list[int]:
        """The ranks of a job whose processes have ended, as far as that is known."""
        return [rank for of, rank in self.exits if of == job]

    def spawn(self, job: int, rank: int, fds: Sequence[int]) -> None:
        """Start one rank with its socket, stdout, stderr and stacks descriptors."""
        self.wait_ready()
        try:
            self._line.send({"do": "spawn", "job": job, "rank": rank, "of": self._job_ranks[job]}, fds)
        except OSError:
            self._receive(0)  # says that the zygote is gone
            raise
        self.read()  # or two full sockets block the zygote and this process for ever: some 500 ranks are enough

    def pid_of(self, job: int, rank: int) -> int:
        """The process of a rank that was spawned; waits until the zygote has said which one it is."""
        while (job, rank) not in self.rank_pids:
            if self._receive(_START_LIMIT_S) is None:
                raise KitError(f"the process of rank {rank} was not named", "run `shardkit doctor`")
        return self.rank_pids[job, rank]

    def gather(self) -> None:
        """While nothing runs: let it make the coming starts cheaper, which takes it a moment (see kit.world.pages)."""
        with contextlib.suppress(OSError):  # it is gone, as the next run will say
            self._line.send({"do": "gather"})

    def fileno(self) -> int:
        return self._line.socket.fileno()

    def read(self, limit_s: float = 0.0) -> None:
        """Take in what the zygote said, and wait so long for something where it has said nothing."""
        while self._receive(limit_s) is not None:
            limit_s = 0.0

    def kill(self, job: int, limit_s: float = 10.0) -> bool:
        """End every process of a job, and whatever those started; returns when all are gone.

        False where the zygote was lost since the job began: then its ranks are ended, and what they started may live.
        """
        try:
            self.require_running(job)
            self._line.send({"do": "kill", "job": job})
            deadline = time.monotonic() + limit_s
            while time.monotonic() < deadline:
                message = self._receive(max(0.0, deadline - time.monotonic()))
                if message is not None and message["say"] == "killed" and message["job"] == job:
                    break
        except (ZygoteLost, OSError):
            with contextlib.suppress(ZygoteLost):
                self.read()  # also counts the loss where writing was what failed
            self._kill_ranks(job)
            is_whole = False
        else:
            is_whole = True
        self._job_ranks.pop(job, None)
        self._job_pids.pop(job, None)
        for known in (self.rank_pids, self.exits):
            for key in [key for key in known if key[0] == job]:
                del known[key]
        return is_whole

    def _kill_ranks(self, job: int) -> None:
        for (of, rank), pid in self.rank_pids.items():
            if of == job and (of, rank) not in self.exits:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)

    def close(self) -> None:
        """End the zygote and every rank. Safe to call twice, and from a forked child (does nothing there)."""
        if self._closed or os.getpid() != self._owner:
            return
        self._closed = True
        self._line.socket.close()  # the zygote ends its ranks and itself when this end is gone
        self._end_process(5)

    def _end_process(self, limit_s: float) -> None:
        """Wait for the process to end, and end it when it does not."""
        if _is_stopped(self.pid):
            limit_s = 0.0
        if self._process is not None:
            try:
                self._process.wait(limit_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            return
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            try:
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    return
            except ChildProcessError:
                return
            time.sleep(0.002)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _is_stopped(pid: int) -> bool:
    """By SIGSTOP or a tracer (Linux; elsewhere nothing says so). Of a child that was not waited for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in ("T", "t")
    except (OSError, IndexError):
        return False
