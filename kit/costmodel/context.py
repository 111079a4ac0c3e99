"""Attention over a sequence split between c ranks: who computes how much under a causal mask, and what hides a ring."""

from __future__ import annotations

import math

from kit.costmodel.arguments import exact, one_of, quantity, whole
from kit.costmodel.collectives import link
from kit.costmodel.training import positive
from kit.errors import KitError

LAYOUTS = ("contiguous", "zigzag")


def causal_pairs(seq_len: int, context_parallel: int, rank: int, layout: str = "contiguous") -> int:
    """Pairs of a query of this rank and a key at or before it; a pair costs the same wherever it is.

    contiguous: rank r holds tokens rs/c .. (r+1)s/c. zigzag: of 2c chunks it holds r and 2c-1-r.
    `causal_pairs(16, 4, 3)` -> 58, and 34 in zigzag on every rank. Source of zigzag: Llama 3, arXiv 2407.21783,
    section 3.3.2.
    """
    one_of("layout", layout, LAYOUTS)
    c = whole("context_parallel", context_parallel)
    r = whole("rank", rank, at_least=0, at_most=c - 1)
    num_chunks = c if layout == "contiguous" else 2 * c
    s = whole("seq_len", seq_len)
    if s % num_chunks:
        raise KitError(f"seq_len={s} cannot be split into {num_chunks} chunks ({layout}, context_parallel={c})")
    length = s // num_chunks
    mine = (r,) if layout == "contiguous" else (r, 2 * c - 1 - r)
    return sum(chunk * length * length + length * (length + 1) // 2 for chunk in mine)


def causal_idle_fraction(seq_len: int, context_parallel: int, layout: str = "contiguous") -> float:
    """Of all ranks' time in attention, what goes into waiting for the busiest: 1 - mean/busiest.

    Contiguous: about (c-1)/(2c-1), since the last rank has 2 - 1/c times the mean. Fully masked blocks are skipped,
    and ranks meet after attention. `causal_idle_fraction(65536, 8)` -> 0.467.
    """
    c = whole("context_parallel", context_parallel)
    work = [causal_pairs(seq_len, c, rank, layout) for rank in range(c)]
    return 1 - sum(work) / c / max(work)


def least_ring_tokens(
    achieved_flops_per_s: int | float,
    bytes_per_s: float,
    queries_per_kv_head: int = 1,
    bytes_per_element: int | float = 2,
) -> int:
    """Tokens of one rank from which computing a block takes no less time than passing K and V on: eX/(2gB).

    l tokens against l others cost 4 l l d FLOPs a query head, and 2 l d e bytes travel for g query heads; without a
    mask. `least_ring_tokens(312e12, 300e9)` -> 1040. Source: Ring Attention, arXiv 2310.01889, section 3, which has
    the block size c >= F/B.
    """
    per_byte = positive("achieved_flops_per_s", achieved_flops_per_s) / link(0, bytes_per_s)[1]
    each = exact(quantity("bytes_per_element", bytes_per_element))
    return math.ceil(each * per_byte / (2 * whole("queries_per_kv_head", queries_per_kv_head)) - 1e-6)
