"""Bytes that a rank sends in a training step: data parallelism, ZeRO, ZeRO++, FSDP, HSDP and what goes round them.

M is the bytes of what a collective carries, n its ranks: all-reduce 2(n-1)/n M, all-gather and reduce-scatter
(n-1)/n M, rings throughout (kit.costmodel.collectives). Papers that print 2M or 3M drop (n-1)/n.
Parallelism inside the model is in kit.costmodel.model_traffic.
"""

from __future__ import annotations

from kit.costmodel.arguments import exact, one_of, quantity, quotient, whole
from kit.costmodel.collectives import all_gather_bytes, all_reduce_bytes, reduce_scatter_bytes, zero_passes
from kit.errors import KitError

LEVELS = ("all", "inside", "between")


def ddp_bytes(
    num_params: int | float,
    world_size: int,
    grad_bytes_per_param: int | float = 4,
    num_microbatches: int = 1,
    no_sync: bool | int = True,
) -> int | float:
    """2(n-1)/n M once a step, M the bytes of the gradients; once a microbatch without `no_sync`.

    DDP reduces gradients in their own dtype, fp32 unless the model is in another. `ddp_bytes(1e9, 8)` -> 7e9.
    Source: PyTorch Distributed, arXiv 2006.15704, section 3.2.4 (no_sync).
    """
    num_syncs = 1 if no_sync else whole("num_microbatches", num_microbatches)
    whole("num_microbatches", num_microbatches)
    grads = product(num_params, "grad_bytes_per_param", grad_bytes_per_param)
    return num_syncs * all_reduce_bytes(grads, world_size)


def sharded_optimizer_bytes(
    num_params: int | float,
    world_size: int,
    grad_bytes_per_param: int | float = 4,
    param_bytes_per_param: int | float = 4,
    counts: str = "root",
) -> int | float:
    """Gradients all-reduced whole, each rank steps its share and broadcasts it: not yet ZeRO-1.

    `counts="root"` takes a broadcast as its root's bytes, S, as the kit's traces do: 2(n-1)/n G + P/n. "ring" counts
    what each rank passes on of the others' as well: 2(n-1)/n G + (n-1)/n P, half as much again as ZeRO-1. The shares
    are equal. `sharded_optimizer_bytes(1e9, 4, counts="ring")` -> 9e9.
    """
    n = whole("world_size", world_size)
    grads = product(num_params, "grad_bytes_per_param", grad_bytes_per_param)
    params = product(num_params, "param_bytes_per_param", param_bytes_per_param)
    one_of("counts", counts, ("root", "ring"))
    sent = quotient(params, n) if counts == "root" and n > 1 else all_gather_bytes(params, n)
    return exact(all_reduce_bytes(grads, n) + sent)


def zero_bytes(
    num_params: int | float,
    world_size: int,
    stage: int,
    param_bytes_per_param: int | float = 2,
    grad_bytes_per_param: int | float = 2,
    num_microbatches: int = 1,
    reshard_after_forward: bool | int = True,
) -> int | float:
    """`collectives.zero_traffic_bytes` with a dtype for each: (n-1)/n (gathers x P + reductions x G).

    Gathers and reductions a step: stages 0 and 1: 1 and 1; stage 2: 1 and k, since it keeps only its shard of the
    gradients; stage 3: 2k and k (k and k where parameters stay after forward). Stage 0 reduces and gathers gradients.
    Source: ZeRO, arXiv 1910.02054, section 7. `zero_bytes(1e9, 2, 3, num_microbatches=4)` -> 12e9.
    """
    num_gathers, num_reductions = zero_passes(stage, num_microbatches, bool(reshard_after_forward))
    grads = product(num_params, "grad_bytes_per_param", grad_bytes_per_param)
    params = product(num_params, "param_bytes_per_param", param_bytes_per_param)
    gathered = grads if stage == 0 else params
    return exact(
        num_gathers * all_gather_bytes(gathered, world_size) + num_reductions * reduce_scatter_bytes(grads, world_size)
    )


