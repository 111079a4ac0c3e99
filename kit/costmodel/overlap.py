"""When communication hides behind compute: inequalities in tokens, bandwidth and peak, latency left out.

A rank computes X FLOP/s, sends B bytes/s; an element is e bytes. N parameters cost 2N FLOPs a token forward and 4N
backward. In all of it (n-1)/n counts, unless `world_size` is left out: then it is 1.
Source of the approach: Austin et al., How to Scale Your Model (2025), chapter on training; here per rank.
"""

from __future__ import annotations

import math

from kit.costmodel.arguments import exact, quantity, whole
from kit.costmodel.collectives import all_reduce_bytes, link, zero_passes, zero_traffic_bytes
from kit.costmodel.training import positive
from kit.errors import KitError


def zero_step_s(
    num_params: int | float,
    world_size: int,
    stage: int,
    bytes_per_s: float,
    bytes_per_element: int | float = 2,
    num_microbatches: int = 1,
    reshard_after_forward: bool | int = True,
) -> float:
    """Seconds on the wire of one step of DDP (stage 0) or ZeRO, nothing hidden: `collectives.zero_traffic_bytes` / B.

    `zero_step_s(65e9, 8, 3, 1.25e9)` -> 390e9 x 7/8 / 1.25e9 = 273: 65B with ZeRO-3 over 10 Gb/s.
    """
    sent = zero_traffic_bytes(
        num_params, world_size, stage, bytes_per_element, num_microbatches, bool(reshard_after_forward)
    )
    return sent / link(0, bytes_per_s)[1]


def share(world_size: int | None) -> float:
    return 1.0 if world_size is None else 1 - 1 / whole("world_size", world_size)


def least_tokens_per_rank(
    stage: int,
    achieved_flops_per_s: int | float,
    bytes_per_s: float,
    param_bytes_per_param: int | float = 2,
    grad_bytes_per_param: int | float = 2,
    world_size: int | None = None,
) -> int:
    """Tokens of one microbatch of a rank from which data parallelism hides, whatever the model's size.

    Reductions run behind backward, gathers of stages 1 to 3 behind forward (and stage 3's second behind backward):
    p and g bytes of a parameter and its gradient. Stage 0: 2gX/(4B). Stages 1, 2: the larger of gX/(4B) and pX/(2B).
    Stage 3: the larger of pX/(2B) and (p+g)X/(4B).
    With 2-byte elements it is X/B for all. `least_tokens_per_rank(3, 400e12, 50e9)` -> 8000.
    """
    zero_passes(stage)
    per_byte = positive("achieved_flops_per_s", achieved_flops_per_s) / link(0, bytes_per_s)[1] * share(world_size)
    p = quantity("param_bytes_per_param", param_bytes_per_param)
    g = quantity("grad_bytes_per_param", grad_bytes_per_param)
    behind_forward = 0 if stage == 0 else p / 2
    behind_backward = {0: 2 * g, 1: g, 2: g, 3: p + g}[stage] / 4
    return math.ceil(max(behind_forward, behind_backward) * per_byte - 1e-6)


def largest_tensor_parallel(
    ffn_size: int,
    achieved_flops_per_s: int | float,
    bytes_per_s: float,
    bytes_per_element: int | float = 2,
    gated: bool | int = False,
) -> int:
    """The most ranks over which an MLP's forward computes no shorter than its all-reduce takes: 1 + 2fB/(eX).

    A token costs 4hf/t FLOPs (6hf/t gated: 1 + 3fB/(eX)) and 2(t-1)/t h e bytes; h cancels, and so do the tokens.
    `largest_tensor_parallel(28672, 400e12, 450e9, gated=True)` -> 49, and 6 over 50e9.
    """
    per_byte = positive("achieved_flops_per_s", achieved_flops_per_s) / link(0, bytes_per_s)[1]
    each = positive("bytes_per_element", bytes_per_element)
    return 1 + math.floor((3 if gated else 2) * whole("ffn_size", ffn_size) / (each * per_byte) + 1e-9)


def exposed_s(communication_s: int | float, compute_s: int | float, hidden: float = 1.0) -> int | float:
    """What is left to wait for when `hidden` of the compute can run beside: max(0, c - hidden x). `(3, 2)` -> 1."""
    if not 0 <= quantity("hidden", hidden) <= 1:
        raise KitError(f"hidden must be from 0 to 1, got {hidden!r}")
    left = quantity("communication_s", communication_s) - hidden * quantity("compute_s", compute_s)
    return exact(max(0, left))


def bucketed_all_reduce_s(
    grad_bytes: int | float, num_buckets: int, world_size: int, latency_s: float, bytes_per_s: float
) -> float:
    """k rings one after the other: k 2(n-1) a + 2(n-1)/n S/B. Many small buckets pay the latency every time.

    `bucketed_all_reduce_s(1e9, 40, 8, 10e-6, 25e9)` -> 40 x 14 x 10e-6 + 0.07 = 0.0756.
    """
    n, k = whole("world_size", world_size), whole("num_buckets", num_buckets)
    a, per_s = link(latency_s, bytes_per_s)
    return k * 2 * (n - 1) * a + all_reduce_bytes(grad_bytes, n) / per_s
