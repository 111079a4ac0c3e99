"""Pipeline schedules in closed form: bubble, makespan, microbatches in flight. Communication is free here.

All stages take equal time. The bubble fraction is idle / makespan. Papers that print (p-1)/m, or (p-1)/(vm), mean
idle / ideal (PTD-P, arXiv 2104.04473, section 2.2); GPipe (arXiv 1811.06965, section 2.3) divides by the makespan.
Schedules that split the backward in two are in kit.costmodel.zero_bubble.
"""

from __future__ import annotations

import math
from fractions import Fraction

from kit.costmodel.arguments import exact, one_of, quantity, whole
from kit.errors import KitError

SCHEDULES = ("gpipe", "1f1b", "interleaved")


def bubble_fraction(num_stages: int, num_microbatches: int, schedule: str = "1f1b", num_chunks: int = 1) -> int | float:
    """Idle time of a rank over the makespan: (p-1)/(m+p-1), and (p-1)/(vm+p-1) with v chunks a rank.

    `bubble_fraction(4, 8)` -> 3/11. Raises KitError where the schedule cannot run: chunks without interleaving,
    or microbatches that the ranks do not divide with it.
    """
    idle, busy = slots(num_stages, num_microbatches, schedule, num_chunks)
    return exact(float(Fraction(idle, idle + busy)))


def bubble_over_ideal(
    num_stages: int, num_microbatches: int, schedule: str = "1f1b", num_chunks: int = 1
) -> int | float:
    """Idle time over the time without a bubble: (p-1)/m, and (p-1)/(vm) with v chunks a rank."""
    idle, busy = slots(num_stages, num_microbatches, schedule, num_chunks)
    return exact(float(Fraction(idle, busy)))


def makespan_s(
    num_stages: int,
    num_microbatches: int,
    forward_s: float,
    backward_s: float,
    schedule: str = "1f1b",
    num_chunks: int = 1,
) -> int | float:
    """(m + (p-1)/v)(t_f + t_b), where a rank needs t_f and t_b for one microbatch, all its chunks together."""
    idle, busy = slots(num_stages, num_microbatches, schedule, num_chunks)
    microbatch_s = quantity("forward_s", forward_s) + quantity("backward_s", backward_s)
    return exact((idle + busy) * microbatch_s / whole("num_chunks", num_chunks))


def microbatches_in_flight(num_stages: int, num_microbatches: int, schedule: str = "1f1b", stage: int = 0) -> int:
    """Microbatches whose activations a stage holds at its peak: m with GPipe, min(p - stage, m) with 1F1B."""
    slots(num_stages, num_microbatches, one_of("schedule", schedule, ("gpipe", "1f1b")), 1)
    behind = whole("num_stages", num_stages) - whole("stage", stage, at_least=0, at_most=num_stages - 1)
    return num_microbatches if schedule == "gpipe" else min(behind, num_microbatches)


def slots(num_stages: int, num_microbatches: int, schedule: str, num_chunks: int) -> tuple[int, int]:
    """(idle, busy) time of a rank, in forwards and backwards of one chunk."""
    p = whole("num_stages", num_stages)
    m = whole("num_microbatches", num_microbatches)
    v = whole("num_chunks", num_chunks)
    one_of("schedule", schedule, SCHEDULES)
    if schedule != "interleaved" and v > 1:
        raise KitError(f"num_chunks={v} needs schedule 'interleaved', got {schedule!r}")
    if schedule == "interleaved" and m % p:
        raise KitError(f"the interleaved schedule needs microbatches in multiples of the ranks, got {m} on {p}")
    return p - 1, v * m


def chunks_in_flight(num_stages: int, num_microbatches: int, num_chunks: int, rank: int = 0) -> int:
    """Forwards of one chunk that a rank of the interleaved schedule has done and not yet undone, at its peak.

    2(p - rank - 1) + (v-1)p warm up, and one more runs before the first backward; at most v m. A chunk holds 1/v of a
    rank's layers, so on rank 0 it is p (1 + (p-1)/(pv)) of 1F1B's microbatches. `chunks_in_flight(4, 8, 2)` -> 11.
    With one chunk it is 1F1B: p - rank. Sources: arXiv 2205.05198, section 4.2.3 (the factor); Megatron-LM,
    core/pipeline_parallel/schedules.py (the warm-up).
    """
    p, m, v = (
        whole("num_stages", num_stages),
        whole("num_microbatches", num_microbatches),
        whole("num_chunks", num_chunks),
    )
    behind = p - 1 - whole("rank", rank, at_least=0, at_most=p - 1)
    if v == 1:
        return microbatches_in_flight(p, m, "1f1b", rank)
    slots(p, m, "interleaved", v)
    return min(2 * behind + (v - 1) * p + 1, v * m)


def bubble_for_gpus(num_gpus: int, data_parallel: int, batch_in_microbatches: int) -> int | float:
    """PTD-P's (n-d)/b' over ideal, t = 1: n/d stages, b'/d microbatches each. `bubble_for_gpus(64, 8, 128)` -> 0.4375.

    Source: PTD-P, arXiv 2104.04473, section 3.3.1. Raises KitError where d does not divide.
    """
    n, d, b = (
        whole("num_gpus", num_gpus),
        whole("data_parallel", data_parallel),
        whole("batch_in_microbatches", batch_in_microbatches),
    )
    if n % d or b % d:
        raise KitError(f"data_parallel={d} must divide num_gpus={n} and batch_in_microbatches={b}")
    return bubble_over_ideal(n // d, b // d)


def microbatches_for_bubble(num_stages: int, bubble: float, num_chunks: int = 1) -> int:
    """The fewest microbatches whose bubble fraction (idle / makespan) is at most `bubble`. `(8, 0.1)` -> 63.

    (p-1)(1-f)/(vf), rounded up, with chunks to a multiple of p.
    """
    p, v = whole("num_stages", num_stages), whole("num_chunks", num_chunks)
    if not 0 < quantity("bubble", bubble) < 1:
        raise KitError(f"bubble must be between 0 and 1, got {bubble!r}")
    least = max(1, math.ceil((p - 1) * (1 - bubble) / (v * bubble) - 1e-9))
    return least if v == 1 else -(-least // p) * p