def fsdp_bytes(
    num_params: int | float,
    world_size: int,
    param_bytes_per_param: int | float = 2,
    grad_bytes_per_param: int | float = 2,
    num_microbatches: int = 1,
    reshard_after_forward: bool | int = True,
    reduce_every_microbatch: bool | int = True,
    num_kept_params: int | float = 0,
) -> int | float:
    """FSDP: gathers in every forward, again in every backward of what was freed, reduce-scatters the gradients.

    Without `reduce_every_microbatch` (no_sync, set_requires_gradient_sync) whole gradients pile up and are reduced
    once a step. `num_kept_params` of the parameters stay after forward though the others are freed: fully_shard's
    root, unless told otherwise. `fsdp_bytes(1e9, 8)` -> 3 x 7/8 x 2e9 = 5.25e9.
    Source: PyTorch FSDP, arXiv 2304.11277, section 3.2.2; torch 2.13, `fully_shard`, reshard_after_forward.
    """
    k = whole("num_microbatches", num_microbatches)
    psi = exact(quantity("num_params", num_params))
    kept = exact(quantity("num_kept_params", num_kept_params))
    if kept > psi:
        raise KitError(f"num_kept_params={kept} is more than num_params={psi}")
    params = product(psi, "param_bytes_per_param", param_bytes_per_param)
    freed = product(psi - kept if reshard_after_forward else 0, "param_bytes_per_param", param_bytes_per_param)
    grads = product(psi, "grad_bytes_per_param", grad_bytes_per_param)
    num_reductions = k if reduce_every_microbatch else 1
    return exact(
        k * (all_gather_bytes(params, world_size) + all_gather_bytes(freed, world_size))
        + num_reductions * reduce_scatter_bytes(grads, world_size)
    )


def hsdp_bytes(
    num_params: int | float,
    shard_size: int,
    num_replicas: int,
    param_bytes_per_param: int | float = 2,
    grad_bytes_per_param: int | float = 2,
    level: str = "all",
    num_microbatches: int = 1,
    reshard_after_forward: bool | int = True,
) -> int | float:
    """Sharded inside groups of g ranks, the shard's gradients all-reduced between r replicas of them.

    "inside": FSDP over g ranks. "between": 2(r-1)/r G/g for each rank, each microbatch. Nodes are the usual groups.
    `hsdp_bytes(1e9, 8, 4, level="between")` -> 2 x 3/4 x 2e9/8 = 0.375e9.
    Source: PyTorch FSDP, arXiv 2304.11277, section 3.2.2, which prints 2M(W-1)/(GW) for "between": close to this
    where W is far above G, and its F = W/G is a slip for F = G.
    """
    one_of("level", level, LEVELS)
    g, k = whole("shard_size", shard_size), whole("num_microbatches", num_microbatches)
    inside = fsdp_bytes(num_params, g, param_bytes_per_param, grad_bytes_per_param, k, reshard_after_forward)
    grads = product(num_params, "grad_bytes_per_param", grad_bytes_per_param)
    between = k * all_reduce_bytes(quotient(grads, g), num_replicas)
    return exact({"all": inside + between, "inside": inside, "between": between}[level])


def zero_plus_plus_bytes(
    num_params: int | float,
    quantized_weights: bool | int = True,
    secondary_partition: bool | int = True,
    quantized_gradients: bool | int = True,
    num_nodes: int | None = None,
    part: str = "total",
) -> int | float:
    """Bytes that leave one node in a step of ZeRO-3 with qwZ, hpZ and qgZ switched on or off; 16-bit parameters.

    M = 2Ψ. qwZ gathers int8 in forward (and in backward): M/2. hpZ keeps a copy in the node, so backward gathers
    nothing from outside. qgZ exchanges int4 gradients: M/4. All on: 0.75M against 3M. Scales of blocks are not
    counted. `part`: "forward", "backward", "gradients" or "total". With `num_nodes` each is times (nodes - 1)/nodes,
    which the paper drops. Per rank: divide by the ranks of a node. `zero_plus_plus_bytes(1e9)` -> 1.5e9.
    Source: ZeRO++, arXiv 2306.10209, table of communication volume.
    """
    copied = 0 if secondary_partition else None
    carried = _zero_plus_plus_part(num_params, quantized_weights, copied, quantized_gradients, part)
    return exact(carried) if num_nodes is None else reduce_scatter_bytes(carried, num_nodes)


