"""`calc time`: a training run, its cost and its checkpoints; or one collective on a profile's links."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kit import hardware
from kit.costmodel import collectives, flops, roofline, shapes, training
from kit.costmodel.arguments import exact, one_of, quantity, whole
from kit.costmodel.breakdown import Calculation, Input, Note, Number, Table, Working
from kit.costmodel.calculations.chosen import chosen, is_shape_given
from kit.costmodel.memory import RECOMPUTATIONS
from kit.errors import KitError

RESULTS = (
    "train_flops", "cluster_flops_per_s", "train_s", "gpu_hours", "cost", "num_steps", "step_s", "tokens_per_s",
    "checkpoint_interval_s", "goodput", "wall_s",
)  # fmt: skip

CHECKPOINTS = Note(
    "Checkpoints stop training; Young's interval, failures to first order, MTBF of the whole job.",
    "写 checkpoint 时训练暂停；间隔按 Young 公式，故障取一阶近似，MTBF 指整个作业。",
)


def training_run(
    tokens: Number,
    gpus: int,
    model: str | None = None,
    figures: Mapping[str, Input] | None = None,
    params: Number | None = None,
    profile: str = "h100",
    dtype: str = "bf16",
    mfu: float | None = None,
    achieved: Number | None = None,
    recompute: str = "none",
    price: Number | None = None,
    batch: int | None = None,
    seq: int | None = None,
    save: Number | None = None,
    mtbf: Number | None = None,
    restart: Number = 0,
) -> Calculation:
    """Seconds of a run at an MFU of the profile's peak, or at `achieved` FLOP/s of each GPU (PTD-P's count).

    batch (sequences) and seq: also steps; save and mtbf (of the whole job, seconds): also checkpoints and goodput.
    """
    figures = figures or {}
    notes = []
    if params is not None:
        if is_shape_given(model, figures):
            raise KitError("params is a bare count; give it or a model")
        inputs: dict[str, Input] = {"params": exact(params)}
    else:
        it = chosen(model, figures)
        notes.append(it.note)
        inputs = {"model": it.name} if it.name else dict(it.inputs)
        params = shapes.params_of(it.shape, "active")
        inputs["params"] = params
    n, d = exact(training.positive("params", params)), exact(training.positive("tokens", tokens))
    inputs |= {"tokens": d, "gpus": whole("gpus", gpus)}
    work = Working()
    work.given(params=n, tokens=d, gpus=gpus)
    notes.append(rate_lines(work, inputs, n, d, gpus, profile, dtype, mfu, achieved, recompute))
    seconds = work.known["train_s"]
    work.line("tokens_per_s", "tokens / train_s", d / seconds, "tokens/s")
    work.line("gpu_hours", "train_s * gpus / 3600", training.gpu_hours(seconds, gpus), "count")
    if price is not None:
        inputs["price"] = price
        work.given(price=price)
        work.line("cost", "gpu_hours * price", training.train_cost(seconds, gpus, price), "count")
    if (batch is None) != (seq is None):
        raise KitError("the number of steps needs both batch (sequences) and seq")
    if batch is not None and seq is not None:
        inputs |= {"batch": batch, "seq": seq}
        work.given(batch=batch, seq=seq)
        steps = work.line("num_steps", "ceil(tokens / (batch * seq))", training.num_steps(d, batch, seq), "count")
        work.line("step_s", "train_s / num_steps", seconds / steps, "s")
    if (save is None) != (mtbf is None):
        raise KitError("checkpoints need both save, the seconds of one, and mtbf, of the whole job")
    if save is not None and mtbf is not None:
        checkpoint_lines(work, inputs, save, mtbf, restart)
        notes.append(CHECKPOINTS)
    return Calculation("time", inputs, tuple(notes), work.quantities(RESULTS), tuple(work.lines))


def rate_lines(
    work: Working, inputs: dict[str, Input], n: Number, d: Number, gpus: int, profile: str, dtype: str,
    mfu: float | None, achieved: Number | None, recompute: str,
) -> Note:  # fmt: skip
    """FLOPs of the run, the rate of all GPUs, and the time."""
    if (mfu is None) == (achieved is None):
        raise KitError("how fast? give mfu, a fraction of the peak, or achieved, the FLOP/s of each GPU", "--mfu 0.4")
    if achieved is not None:
        one_of("recomputation", recompute, RECOMPUTATIONS)
        each = 8 if recompute == "full" else 6
        inputs |= {"achieved": achieved, "recompute": recompute}
        work.given(achieved=achieved)
        seconds = training.train_time_s(n, d, gpus, achieved, recompute)
        work.line("train_flops", f"{each} * params * tokens", flops.training_flops(n, d, each), "FLOP")
        work.line("cluster_flops_per_s", "gpus * achieved", gpus * achieved, "FLOP/s")
        work.line("train_s", "train_flops / cluster_flops_per_s", seconds, "s")
        return Note("6ND, 8ND with full recomputation, which achieved FLOP/s then include (PTD-P, equation 4).",
                    "6ND；full recompute 时为 8ND，此时 achieved 也含重算（PTD-P，式 4）。")  # fmt: skip
    assert mfu is not None
    if recompute != "none":
        raise KitError("an MFU leaves out what is recomputed; give achieved with recompute, or mfu alone")
    peak = roofline.peak_flops_per_s(profile, dtype)
    inputs |= {"mfu": mfu, "profile": profile, "dtype": dtype}
    work.given(mfu=mfu, peak=peak)
    seconds = training.train_time_from_mfu_s(n, d, gpus, peak, mfu)
    work.line("train_flops", "6 * params * tokens", flops.training_flops(n, d), "FLOP")
    work.line("cluster_flops_per_s", "gpus * peak * mfu", gpus * peak * mfu, "FLOP/s")
    work.line("train_s", "train_flops / cluster_flops_per_s", seconds, "s")
    return Note(
        f"6ND at an MFU of the peak in {dtype}, {peak / 1e12:g} TFLOP/s a GPU without sparsity.",
        f"6ND，按 {dtype} 峰值（单卡 {peak / 1e12:g} TFLOP/s，不含稀疏）乘 MFU 计。",
    )


def checkpoint_lines(work: Working, inputs: dict[str, Input], save: Number, mtbf: Number, restart: Number) -> None:
    inputs |= {"save": training.positive("save", save), "mtbf": mtbf, "restart": quantity("restart", restart)}
    work.given(save=save, mtbf=mtbf, restart=restart)
    every = training.checkpoint_interval_s(save, mtbf)
    work.line("checkpoint_interval_s", "sqrt(2 * save * mtbf)", every, "s")
    kept = training.goodput(every, save, mtbf, restart)
    lost = "save / (checkpoint_interval_s + save)"
    redone = "((checkpoint_interval_s + save) / 2 + restart) / mtbf"
    work.line("goodput", f"max(0, 1 - {lost} - {redone})", kept, "fraction")
    if kept > 0:
        work.line("wall_s", "train_s / goodput", work.known["train_s"] / kept, "s")


# One collective.

FORMULAS = {
    ("all_reduce", "ring"): "2 * (ranks - 1) * latency + 2 * (ranks - 1) / ranks * bytes / bandwidth",
    ("all_reduce", "halving_doubling"): "2 * levels * latency + 2 * (ranks - 1) / ranks * bytes / bandwidth",
    ("all_reduce", "binomial_tree"): "2 * levels * (latency + bytes / bandwidth)",
    ("all_reduce", "double_tree"): "2 * levels * latency + 2 * bytes / bandwidth",
    ("all_reduce", "hierarchical"): (
        "2 * ((ranks_per_node - 1) * inside_latency + (ranks_per_node - 1) / ranks_per_node * bytes / inside_bandwidth)"
        " + 2 * (nodes - 1) * latency + 2 * (nodes - 1) / nodes * bytes / ranks_per_node / bandwidth"
    ),
    ("broadcast", "ring"): "(ranks - 1) * latency + bytes / bandwidth",
    ("broadcast", "binomial_tree"): "levels * (latency + bytes / bandwidth)",
}
OTHERS = "(ranks - 1) * latency + (ranks - 1) / ranks * bytes / bandwidth"
ALGORITHMS = (*collectives.ALL_REDUCE_ALGORITHMS, "hierarchical")


def collective(
    operation: str, num_bytes: Number, ranks: int, profile: str = "h100", algorithm: str = "ring"
) -> Calculation:
    """Seconds of one collective of `num_bytes`, the full buffer, with ranks that fill nodes in order."""
    one_of("collective", operation, collectives.OPERATIONS)
    one_of("algorithm", algorithm, ALGORITHMS)
    seconds = collectives.on_profile_s(operation, num_bytes, ranks, profile, algorithm)
    machine = hardware.profile(profile)
    per_node = min(machine.ranks_per_node or ranks, ranks)
    is_inside = ranks <= (machine.ranks_per_node or ranks)
    tier = machine.between if algorithm == "hierarchical" or not is_inside else machine.inside
    work = Working()
    work.given(
        bytes=num_bytes, ranks=ranks, latency=tier.latency_s, bandwidth=tier.bytes_per_s, ranks_per_node=per_node,
        inside_latency=machine.inside.latency_s, inside_bandwidth=machine.inside.bytes_per_s, nodes=ranks // per_node,
        levels=(ranks - 1).bit_length(),
    )  # fmt: skip
    formula = FORMULAS.get((operation, algorithm), OTHERS) if ranks > 1 else "0 * bytes"
    work.line("collective_s", formula, seconds, "s")
    if seconds > 0:
        bus = collectives.bus_bandwidth(operation, num_bytes, seconds, ranks)
        work.given(bus_factor=collectives.bus_factor(operation, ranks))
        work.line("algorithm_bytes_per_s", "bytes / collective_s", num_bytes / seconds, "B/s")
        work.line("bus_bytes_per_s", "bytes / collective_s * bus_factor", bus, "B/s")
    inputs: dict[str, Input] = {"collective": operation, "bytes": exact(num_bytes), "ranks": ranks,
                                "algorithm": algorithm, "profile": machine.name}  # fmt: skip
    rows: list[tuple[Number | str, ...]] = []
    for name in ALGORITHMS if operation == "all_reduce" else ():
        try:
            rows.append((name, collectives.on_profile_s(operation, num_bytes, ranks, profile, name)))
        except KitError:  # it cannot run on so many ranks
            continue
    table = Table({"algorithm": "word", "collective_s": "s"}, tuple(rows)) if rows else None
    note = Note(
        "Bytes are the full buffer; a message costs latency + bytes / bandwidth, at the pace of the slowest link.",
        "字节数指完整 buffer；每条消息耗时为 延迟 + 字节数 / 带宽，按最慢的链路计。",
    )
    results = work.quantities(("collective_s", "algorithm_bytes_per_s", "bus_bytes_per_s"))
    return Calculation("time", inputs, (note, link_note(machine.name, tier.latency_s, tier.bytes_per_s)), results,
                       tuple(work.lines), table)  # fmt: skip


def link_note(name: str, latency_s: float, bytes_per_s: float) -> Note:
    if math.isinf(bytes_per_s):
        return Note(f"Links of {name} cost nothing.", f"{name} 的链路不计耗时。")
    return Note(
        f"Slowest link of {name} here: {latency_s * 1e6:g} us, {bytes_per_s / 1e9:g} GB/s in one direction.",
        f"此处 {name} 最慢的链路：{latency_s * 1e6:g} us，单向 {bytes_per_s / 1e9:g} GB/s。",
    )
