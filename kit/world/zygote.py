"""The zygote: a process that has imported torch once and forks ranks from that state.

Forked from the deciding process (`grade`, which has torch itself) or exec'd fresh (the pytest plugin, whose process
may have used threads, after which a fork hangs every child). It has one thread and never runs a tensor operation.

Where a fork after importing torch is unproven (anything but Linux), ranks are started by exec instead, each with its
own import of torch: slow, and the same in every other respect.

Between the two: one socket pair, a JSON message a line. To the zygote: spawn (with a rank's four descriptors), kill.
From it: ready, spawned, exited, killed.
"""

from __future__ import annotations

import contextlib
import gc
import json
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
from typing import Any, NoReturn

from kit.errors import KitError
from kit.world.limits import adopt_orphans, close_all_but, hide_memory

PRELOAD = (
    "torch",
    "torch._dynamo",
    "torch.distributed",
    "torch.distributed.checkpoint",
    "torch.distributed.device_mesh",
    "torch.distributed.fsdp",
    "torch.distributed.nn",
    "torch.distributed.optim",
    "torch.distributed.pipelining",
    "torch.distributed.tensor",
    "torch.distributed.tensor.parallel",
    "torch.nn.parallel",
    "kit.world.rank",
)
_START_LIMIT_S = 120.0
_RANK_FDS = 4
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def default_start() -> str:
    """How ranks come to life: "fork" where that is proven, else "exec"."""
    return "fork" if sys.platform == "linux" else "exec"


class _Line:
    """One end of the pair: messages by line, descriptors in order beside them."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._buffer = bytearray()
        self._fds: deque[int] = deque()

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        data = json.dumps(message).encode() + b"\n"
        if fds:
            data = data[socket.send_fds(self.socket, [data], list(fds)) :]
        self.socket.sendall(data)

    def receive(self) -> list[dict[str, Any]] | None:
        """The complete messages after one blocking read; None when the other end is gone."""
        try:
            data, fds, _, _ = socket.recv_fds(self.socket, 1 << 16, 64)
        except ConnectionResetError:
            return None
        self._fds.extend(fds)
        if not data:
            return None
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        return [json.loads(line) for line in lines]

    def take_fds(self, count: int) -> list[int]:
        return [self._fds.popleft() for _ in range(count)]


def preload(modules: Sequence[str] = ()) -> None:
    """Import everything that a rank may need; torch is left with one thread."""
    import importlib
    import warnings

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    warnings.filterwarnings("ignore", message="The given buffer is not writable")
    for name in (*PRELOAD, *modules):
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    with contextlib.suppress(RuntimeError):
        torch.set_num_interop_threads(1)
    from kit.world import binding

    binding.register_backend()


class ZygoteLost(KitError):
    """The zygote is gone though nobody closed it. The next run starts a new one."""


class Zygote:
    """The deciding process's handle. Use as a context manager, or call close()."""

    def __init__(
        self, pid: int, sock: socket.socket, process: subprocess.Popen[bytes] | None, modules: Sequence[str]
    ) -> None:
        self.pid = pid
        self._line = _Line(sock)
        self._inbox: deque[dict[str, Any]] = deque()
        self._process = process
        self._owner = os.getpid()
        self._modules = tuple(modules)
        self._ready = False
        self._lost = False
        self._jobs = 0
        self._closed = False
        self.rank_pids: dict[tuple[int, int], int] = {}
        self.exits: dict[tuple[int, int], int] = {}

    @classmethod
    def fork(cls, modules: Sequence[str] = ()) -> Zygote:
        """Fork from this process, which must have one thread and must not have run a tensor operation with more."""
        if default_start() != "fork":
            return cls.execute(modules)
        preload(modules)
        ours, theirs = socket.socketpair()
        gc.collect()
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
            [*_python("kit.world.zygote"), str(theirs.fileno()), start or default_start(), *modules],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        theirs.close()
        return cls(process.pid, ours, process, modules)

    def _receive(self, limit_s: float) -> dict[str, Any] | None:
        """The next message, None when there is none within the limit; KitError when the zygote is gone."""
        if not self._inbox:
            with selectors.DefaultSelector() as selector:
                selector.register(self._line.socket, selectors.EVENT_READ)
                if not selector.select(limit_s):
                    return None
            messages = self._line.receive()
            if messages is None:
                self._lost = True
                raise ZygoteLost(
                    "the process that starts ranks ended by itself",
                    "run `shardkit doctor`; if memory is short, close other programs",
                )
            self._inbox.extend(messages)
            if not self._inbox:
                return None
        message = self._inbox.popleft()
        key = (message.get("job", -1), message.get("rank", -1))
        if message["say"] == "spawned":
            self.rank_pids[key] = message["pid"]
        elif message["say"] == "exited":
            self.exits[key] = message["status"]
        return message

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
        self._lost = self._ready = False
        self._inbox.clear()

    def new_job(self) -> int:
        self._jobs += 1
        self.rank_pids.clear()
        self.exits.clear()
        return self._jobs

    def spawn(self, job: int, rank: int, fds: Sequence[int]) -> None:
        """Start one rank with its socket, stdout, stderr and stacks descriptors."""
        self.wait_ready()
        try:
            self._line.send({"do": "spawn", "job": job, "rank": rank}, fds)
        except OSError:
            self._receive(0)  # says that the zygote is gone
            raise

    def fileno(self) -> int:
        return self._line.socket.fileno()

    def read(self) -> None:
        """Take in what the zygote said, without blocking."""
        while self._receive(0) is not None:
            pass

    def kill(self, job: int, limit_s: float = 10.0) -> None:
        """End every process of a job, and whatever those started; returns when all are gone."""
        self._line.send({"do": "kill", "job": job})
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            message = self._receive(max(0.0, deadline - time.monotonic()))
            if message is not None and message["say"] == "killed" and message["job"] == job:
                return

    def close(self) -> None:
        """End the zygote and every rank. Safe to call twice, and from a forked child (does nothing there)."""
        if self._closed or os.getpid() != self._owner:
            return
        self._closed = True
        self._line.socket.close()  # the zygote ends its ranks and itself when this end is gone
        self._end_process(5)

    def _end_process(self, limit_s: float) -> None:
        """Wait for the process to end, and end it when it does not."""
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


