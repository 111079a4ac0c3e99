"""Bytes, steps and seconds of collectives, for each of `world_size` ranks, with the ring algorithm unless one is named.

S is the bytes of the full buffer: what every rank holds before an all-reduce or a reduce-scatter, and after an
all-gather. The figures are what one rank sends; in a ring it receives as much.
Sources: Patarasuk and Yuan, JPDC 69(2), 2009; nccl-tests, doc/PERFORMANCE.md.
"""

from __future__ import annotations

from kit import hardware
from kit.costmodel.arguments import exact, one_of, quantity, quotient, whole
from kit.errors import KitError

ALL_REDUCE_ALGORITHMS = ("ring", "halving_doubling", "binomial_tree", "double_tree")
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")


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


# Time: latency a message and bytes over bandwidth (Hockney), links that all ranks use at once.


def all_reduce_s(
    buffer_bytes: int | float, world_size: int, latency_s: float, bytes_per_s: float, algorithm: str = "ring"
) -> float:
    """Seconds of an all-reduce of S bytes over n ranks, a message costing a + bytes/B.

    ring: 2(n-1) a + 2(n-1)/n S/B. halving_doubling: 2 log2 n a + 2(n-1)/n S/B, n a power of two.
    binomial_tree: reduce and broadcast of whole buffers, 2 ceil(log2 n) (a + S/B).
    double_tree: NCCL's two binary trees with half the buffer each, pipelined: 2 ceil(log2 n) a + 2 S/B; the time to
    fill the pipeline is not counted. `all_reduce_s(1e9, 8, 0, 1e9)` -> 1.75.
    Sources: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005; Sanders, Speck and Träff, Parallel Computing 35, 2009.
    """
    one_of("algorithm", algorithm, ALL_REDUCE_ALGORITHMS)
    n, size = whole("world_size", world_size), quantity("buffer_bytes", buffer_bytes)
    a, per_s = link(latency_s, bytes_per_s)
    if n == 1:
        return 0.0
    levels = (n - 1).bit_length()
    if algorithm == "ring":
        return 2 * (n - 1) * a + all_reduce_bytes(size, n) / per_s
    if algorithm == "binomial_tree":
        return 2 * levels * (a + size / per_s)
    if algorithm == "double_tree":
        return 2 * levels * a + 2 * size / per_s
    if n != 1 << levels:
        raise KitError(f"halving_doubling needs a power of two of ranks, got {n}")
    return 2 * levels * a + all_reduce_bytes(size, n) / per_s


def all_gather_s(buffer_bytes: int | float, world_size: int, latency_s: float, bytes_per_s: float) -> float:
    """(n-1) a + (n-1)/n S/B in a ring, S the whole output. `all_gather_s(8e9, 8, 0, 1e9)` -> 7."""
    a, per_s = link(latency_s, bytes_per_s)
    return reduce_scatter_steps(world_size) * a + all_gather_bytes(buffer_bytes, world_size) / per_s


def reduce_scatter_s(buffer_bytes: int | float, world_size: int, latency_s: float, bytes_per_s: float) -> float:
    """(n-1) a + (n-1)/n S/B in a ring, S the whole input of a rank."""
    return all_gather_s(buffer_bytes, world_size, latency_s, bytes_per_s)


def all_to_all_s(buffer_bytes: int | float, world_size: int, latency_s: float, bytes_per_s: float) -> float:
    """(n-1) a + (n-1)/n S/B: one message to each other rank, one after the other."""
    return all_gather_s(buffer_bytes, world_size, latency_s, bytes_per_s)


def broadcast_s(
    buffer_bytes: int | float, world_size: int, latency_s: float, bytes_per_s: float, algorithm: str = "ring"
) -> float:
    """ring, pipelined in small pieces: (n-1) a + S/B. binomial_tree, of the whole buffer: ceil(log2 n) (a + S/B)."""
    one_of("algorithm", algorithm, ("ring", "binomial_tree"))
    n, size = whole("world_size", world_size), quantity("buffer_bytes", buffer_bytes)
    a, per_s = link(latency_s, bytes_per_s)
    if n == 1:
        return 0.0
    return (n - 1) * a + size / per_s if algorithm == "ring" else (n - 1).bit_length() * (a + size / per_s)


def message_s(buffer_bytes: int | float, latency_s: float, bytes_per_s: float) -> float:
    """a + S/B. `message_s(1e6, 1e-3, 1e9)` -> 0.002."""
    a, per_s = link(latency_s, bytes_per_s)
    return a + quantity("buffer_bytes", buffer_bytes) / per_s


def hierarchical_all_reduce_s(
    buffer_bytes: int | float,
    ranks_per_node: int,
    num_nodes: int,
    inside_latency_s: float,
    inside_bytes_per_s: float,
    between_latency_s: float,
    between_bytes_per_s: float,
) -> float:
    """Reduce-scatter inside, all-reduce of S/g between with every rank's own port, all-gather inside; rings.

    `hierarchical_all_reduce_s(8e9, 8, 2, 0, 100e9, 0, 10e9)` -> 0.07 + 0.1 + 0.07 = 0.24.
    """
    g = whole("ranks_per_node", ranks_per_node)
    inside = all_gather_s(buffer_bytes, g, inside_latency_s, inside_bytes_per_s)
    return 2 * inside + all_reduce_s(buffer_bytes / g, num_nodes, between_latency_s, between_bytes_per_s)


