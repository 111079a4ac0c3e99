"""The zygote's own process: forks ranks on request, reaps them, and ends whatever they leave behind."""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import sys
import time
from typing import Any, NoReturn

from kit.world.limits import adopt_orphans, close_all_but
from kit.world.line import Line, python_running
from kit.world.pages import gather_pages
from kit.world.preload import preload
from kit.world.resident import birth_of_forks

_RANK_FDS = 4
_MANY_RANKS = 48  # so many starts pay for gathering the pages that each of them shares


def main() -> NoReturn:
    """Entry of an exec'd zygote: descriptor of its socket, how to start ranks, then modules to import."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    try:
        if sys.argv[2] == "fork":
            gc.disable()  # a rank turns it on again
            preload(sys.argv[3:])
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
    for number in (signal.SIGTERM, signal.SIGHUP):  # not what that process does about them, which we were forked from
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # asks for stacks, and must not end a rank that is not ready for it
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _Server(sock, wake_read, start).run()


class _Server:
    def __init__(self, sock: socket.socket, wake: int, start: str) -> None:
        self._line = Line(sock)
        self._wake = wake
        self._start = start
        self._ranks: dict[int, tuple[int, int]] = {}  # pid -> (job, rank)
        self._started = 0
        self._gathered = start != "fork"
        self._told_birth = start != "fork"

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
                        self._gather_for(message["of"])
                        self._tell_birth()
                        self._spawn(message["job"], message["rank"], self._line.take_fds(_RANK_FDS))
                    elif message["do"] == "gather":
                        self._gather()
                    else:
                        self._end_all({pid for pid, (job, _) in self._ranks.items() if job == message["job"]})
                        self._say({"say": "killed", "job": message["job"]})

    def _say(self, message: dict[str, Any]) -> None:
        try:
            self._line.send(message)
        except OSError:
            self._end_all(set(self._ranks))
            os._exit(0)

    def _gather_for(self, num_ranks: int) -> None:
        """Before the first of many ranks: make the coming forks cheap."""
        if self._started + num_ranks >= _MANY_RANKS:
            self._gather()
        self._started += 1

    def _gather(self) -> None:
        if not (self._gathered or self._ranks):
            self._gathered = True
            if gather_pages():
                self._told_birth = False

    def _tell_birth(self) -> None:
        """What ranks begin with: known from here, since of a rank it can be read only when a solution has run in it."""
        if not self._told_birth:
            self._told_birth = True
            birth = birth_of_forks()
            if birth is not None:
                files = [file.decode() for file in birth.files]
                self._say({"say": "birth", "own_bytes": birth.own_bytes, "files": files})

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
            os.execv(sys.executable, [*python_running("kit.world.rank"), *map(str, fds)])
        from kit.world.rank import live

        live(*fds)
    finally:
        os._exit(70)
