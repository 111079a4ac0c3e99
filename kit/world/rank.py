"""The life of one rank: a forked (or exec'd) process that runs one function once."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import random
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn

import torch

from kit.world import binding, flops, meter, programs
from kit.world.connection import Connection
from kit.world.filesystem import FilesystemWatch
from kit.world.limits import die_with_parent, limit_rank
from kit.world.parcel import pack, unpack
from kit.world.races import RaceWatch
from kit.world.sites import is_program
from kit.world.tree import TreeError
from kit.world.wire import RankEnd

MAX_FRAMES = 40


def main() -> NoReturn:
    """Entry of a rank that was started by exec: its four descriptors."""
    from kit.world.preload import preload

    preload()
    live(*(int(word) for word in sys.argv[1:5]))


def live(sock_fd: int, out_fd: int, err_fd: int, stacks_fd: int) -> NoReturn:
    """Take the descriptors over, run the job that comes over the socket, and leave."""
    status = 70
    try:
        die_with_parent()
        os.dup2(out_fd, 1)
        os.dup2(err_fd, 2)
        devnull = os.open(os.devnull, os.O_RDONLY)
        os.dup2(devnull, 0)
        for fd in (out_fd, err_fd, devnull):
            if fd > 2:
                os.close(fd)
        _fresh_streams()
        faulthandler.enable(stacks_fd)
        faulthandler.register(signal.SIGUSR1, stacks_fd)
        connection = Connection(RankEnd(socket.socket(fileno=sock_fd)))
        status = _run_job(connection)
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(status)


def _fresh_streams() -> None:
    """Text streams of our own over descriptors 0 to 2: a test runner may have replaced the ones we inherited."""
    # They live as long as the process, so nothing closes them.  # ruff: noqa: SIM115
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _run_job(connection: Connection) -> int:
    job, payload, _ = connection.read_one()
    connection.has_segments = bool(job["segments"])
    _prepare(job)
    inputs = _inputs(job, payload)
    del payload
    races = RaceWatch(connection, enabled=job["races"])
    try:
        if job["transport"] == "gloo":
            binding.join_gloo(connection, job["rank"], job["world_size"], job["timeout_s"])
        else:
            binding.join_switchboard(connection, races, job["rank"], job["world_size"])
            connection.paced = job["paced"]
        limit_rank(job["memory_limit_bytes"])
        function = programs.resolve(job["function"])
        watch = _watch_filesystem(connection, job["filesystem_places"])
        with meter.watching(enabled=job["meter"]), flops.counted(connection, wanted=job["count_flops"]):
            value = function(*inputs)
        if watch is not None:
            watch.tell()
        races.end()
        _flush()
        _send_result(connection, value)
    except SystemExit as stop:
        _report(connection, stop, f"the program called sys.exit({stop.code!r})")
    except BaseException as error:
        _report(connection, error, None)
    _flush()
    connection.request({"op": "finished"})  # stay until every rank is done: peers may still read from us
    return 0


def _prepare(job: dict[str, Any]) -> None:
    rank, size = job["rank"], job["world_size"]
    if job["env"] is not None:
        os.environ.clear()
        os.environ.update(job["env"])
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1", MASTER_PORT="0", OMP_NUM_THREADS="1",
    )  # fmt: skip
    os.chdir(job["cwd"])
    sys.path[:] = job["sys_path"]
    sys.argv[:] = [job["function"]["name"]]
    sys.dont_write_bytecode = True
    # Every rank draws other numbers, or a missing broadcast could not be seen.
    # torch.manual_seed would look for every kind of accelerator too, which took a fifth of a rank's start.
    torch.default_generator.manual_seed(job["rng_seed"])
    random.seed(job["rng_seed"])
    gc.enable()


def _inputs(job: dict[str, Any], payload: bytearray) -> list[Any]:
    if "inputs" not in job:
        return []
    return [unpack(job["inputs"], job["tensors"], payload)]


def _watch_filesystem(connection: Connection, places: list[dict[str, Any]]) -> FilesystemWatch | None:
    """Only where a fault waits for an event there: it wraps what the program opens and writes with."""
    if not places:
        return None
    watch = FilesystemWatch(connection, places)
    watch.install()
    return watch


def _send_result(connection: Connection, value: Any) -> None:
    try:
        header, blobs = pack(connection, value)
    except TreeError as error:
        raise TypeError(f"what the function returned cannot leave the rank: {error}") from None
    connection.post({"op": "result", **header}, blobs)


def _report(connection: Connection, error: BaseException, message: str | None) -> None:
    frames = [
        [frame.filename, frame.lineno or 0, frame.name, frame.line or ""]
        for frame in traceback.extract_tb(error.__traceback__)
        if is_program(frame.filename)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append([str(error.filename), error.lineno or 0, "<module>", (error.text or "").rstrip()])
    header = {
        "op": "raised",
        "type": type(error).__name__,
        "message": (message if message is not None else _text(error))[:20_000],
        "frames": frames[-MAX_FRAMES:],
        "kit_kind": str(getattr(error, "kit_kind", "")),
        "cause": _cause(error),
    }
    connection.post(header)


def _text(error: BaseException) -> str:
    """What the error says; an error of the program may fail at that too."""
    try:
        return str(error)
    except Exception as second:
        return f"(its text cannot be told: __str__ raised {type(second).__name__})"


def _cause(error: BaseException) -> str:
    if isinstance(error, MemoryError) or "can't allocate memory" in _text(error):
        return "memory"
    return ""
