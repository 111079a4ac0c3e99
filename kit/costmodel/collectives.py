"""Bytes and steps of collectives, for each of `world_size` ranks, with the ring algorithm.

S is the bytes of the full buffer: what every rank holds before an all-reduce or a reduce-scatter, and after an
all-gather. The figures are what one rank sends; in a ring it receives as much.
Sources: Patarasuk and Yuan, JPDC 69(2), 2009; nccl-tests, doc/PERFORMANCE.md.
"""

from __future__ import annotations

from kit.costmodel.arguments import exact, quantity, quotient, whole


def all_reduce_bytes(buffer_bytes: int | float, world_size: int) -> int | float:
    """2(n-1)/n S. `all_reduce_bytes(1e9, 8)` -> 1.75e9."""
    return 2 * reduce_scatter_bytes(buffer_bytes, world_size)


def reduce_scatter_bytes(buffer_bytes: int | float, world_size: int) -> int | float:
    """(n-1)/n S, where S is the whole input of one rank."""
    n = whole("world_size", world_size)
    return quotient((n - 1) * exact(quantity("buffer_bytes", buffer_bytes)), n)


def all_gather_bytes(buffer_bytes: int | float, world_size: int) -> int | float:
    """(n-1)/n S, where S is the whole output of one rank."""
    return reduce_scatter_bytes(buffer_bytes, world_size)


def all_to_all_bytes(buffer_bytes: int | float, world_size: int) -> int | float:
    """(n-1)/n S: one of the n parts stays at home."""
    return reduce_scatter_bytes(buffer_bytes, world_size)


def all_reduce_steps(world_size: int) -> int:
    """2(n-1): a reduce-scatter, then an all-gather."""
    return 2 * reduce_scatter_steps(world_size)


def reduce_scatter_steps(world_size: int) -> int:
    """n-1 messages, one after the other."""
    return whole("world_size", world_size) - 1


def all_gather_steps(world_size: int) -> int:
    """n-1 messages, one after the other."""
    return reduce_scatter_steps(world_size)


def all_reduce_max_numel(numel: int, world_size: int) -> int:
    """2(n-1) ceil(numel/n): the most that a rank sends where n does not divide numel. `(10, 4)` -> 18."""
    n = whole("world_size", world_size)
    return 2 * (n - 1) * -(-whole("numel", numel, at_least=0) // n)


def zero_traffic_bytes(
    num_params: int | float,
    world_size: int,
    stage: int,
    bytes_per_element: int | float = 2,
    num_microbatches: int = 1,
    reshard_after_forward: bool = True,
) -> int | float:
    """Bytes that one rank sends in a step of data parallelism (stage 0) or ZeRO, rings throughout.

    Stages 0 and 1 reduce and gather once a step: 2Ψ. Stage 2 reduces every microbatch's gradients, since it keeps
    only its shard of them. Stage 3 also gathers the parameters in every forward and, when they are freed after
    forward, in every backward: 3Ψ with one microbatch.
    Source: ZeRO, arXiv 1910.02054, section 7. Parameters and gradients are taken to be of `bytes_per_element`.
    """
    model_bytes = exact(quantity("num_params", num_params)) * exact(quantity("bytes_per_element", bytes_per_element))
    once = reduce_scatter_bytes(exact(model_bytes), world_size)
    return exact(sum(zero_passes(stage, num_microbatches, reshard_after_forward)) * once)


def zero_passes(stage: int, num_microbatches: int = 1, reshard_after_forward: bool = True) -> tuple[int, int]:
    """How often a step gathers, and how often it reduces, everything. `zero_passes(3, 4)` -> (8, 4)."""
    stage = whole("stage", stage, at_least=0, at_most=3)
    k = whole("num_microbatches", num_microbatches)
    return {0: (1, 1), 1: (1, 1), 2: (1, k), 3: (2 * k if reshard_after_forward else k, k)}[stage]
