"""Pipeline schedules in closed form: bubble, makespan, microbatches in flight. Communication is free here.

All stages take equal time. The bubble fraction is idle / makespan. Papers that print (p-1)/m, or (p-1)/(vm), mean
idle / ideal (PTD-P, arXiv 2104.04473, section 2.2); GPipe (arXiv 1811.06965, section 2.3) divides by the makespan.
"""

from __future__ import annotations

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
