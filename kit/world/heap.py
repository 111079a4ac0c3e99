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