def zero_plus_plus_inside_bytes(
    num_params: int | float,
    ranks_per_node: int,
    quantized_weights: bool | int = True,
    secondary_partition: bool | int = True,
    quantized_gradients: bool | int = True,
    part: str = "total",
) -> int | float:
    """Bytes that a rank sends to others of its node in a step of ZeRO-3 with qwZ, hpZ and qgZ switched on or off.

    (g-1)/g of what the node gathers or exchanges, g its ranks, M = 2Ψ: forward M/2 with qwZ, M without; backward M
    with hpZ, whose copy is of 16 bits, and as forward without; gradients M/4 with qgZ, M without. With the node's
    share of `zero_plus_plus_bytes` forward adds up to a ring over all ranks. Scales of blocks are not counted.
    `zero_plus_plus_inside_bytes(1e9, 8)` -> 7/8 x 1.75 x 2e9 = 3.0625e9.
    Source: derived from ZeRO++, arXiv 2306.10209, section 3; the paper counts between nodes only.
    """
    copied = 1 if secondary_partition else None
    carried = _zero_plus_plus_part(num_params, quantized_weights, copied, quantized_gradients, part)
    return all_gather_bytes(carried, ranks_per_node)


def _zero_plus_plus_part(
    num_params: int | float,
    quantized_weights: bool | int,
    copied: int | None,
    quantized_gradients: bool | int,
    part: str,
) -> int | float:
    """What a part's collectives carry, of M = 2 bytes a parameter; copied: M's in backward, None as in forward."""
    one_of("part", part, ("forward", "backward", "gradients", "total"))
    m_bytes = product(num_params, "bytes_per_param", 2)
    weights = quotient(m_bytes, 2) if quantized_weights else m_bytes
    parts = {
        "forward": weights,
        "backward": weights if copied is None else copied * m_bytes,
        "gradients": quotient(m_bytes, 4) if quantized_gradients else m_bytes,
    }
    return parts[part] if part != "total" else sum(parts.values())


def secondary_partition_bytes(num_params: int | float, ranks_per_node: int) -> int | float:
    """What hpZ keeps on a rank beyond ZeRO-3: 2Ψ over the ranks of a node (ZeRO++, 3.2). `(1e9, 8)` -> 0.25e9."""
    return quotient(product(num_params, "bytes_per_param", 2), whole("ranks_per_node", ranks_per_node))


def quantized_all_to_all_bytes(
    grad_bytes: int | float, ranks_per_node: int, compression: int | float = 4, num_hops: int = 2
) -> int | float:
    """qgZ's bytes between nodes for one node: M g/Z with one hop, M/Z with two (first inside the node).

    g ranks a node, Z-fold compression; (nodes - 1)/nodes is dropped, as in the paper. Source: ZeRO++, section 3.3.
    `quantized_all_to_all_bytes(1e9, 8)` -> 0.25e9.
    """
    hops = whole("num_hops", num_hops, at_most=2)
    z = quantity("compression", compression, at_least=1)
    times = whole("ranks_per_node", ranks_per_node) if hops == 1 else 1
    return exact(times * exact(quantity("grad_bytes", grad_bytes)) / z)


def diloco_bytes(
    num_params: int | float, num_replicas: int, num_inner_steps: int, bytes_per_param: int | float = 4
) -> int | float:
    """Bytes for each inner step between replicas: one all-reduce of outer gradients in H of them, 2(n-1)/n M/H.

    What a replica's own ranks say to each other is not counted. `diloco_bytes(1e9, 8, 500)` -> 14e6.
    Source: DiLoCo, arXiv 2311.08105, algorithm 1; H = 500 there.
    """
    outer = all_reduce_bytes(product(num_params, "bytes_per_param", bytes_per_param), num_replicas)
    return quotient(outer, whole("num_inner_steps", num_inner_steps))


def ddp_num_buckets(grad_bytes: int | float, bucket_cap_mb: float = 25, first_bucket_mb: float = 1) -> int:
    """At least so many buckets: the first of 1 MiB, the others of 25 MiB, as if tensors could be cut.

    Real buckets close at tensor borders. torch's MB is 2^20 bytes (`reducer.hpp`: kDefaultFirstBucketBytes,
    kDefaultBucketBytesCap). `ddp_num_buckets(101 * 2**20)` -> 5.
    """
    cap, first = (
        quantity("bucket_cap_mb", bucket_cap_mb) * 2**20, quantity("first_bucket_mb", first_bucket_mb) * 2**20,
    )  # fmt: skip
    if cap <= 0:
        raise KitError(f"bucket_cap_mb must be above 0, got {bucket_cap_mb!r}")
    left = quantity("grad_bytes", grad_bytes) - first
    has_first = first > 0 and left > -first
    return int(has_first) + max(0, -int(-left // cap))


def product(num: int | float, name: str, each: int | float) -> int | float:
    """num things of `each` bytes, exact where both are whole."""
    return exact(exact(quantity("num_params", num)) * exact(quantity(name, each)))