# -- the zygote's own process ----------------------------------------------------------------------------


def _python(module: str) -> list[str]:
    """The command that runs `main()` of a module of this kit in a fresh Python, wherever the kit lies."""
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {_ROOT!r}); from {module} import main; main()"]


def main() -> NoReturn:
    """Entry of an exec'd zygote: descriptor of its socket, how to start ranks, then modules to import."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    try:
        if sys.argv[2] == "fork":
            preload(sys.argv[3:])
            gc.collect()
            gc.freeze()
        serve(sock, sys.argv[2])
    except KeyboardInterrupt:
        pass
    finally:
        os._exit(0)


def serve(sock: socket.socket, start: str) -> NoReturn:
    """Start ranks on request until the deciding process closes its end."""
    close_all_but({sock.fileno()})
    adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the deciding process's to handle
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # asks for stacks, and must not end a rank that is not ready for it
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _Server(sock, wake_read, start).run()


class _Server:
    def __init__(self, sock: socket.socket, wake: int, start: str) -> None:
        self._line = _Line(sock)
        self._wake = wake
        self._start = start
        self._ranks: dict[int, tuple[int, int]] = {}  # pid -> (job, rank)

    def run(self) -> NoReturn:
        self._say({"say": "ready"})
        selector = selectors.DefaultSelector()
        selector.register(self._line.socket, selectors.EVENT_READ)
        selector.register(self._wake, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == self._wake:
                    os.read(self._wake, 4096)
                    self._reap()
                    continue
                messages = self._line.receive()
                if messages is None:
                    self._end_all(set(self._ranks))
                    os._exit(0)
                for message in messages:
                    if message["do"] == "spawn":
                        self._spawn(message["job"], message["rank"], self._line.take_fds(_RANK_FDS))
                    else:
                        self._end_all({pid for pid, (job, _) in self._ranks.items() if job == message["job"]})
                        self._say({"say": "killed", "job": message["job"]})

    def _say(self, message: dict[str, Any]) -> None:
        try:
            self._line.send(message)
        except OSError:
            self._end_all(set(self._ranks))
            os._exit(0)

    def _spawn(self, job: int, rank: int, fds: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            for fd in fds:
                os.close(fd)
            self._say({"say": "exited", "job": job, "rank": rank, "status": -(1000 + (error.errno or 0))})
            return
        if pid == 0:
            _become_rank(fds, self._start)
        for fd in fds:
            os.close(fd)
        self._ranks[pid] = (job, rank)
        self._say({"say": "spawned", "job": job, "rank": rank, "pid": pid})

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            known = self._ranks.pop(pid, None)
            if known is not None:
                code = os.waitstatus_to_exitcode(status)
                self._say({"say": "exited", "job": known[0], "rank": known[1], "status": code})

    def _end_all(self, pids: set[int]) -> None:
        """SIGKILL these ranks, their process groups and every orphan that became ours; wait until they are gone."""
        for pid in pids:
            for send in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    send(pid, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            self._reap()
            strays = _children() - (set(self._ranks) - pids)
            if not strays:
                return
            for pid in strays:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)


def _children() -> set[int]:
    """Live children of this process (Linux; elsewhere the process groups have to do)."""
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
        return {int(pid) for pid in file.read().split()}
    found = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{int(name)}/stat") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(name))
    return found


def _become_rank(fds: list[int], start: str) -> NoReturn:
    try:
        os.setsid()  # no terminal, and a process group of its own
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        close_all_but(set(fds))
        if start == "exec":
            for fd in fds:
                os.set_inheritable(fd, True)
            os.execv(sys.executable, [*_python("kit.world.rank"), *map(str, fds)])
        from kit.world.rank import live

        live(*fds)
    finally:
        os._exit(70)