def hierarchical_between_bytes(buffer_bytes: int | float, ranks_per_node: int, num_nodes: int) -> int | float:
    """What one rank sends between nodes: 2(m-1)/m S/g. `hierarchical_between_bytes(8e9, 8, 2)` -> 1e9."""
    share = quotient(exact(quantity("buffer_bytes", buffer_bytes)), whole("ranks_per_node", ranks_per_node))
    return all_reduce_bytes(share, num_nodes)


def on_profile_s(
    operation: str, buffer_bytes: int | float, world_size: int, profile: str = "h100", algorithm: str = "ring"
) -> float:
    """Seconds on a hardware profile's links, ranks filling its nodes in order, at the pace of the slowest link.

    These are the rules of the world's virtual time. `algorithm="hierarchical"` is for all-reduce over full nodes.
    `on_profile_s("all_reduce", 1e9, 8, "h100")` -> 3.94e-3.
    """
    machine, n = hardware.profile(profile), whole("world_size", world_size)
    one_of("operation", operation, OPERATIONS)
    per_node = machine.ranks_per_node or n
    tier = machine.inside if n <= per_node else machine.between
    if algorithm == "hierarchical":
        if operation != "all_reduce" or n % min(n, per_node):
            raise KitError(f"hierarchical is an all_reduce over full nodes of {per_node}, got {operation} on {n} ranks")
        g, (inside, between) = min(n, per_node), (machine.inside, machine.between)
        return hierarchical_all_reduce_s(
            buffer_bytes, g, n // g, inside.latency_s, inside.bytes_per_s, between.latency_s, between.bytes_per_s
        )
    return on_link_s(operation, buffer_bytes, n, tier.latency_s, tier.bytes_per_s, algorithm)


def on_link_s(
    operation: str,
    buffer_bytes: int | float,
    world_size: int,
    latency_s: float,
    bytes_per_s: float,
    algorithm: str = "ring",
) -> float:
    """`operation` by its name. Raises KitError for an algorithm that it is not modelled with."""
    one_of("operation", operation, OPERATIONS)
    if operation == "all_reduce":
        return all_reduce_s(buffer_bytes, world_size, latency_s, bytes_per_s, algorithm)
    if operation == "broadcast":
        return broadcast_s(buffer_bytes, world_size, latency_s, bytes_per_s, algorithm)
    one_of("algorithm", algorithm, ("ring",))
    return all_gather_s(buffer_bytes, world_size, latency_s, bytes_per_s)


def ring_tree_crossover_bytes(
    world_size: int, latency_s: float, bytes_per_s: float, tree: str = "double_tree"
) -> float:
    """Above this many bytes the ring all-reduce is the faster one, below it the tree; 0 where the ring always is.

    L = ceil(log2 n). double_tree: n (n-1-L) a B. binomial_tree: (n-1-L) a B / (L - (n-1)/n).
    `ring_tree_crossover_bytes(64, 5e-6, 12.5e9)` -> 64 x 57 x 62500 = 228e6.
    """
    n = whole("world_size", world_size, at_least=2)
    one_of("tree", tree, ("binomial_tree", "double_tree"))
    a, per_s = link(latency_s, bytes_per_s)
    levels = (n - 1).bit_length()
    more_s_per_byte = (2 / n if tree == "double_tree" else 2 * (levels - (n - 1) / n)) / per_s
    return 2 * max(0, n - 1 - levels) * a / more_s_per_byte


def bus_factor(operation: str, world_size: int, in_network: bool | int = False) -> float:
    """Bus over algorithm bandwidth: 2(n-1)/n for all-reduce, (n-1)/n for all-gather and the like, 1 for the rest.

    `in_network`: reduced by the switches, (n-1)/(n+1). Source: nccl-tests, doc/PERFORMANCE.md.
    """
    one_of("operation", operation, (*OPERATIONS, "reduce"))
    n = whole("world_size", world_size)
    if in_network:
        one_of("operation", operation, ("all_reduce",))
        return (n - 1) / (n + 1)
    return {"all_reduce": 2 * (n - 1) / n, "broadcast": 1.0, "reduce": 1.0}.get(operation, (n - 1) / n)


def bus_bandwidth(operation: str, buffer_bytes: int | float, seconds: float, world_size: int) -> float:
    """S/t times the bus factor, comparable with a link's bytes/s. `("all_reduce", 1e9, 0.01, 8)` -> 175e9."""
    if quantity("seconds", seconds) == 0:
        raise KitError("seconds must be above 0, got 0")
    return quantity("buffer_bytes", buffer_bytes) / seconds * bus_factor(operation, world_size)


def link(latency_s: float, bytes_per_s: float) -> tuple[float, float]:
    """Both checked; an infinite bandwidth is allowed, so that a profile may have one."""
    if isinstance(bytes_per_s, bool) or not isinstance(bytes_per_s, int | float) or not bytes_per_s > 0:
        raise KitError(f"bytes_per_s must be a number above 0, got {bytes_per_s!r}")
    return float(quantity("latency_s", latency_s)), float(bytes_per_s)
