"""`calc gemm`: the roofline of one matrix product, or of every product of a layer."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kit import hardware
from kit.costmodel import formats, roofline
from kit.costmodel.arguments import one_of, whole
from kit.costmodel.breakdown import Calculation, Input, Note, Number, Quantity, Table, Working
from kit.costmodel.calculations.chosen import chosen
from kit.hardware import Profile

RESULTS = ("flops", "bytes", "intensity", "ridge_point", "compute_s", "memory_s", "time_s", "attainable_flops_per_s")
CONVENTION = Note(
    "Each operand read once and the result written once; time is the longer of FLOPs / peak and bytes / bandwidth.",
    "每个操作数读一次、结果写一次；时间取 FLOPs / 峰值 与 字节数 / 带宽 中较长者。",
)


def calculate(m: int, n: int, k: int, dtype: str = "bf16", profile: str = "h100", count: int = 1) -> Calculation:
    """`count` products of [m, k] by [k, n] on one GPU."""
    it = roofline.gemm(m, n, k, dtype, profile, count)
    machine = hardware.profile(profile)
    work = machine_known(machine, dtype)
    work.given(m=m, n=n, k=k, count=count, element=formats.bytes_per_element(dtype))
    work.line("flops", "2 * m * n * k * count", it.flops, "FLOP")
    work.line("bytes", "(m * k + k * n + m * n) * element * count", it.bytes, "B")
    work.line("intensity", "flops / bytes", it.intensity, "FLOP/B")
    work.line("ridge_point", "peak / bandwidth", roofline.ridge_point(profile, dtype), "FLOP/B")
    time_lines(work, it, "flops", "bytes")
    work.line("attainable_flops_per_s", "flops / time_s", it.flops / it.time_s, "FLOP/s")
    results = {**work.quantities(RESULTS), "bound_by": Quantity(it.bound_by, "word")}
    inputs: dict[str, Input] = {"m": m, "n": n, "k": k, "count": count, "dtype": dtype, "profile": machine.name}
    return Calculation("gemm", inputs, (CONVENTION, machine_note(machine, dtype)), results, tuple(work.lines))


def layer(
    model: str | None,
    figures: Mapping[str, Input],
    batch: int = 1,
    seq: int = 1,
    phase: str = "prefill",
    dtype: str = "bf16",
    profile: str = "h100",
    tp: int = 1,
    flash: bool = True,
    causal: bool = False,
) -> Calculation:
    """The products of a model's last layer on one of `tp` ranks, one after another."""
    it = chosen(model, figures)
    one_of("phase", phase, roofline.PHASES)
    costs = roofline.layer(it.shape, batch, seq, phase, dtype, profile, whole("tp", tp), flash, causal)
    machine = hardware.profile(profile)
    work = machine_known(machine, dtype)
    for row in costs:
        work.given(**{f"{row.name}_flops": row.flops, f"{row.name}_bytes": row.bytes})
        formula = f"max({row.name}_flops / peak, {row.name}_bytes / bandwidth)"
        work.line(f"{row.name}_s", formula, row.time_s, "s")
    whole_layer = roofline.total(costs)
    work.line("flops", " + ".join(f"{row.name}_flops" for row in costs), whole_layer.flops, "FLOP")
    work.line("bytes", " + ".join(f"{row.name}_bytes" for row in costs), whole_layer.bytes, "B")
    work.line("intensity", "flops / bytes", whole_layer.intensity, "FLOP/B")
    work.line("ridge_point", "peak / bandwidth", roofline.ridge_point(profile, dtype), "FLOP/B")
    work.line("time_s", " + ".join(f"{row.name}_s" for row in costs), sum(row.time_s for row in costs), "s")
    work.line("attainable_flops_per_s", "flops / time_s", whole_layer.flops / work.known["time_s"], "FLOP/s")
    inputs: dict[str, Input] = {
        **it.inputs, "batch": batch, "seq": seq, "phase": phase, "dtype": dtype, "tp": tp, "flash": flash,
        "causal": causal, "profile": machine.name,
    }  # fmt: skip
    rows: list[tuple[Number | str, ...]] = [
        (row.name, row.flops, row.bytes, row.intensity, row.time_s, row.bound_by) for row in costs
    ]
    units = {"product": "word", "flops": "FLOP", "bytes": "B", "intensity": "FLOP/B", "time_s": "s", "bound_by": "word"}
    notes = (it.note, CONVENTION, phase_note(phase), machine_note(machine, dtype))
    return Calculation("gemm", inputs, notes, work.quantities(RESULTS), tuple(work.lines), Table(units, tuple(rows)))


def machine_known(machine: Profile, dtype: str) -> Working:
    work = Working()
    work.given(peak=roofline.peak_flops_per_s(machine, dtype), bandwidth=machine.memory_bytes_per_s)
    return work


def time_lines(work: Working, it: roofline.Cost, num_flops: str, num_bytes: str) -> None:
    work.line("compute_s", f"{num_flops} / peak", it.compute_s, "s")
    work.line("memory_s", f"{num_bytes} / bandwidth", it.memory_s, "s")
    work.line("time_s", "max(compute_s, memory_s)", it.time_s, "s")


def phase_note(phase: str) -> Note:
    return {
        "prefill": Note("A forward over batch x seq tokens of one layer, on one rank; no communication.",
                        "一层 forward，batch x seq 个 token，单个 rank，通信不计。"),
        "training": Note("Forward and backward of one layer, on one rank; no communication.",
                         "一层的 forward 与 backward，单个 rank，通信不计。"),
        "decode": Note("One new token a sequence attends to seq tokens in the cache; one layer, one rank.",
                       "每个序列解码一个新 token，attention 读 cache 中 seq 个 token；一层，单个 rank。"),
    }[phase]  # fmt: skip


def machine_note(machine: Profile, dtype: str) -> Note:
    peak = roofline.peak_flops_per_s(machine, dtype) / 1e12
    has_limit = math.isfinite(machine.memory_bytes_per_s)
    memory = f"{machine.memory_bytes_per_s / 1e9:g} GB/s"
    return Note(
        f"{machine.name}: {peak:g} TFLOP/s in {dtype} without sparsity, memory {memory if has_limit else 'for free'}.",
        f"{machine.name}：{dtype} 峰值 {peak:g} TFLOP/s（不含稀疏），显存带宽{f' {memory}' if has_limit else '不限'}。",
    )
