"""Bytes on the wire per rank, for each operation: the convention that every traffic figure of the kit uses.

n ranks; S the bytes of the full buffer. Ring algorithms, as NCCL and gloo use them for large messages:
all_reduce 2(n-1)/n S; reduce_scatter and all_gather (n-1)/n S; all_to_all (n-1)/n S; broadcast: the root sends S;
reduce: every rank but the root sends S; gather: every rank but the root sends its own part; scatter: the root sends
the parts of the others; send: the message. A barrier sends nothing.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009, section 3;
NCCL tests, doc/PERFORMANCE.md, "Bus bandwidth".
"""

from __future__ import annotations

from collections.abc import Sequence


def sent_bytes(name: str, rank: int, root: int | None, parts: Sequence[int]) -> int:
    """Bytes that group rank `rank` sends.

    parts: bytes of each group rank's part of the buffer. For all_reduce, broadcast and reduce, which have no parts,
    one entry a rank with the whole S. For all_to_all: what this rank sends to each.
    """
    n = len(parts)
    if n <= 1 and name != "send":
        return 0
    if name == "all_reduce":
        return -(-2 * (n - 1) * parts[rank] // n)
    if name == "broadcast":
        return parts[rank] if rank == root else 0
    if name == "reduce":
        return 0 if rank == root else parts[rank]
    if name == "all_gather":
        # The ring passes every part but the one that the next rank owns already.
        return sum(parts) - parts[(rank + 1) % n]
    if name == "reduce_scatter":
        # The ring passes partial sums of every part but the rank's own.
        return sum(parts) - parts[rank]
    if name == "all_to_all":
        return sum(parts) - parts[rank]
    if name == "gather":
        return 0 if rank == root else parts[rank]
    if name == "scatter":
        return sum(parts) - parts[rank] if rank == root else 0
    if name == "send":
        return parts[0]
    return 0
