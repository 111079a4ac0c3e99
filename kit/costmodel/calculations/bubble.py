"""`calc bubble`: the idle time of a pipeline schedule, beside that of every other one."""

from __future__ import annotations

from kit.costmodel import pipeline, zero_bubble
from kit.costmodel.arguments import exact, one_of, whole
from kit.costmodel.breakdown import Calculation, Input, Note, Number, Table, Working
from kit.costmodel.training import positive
from kit.errors import KitError

RESULTS = (
    "bubble_fraction",
    "bubble_over_ideal",
    "bubble_s",
    "busy_s",
    "makespan_s",
    "in_flight",
    "microbatches_needed",
)
MORE_CHUNKS = 2  # of the interleaved schedule where it is only compared with

BUBBLES = {
    "gpipe": "(pp - 1) * (forward + input_grad + weight_grad)",
    "1f1b": "(pp - 1) * (forward + input_grad + weight_grad)",
    "interleaved": "(pp - 1) * (forward + input_grad + weight_grad) / chunks",
    "zb_h1": "max(0, (pp - 1) * (forward + input_grad - weight_grad))",
    "zb_h2": "max(0, (pp - 1) * (forward + input_grad - 2 * weight_grad))",
    "zbv": "0",
    "dualpipe": "max(0, (pp / 2 - 1) * (forward + 2 * (input_grad + weight_grad) - 3 * weight_grad))",
}
IN_FLIGHT = {
    "gpipe": "microbatches",
    "1f1b": "min(pp - rank, microbatches)",
    "interleaved": "min((chunks - 1) * pp + 2 * (pp - rank) - 1, chunks * microbatches) / chunks",
    "zb_h1": "pp",
    "zb_h2": "2 * pp - 1",
    "zbv": "pp",
    "dualpipe": "pp + 1",
}
CONVENTION = (
    Note(
        "Bubble fraction = idle / makespan; papers that print (p-1)/m mean idle / ideal, the second figure.",
        "bubble 比例 = 空闲 / 总时长；论文里的 (p-1)/m 是空闲 / 理想时长，即第二个数。",
    ),
    Note(
        "Stages take equal time, communication is free; times are of one microbatch on one rank, all its chunks.",
        "各 stage 耗时相同，通信不计；时间指一个 rank 处理一个 microbatch（含其全部 chunk）。",
    ),
    Note(
        "In flight: microbatches' worth of a rank's activations at its peak.",
        "在途数：峰值时一个 rank 保存的激活，以 microbatch 计。",
    ),
)


def calculate(
    pp: int,
    microbatches: int,
    schedule: str = "1f1b",
    chunks: int = 1,
    rank: int = 0,
    forward: Number | None = None,
    backward: Number | None = None,
    weight_grad: Number | None = None,
    target: float | None = None,
) -> Calculation:
    """Times in seconds; without them a forward is one slot and a backward two, of which the weights' gradient is one.

    backward=None is twice forward, weight_grad=None half of backward. `target`: a bubble fraction to stay below.
    """
    one_of("schedule", schedule, zero_bubble.SCHEDULES)
    unit = "s" if forward is not None else "slots"
    if forward is None and (backward is not None or weight_grad is not None):
        raise KitError("backward and weight_grad need forward beside them", "all three in seconds, or none of them")
    f = positive("forward", 1 if forward is None else forward)
    both = positive("backward", 2 * f if backward is None else backward)
    w = positive("weight_grad", exact(both / 2) if weight_grad is None else weight_grad)
    if w >= both:
        raise KitError(f"weight_grad={w} is a part of backward={both} and must be below it")
    i = exact(both - w)
    inputs: dict[str, Input] = {"pp": pp, "microbatches": microbatches, "schedule": schedule}
    if schedule == "interleaved":
        inputs["chunks"] = chunks
    inputs |= {"rank": rank, "forward": f, "input_grad": i, "weight_grad": w}
    work = Working()
    work.given(pp=pp, microbatches=microbatches, chunks=chunks, rank=rank, forward=f, input_grad=i, weight_grad=w)
    part = zero_bubble.bubble_fraction(schedule, pp, microbatches, f, i, w, chunks)
    idle = work.line("bubble_s", BUBBLES[schedule], zero_bubble.bubble_s(schedule, pp, f, i, w, chunks), unit)
    busy = work.line("busy_s", "microbatches * (forward + input_grad + weight_grad)", microbatches * (f + i + w), unit)
    work.line("makespan_s", "bubble_s + busy_s", idle + busy, unit)
    work.line("bubble_fraction", "bubble_s / makespan_s", part, "fraction")
    work.line("bubble_over_ideal", "bubble_s / busy_s", idle / busy, "fraction")
    peak = zero_bubble.peak_activations(schedule, pp, microbatches, rank, chunks)
    flight = "1f1b" if schedule == "interleaved" and chunks == 1 else schedule
    work.line("in_flight", IN_FLIGHT[flight], peak, "count")
    if target is not None:
        one_of("schedule (with a target)", schedule, pipeline.SCHEDULES)
        inputs["target"] = target
        least = pipeline.microbatches_for_bubble(pp, target, chunks)
        work.given(target=target)
        formula = "max(1, ceil((pp - 1) * (1 - target) / (chunks * target) - 1e-9))"
        work.line("microbatches_needed", formula if chunks == 1 else f"ceil({formula} / pp) * pp", least, "count")
    table = compared(pp, microbatches, rank, f, i, w, chunks if schedule == "interleaved" else MORE_CHUNKS, unit)
    return Calculation("bubble", inputs, CONVENTION, work.quantities(RESULTS), tuple(work.lines), table)


def compared(pp: int, microbatches: int, rank: int, f: Number, i: Number, w: Number, chunks: int, unit: str) -> Table:
    """Every schedule that can run so."""
    rows: list[tuple[Number | str, ...]] = []
    for name in zero_bubble.SCHEDULES:
        v = chunks if name == "interleaved" else 1
        try:
            idle = zero_bubble.bubble_s(name, pp, f, i, w, v)
            part = zero_bubble.bubble_fraction(name, pp, microbatches, f, i, w, v)
            held = zero_bubble.peak_activations(name, pp, microbatches, whole("rank", rank, 0), v)
        except KitError:  # it cannot run with these figures; the one that was asked for has been told why
            continue
        shown = f"{name} x{v}" if name == "interleaved" else name
        rows.append((shown, part, idle, held))
    return Table(
        {"schedule": "word", "bubble_fraction": "fraction", "bubble_s": unit, "in_flight": "count"}, tuple(rows)
    )
