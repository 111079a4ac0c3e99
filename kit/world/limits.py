"""What a rank may use, and what the kernel does for us when a process dies."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterator

_PR_SET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 3, 4, 36


def _prctl(option: int, value: int) -> int:
    if sys.platform != "linux":
        return 0
    return int(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0))


def die_with_parent() -> None:
    """SIGKILL this process when the thread that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Children of our children become ours when their parents die, so that they can be found and ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> None:
    """No process of the same user may read our memory (root still may)."""
    _prctl(_PR_SET_DUMPABLE, 0)


@contextlib.contextmanager
def shown_memory() -> Iterator[None]:
    """While this lasts, processes of the same user may look at our memory: the one that decides counts our pages."""
    before = _prctl(_PR_GET_DUMPABLE, 0)
    _prctl(_PR_SET_DUMPABLE, 1)
    try:
        yield
    finally:
        _prctl(_PR_SET_DUMPABLE, before)


def mapped_bytes() -> int:
    """Address space in use by this process."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def limit_rank(memory_limit_bytes: int, file_limit_bytes: int = 1 << 30) -> None:
    """Bound what this process may allocate beyond what it has, what it may write to files, and core dumps."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_FSIZE, file_limit_bytes)
    used = mapped_bytes()
    if used:
        _limit(resource.RLIMIT_AS, used + memory_limit_bytes)


def _limit(what: int, wanted: int) -> None:
    """A limit that is tighter already, as `ulimit` or a cluster may have set it, stays as it is."""
    hard = resource.getrlimit(what)[1]
    ceiling = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(what, (ceiling, ceiling))


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor that is not in `keep` (0, 1 and 2 stay)."""
    try:
        names = os.listdir("/dev/fd")
    except OSError:
        names = [str(fd) for fd in range(3, 4096)]
    for name in names:
        fd = int(name)
        if fd > 2 and fd not in keep:
            with contextlib.suppress(OSError):
                os.close(fd)


def raise_descriptor_limit(wanted: int) -> None:
    """Let this process hold `wanted` descriptors open, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        ceiling = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, hard))
