"""A rank's own heap, made ready to be counted from outside: what was freed goes back to the kernel."""

from __future__ import annotations

import ctypes
import gc
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_PR_SET_THP_DISABLE = 41
THRESHOLD_BYTES = 512 << 10  # from this size on, every allocation is a mapping of its own and goes back when freed


class _Heap:
    is_exact = False


class _Mallinfo2(ctypes.Structure):
    """glibc 2.33 and newer; fordblks: bytes of the heap that nothing uses."""

    _fields_ = [
        ("arena", ctypes.c_size_t), ("ordblks", ctypes.c_size_t), ("smblks", ctypes.c_size_t),
        ("hblks", ctypes.c_size_t), ("hblkhd", ctypes.c_size_t), ("usmblks", ctypes.c_size_t),
        ("fsmblks", ctypes.c_size_t), ("uordblks", ctypes.c_size_t), ("fordblks", ctypes.c_size_t),
        ("keepcost", ctypes.c_size_t),
    ]  # fmt: skip


def settle() -> None:
    """Free what is garbage, and give back every page that nothing uses.

    The first call also sets the allocator up, so that programs which are never held run at their usual speed.
    Where the C library is not glibc there is less to do, and readings are coarser.
    """
    gc.collect()
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        return
    if not _Heap.is_exact:
        _Heap.is_exact = True
        libc.mallopt(_M_MMAP_THRESHOLD, THRESHOLD_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, THRESHOLD_BYTES)
        # A huge page would be counted whole where a tensor fills a part of it.
        libc.prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
    libc.malloc_trim(0)
    _fence_gaps(libc)


def _fence_gaps(libc: ctypes.CDLL) -> None:
    """Take every gap of the heap that could hold a large tensor, and use none of them.

    malloc maps what is large only where no gap has room for it. A tensor in a gap leaves its pages behind when it is
    freed, until the next trim, and the next tensor may take another gap: the peak would be of both. How many gaps
    there are depends on all that the process did that ranks are forked from.
    """
    if not hasattr(libc, "mallinfo2"):
        return
    libc.mallinfo2.restype = _Mallinfo2
    libc.malloc.restype = libc.malloc_usable_size.restype = ctypes.c_size_t
    libc.malloc.argtypes, libc.malloc_usable_size.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
    libc.free.argtypes = [ctypes.c_void_p]
    for _ in range(libc.mallinfo2().fordblks // THRESHOLD_BYTES):
        taken = libc.malloc(THRESHOLD_BYTES)
        # A mapping of its own has whole pages, a gap is cut to size.
        if libc.malloc_usable_size(taken) >= THRESHOLD_BYTES + 1024:
            libc.free(taken)
            return
