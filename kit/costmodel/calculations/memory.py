"""`calc memory`: what one rank holds: parameters, gradients, optimizer state, activations."""

from __future__ import annotations

from collections.abc import Mapping

from kit.costmodel import activations, memory, recipes
from kit.costmodel.arguments import evenly, exact, one_of, quantity, quotient, whole
from kit.costmodel.breakdown import Calculation, Input, Note, Number, Quantity, Working
from kit.costmodel.calculations.chosen import chosen, is_shape_given, memory_of, working_for
from kit.costmodel.calculations.parameters import rank_kv_heads_line, rank_parameters
from kit.costmodel.pipeline import SCHEDULES
from kit.costmodel.shapes import Shape
from kit.errors import KitError

RESULTS = (
    "rank_params", "params_bytes", "grads_bytes", "optimizer_bytes", "state_bytes", "activation_bytes",
    "recomputed_bytes", "gathered_bytes", "total_bytes", "memory_share",
)  # fmt: skip
SEQUENTIAL = Note(
    "Between two steps; buffers, workspaces and fragmentation are left out.",
    "指两步之间的常驻量；通信缓冲、workspace 和显存碎片不计。",
)
NO_ACTIVATIONS = Note("Activations are not counted: no seq is given.", "未给出 seq，激活不计。")


def calculate(
    model: str | None = None,
    figures: Mapping[str, Input] | None = None,
    params: Number | None = None,
    recipe: str = "zero",
    zero: int = 0,
    dp: int = 1,
    tp: int = 1,
    pp: int = 1,
    stage: int = 0,
    cp: int = 1,
    ep: int = 1,
    etp: int = 0,
    seq: int | None = None,
    microbatch: int = 1,
    microbatches: int = 1,
    recompute: str = "none",
    sp: bool = False,
    schedule: str = "1f1b",
    chunks: int = 1,
    profile: str | None = None,
) -> Calculation:
    """A named model, a shape (`chosen.FIGURES`) or a bare count of parameters; activations where `seq` is given.

    etp=0 means tp. Raises KitError where anything does not divide or is not modelled.
    """
    figures = figures or {}
    it = recipes.recipe_named(recipe)
    for name, count in (("microbatch", microbatch), ("microbatches", microbatches), ("chunks", chunks)):
        whole(name, count)
    one_of("recomputation", recompute, memory.RECOMPUTATIONS)
    one_of("schedule", schedule, SCHEDULES)
    ranks = {"tp": tp, "pp": pp, "ep": ep}
    inputs: dict[str, Input] = {"recipe": recipe, "zero": whole("zero_stage", zero, 0, 3), "dp": whole("dp", dp)}
    if params is not None:
        if is_shape_given(model, figures):
            raise KitError("params is a bare count, for a model without a shape; give one or the other")
        beyond = [name for name, value in {**ranks, "cp": cp, "seq": seq or 1}.items() if value != 1]
        if beyond:
            raise KitError(f"{', '.join(beyond)} need a shape, and params is a bare count", "name a model instead")
        work, notes = Working(), []
        inputs = {"params": exact(quantity("params", params)), **inputs}
        work.given(params=exact(params))
        dense: Number = work.line("dense_params", "params", params, "count")
        work.line("rank_params", "dense_params", dense, "count")
        experts: Number = 0
        shape = None
    else:
        model_chosen = chosen(model, figures)
        shape, work = model_chosen.shape, working_for(model_chosen.shape)
        notes = [model_chosen.note]
        inputs = {**model_chosen.inputs, **inputs, "tp": tp, "pp": pp, "cp": whole("cp", cp)}
        if pp > 1:
            inputs["stage"] = stage
        if shape.num_experts:
            inputs |= {"ep": ep, "etp": etp or tp}
        work.given(tp=tp, pp=pp, cp=cp, ep=ep, etp=etp or tp, stage=stage)
        dense, experts = rank_parameters(work, shape, tp, pp, stage, ep, etp or tp)
        total = "dense_params + expert_params" if experts else "dense_params"
        work.line("rank_params", total, dense + experts, "count")
    work.given(dp=dp, cp=cp)
    state = state_lines(work, recipe, zero, dp, cp, tp, dense, experts, ep * (etp or tp))
    if shape is not None and not shape.num_experts:
        expected = memory.rank_state_bytes_of(shape, recipe, zero, dp, tp, pp, stage, cp, ep, etp)
        assert abs(expected - state) <= 1e-9 * expected, "the lines are those of the function"
    held = ["state_bytes"]
    if shape is not None and seq is not None:
        inputs |= {"seq": seq, "microbatch": microbatch, "microbatches": microbatches, "recompute": recompute,
                   "sp": sp, "schedule": schedule}  # fmt: skip
        if schedule == "interleaved":
            inputs["chunks"] = chunks
        held += activation_lines(
            work, shape, seq, microbatch, tp, sp, recompute, cp, pp, microbatches, stage, schedule, chunks
        )
        notes.append(activation_note(shape))
    else:
        notes.append(NO_ACTIVATIONS)
    if shape is not None and zero == 3:
        held += gathered_line(work, shape, recipe)
    work.line("total_bytes", " + ".join(held), exact(sum(work.known[name] for name in held)), "B")
    results = work.quantities(RESULTS)
    if profile is not None:
        machine = memory_of(profile)
        inputs["profile"] = machine.name
        work.given(memory=machine.memory_bytes)
        share = work.line("memory_share", "total_bytes / memory", work.known["total_bytes"] / machine.memory_bytes,
                          "fraction")  # fmt: skip
        results["memory_share"] = Quantity(share, "fraction")
        notes.append(
            Note(f"Memory of one {machine.name}: {machine.memory_bytes / 1e9:g} GB, taken as 1e9 bytes each.",
                 f"{machine.name} 单卡显存 {machine.memory_bytes / 1e9:g} GB，按 1e9 字节计。")
        )  # fmt: skip
    lead = [recipe_note(recipe, it.convention, it.source), zero_note(zero)]
    return Calculation("memory", inputs, (*lead, *notes, SEQUENTIAL), results, tuple(work.lines))


def recipe_note(recipe: str, convention: str, source: str) -> Note:
    parts = {"params": "参数", "grads": "梯度", "main_grads": "fp32 梯度", "master": "主参数", "momentum": "一阶矩",
             "variance": "二阶矩"}  # fmt: skip
    counted = [f"{word} {recipes.part_bytes(recipe, part)}" for part, word in parts.items()
               if recipes.part_bytes(recipe, part)]  # fmt: skip
    total = recipes.part_bytes(recipe, "total")
    return Note(
        f"Recipe {recipe}, bytes for each parameter: {convention} = {total} ({source}).",
        f"口径 {recipe}，每个参数的字节数：{'、'.join(counted)}，共 {total}（{source}）。",
    )


def zero_note(zero: int) -> Note:
    return (
        Note("Without ZeRO every data-parallel rank holds all of it.", "不用 ZeRO，每个 DP rank 都存全量。"),
        Note("ZeRO-1 shards the optimizer state over dp x cp ranks.", "ZeRO-1 在 dp x cp 个 rank 间切分优化器状态。"),
        Note("ZeRO-2 shards optimizer state and gradients over dp x cp ranks.",
             "ZeRO-2 在 dp x cp 个 rank 间切分优化器状态和梯度。"),
        Note("ZeRO-3 shards optimizer state, gradients and parameters over dp x cp ranks.",
             "ZeRO-3 在 dp x cp 个 rank 间切分优化器状态、梯度和参数。"),
    )[zero]  # fmt: skip


def state_lines(
    work: Working, recipe: str, zero: int, dp: int, cp: int, tp: int, dense: Number, experts: Number, sharing: int
) -> Number:
    """Parameters, gradients and optimizer state; what ZeRO shards is over dp x cp, experts over fewer ranks."""
    replicas = dp * cp
    sharers = replicas
    if experts:
        names = "data_parallel x context_parallel x tensor_parallel", "expert_parallel x expert_tensor_parallel"
        sharers = evenly(names[0], replicas * tp, names[1], sharing)
    total: Number = 0
    for part, name, sharded_from in (("params", "params_bytes", 3), ("grads", "grads_bytes", 2),
                                     ("optimizer", "optimizer_bytes", 1)):  # fmt: skip
        each = recipes.part_bytes(recipe, part)
        is_sharded = zero >= sharded_from
        formula = f"{each} * dense_params" + (" / (dp * cp)" if is_sharded else "")
        value = quotient(exact(each * dense), replicas) if is_sharded else exact(each * dense)
        if experts:
            over = " / (dp * cp * tp / (ep * etp))" if is_sharded else ""
            formula += f" + {each} * expert_params{over}"
            value += quotient(exact(each * experts), sharers) if is_sharded else each * experts
        total += work.line(name, formula, value, "B")
    return work.line("state_bytes", "params_bytes + grads_bytes + optimizer_bytes", total, "B")


def activation_lines(
    work: Working, shape: Shape, seq: int, microbatch: int, tp: int, sp: bool, recompute: str, cp: int, pp: int,
    microbatches: int, stage: int, schedule: str, chunks: int,
) -> list[str]:  # fmt: skip
    """Lines up to `activation_bytes`, as `activations.stage_bytes_of`. Returns the names that count in the total."""
    total = activations.stage_bytes_of(
        shape, seq, microbatch, tp, sp, recompute, cp, pp, microbatches, stage, schedule, chunks
    )
    work.given(seq=seq, microbatch=microbatch, microbatches=microbatches, chunks=chunks)
    work.given(stage_layers=memory.layers_on_stage(shape.num_layers, pp, stage))
    work.line("tokens", "microbatch * seq / cp", microbatch * seq // cp, "count")
    if shape.gated:
        rank_kv_heads_line(work, shape, tp)
    each = activations.layer_bytes_of(shape, seq, microbatch, tp, sp, recompute, cp)
    work.line("layer_bytes", layer_formula(shape, sp, recompute), each, "B")
    flight = activations.microbatches_in_flight(pp, microbatches, schedule, stage, chunks)
    formula = {
        "gpipe": "microbatches",
        "1f1b": "min(pp - stage, microbatches)",
        "interleaved": "min((chunks - 1) * pp + 2 * (pp - stage) - 1, chunks * microbatches) / chunks",
    }[schedule]
    if schedule == "interleaved" and chunks == 1:
        formula = "min(pp - stage, microbatches)"
    work.line("in_flight", formula, flight, "count")
    parts, split = ["stage_layers * in_flight * layer_bytes"], " / tp" if sp else ""
    if stage == 0 and not shape.gated:
        parts.append(f"in_flight * tokens * hidden{split}")
    if stage == pp - 1:
        copies = "microbatches * " if schedule == "gpipe" else ""
        parts.append(f"{copies}(4 * tokens * hidden{split} + 4 * tokens * ceil(vocab / tp))")
    work.line("activation_bytes", " + ".join(parts), total, "B")
    if recompute != "full":
        return ["activation_bytes"]
    again = activations.layer_bytes_of(shape, seq, microbatch, tp, sp, "none", cp)
    work.line("recomputed_bytes", layer_formula(shape, sp, "none"), again, "B")
    return ["activation_bytes", "recomputed_bytes"]


def layer_formula(shape: Shape, sp: bool, recompute: str) -> str:
    """One layer and microbatch, in bytes."""
    one_of("recomputation", recompute, memory.RECOMPUTATIONS)
    if recompute == "full":
        return "2 * tokens * hidden"
    has_core = recompute == "none"
    if shape.gated:
        around = "8 * tokens * hidden" + (" / tp" if sp else "")
        kept = "4 * tokens * head_size * (heads / tp + rank_kv_heads) + 8 * tokens * ffn / tp"
        return f"{around} + {kept}" + (" + 4 * tokens * heads / tp" if has_core else "")
    core = " + 5 * heads * seq * tokens" if has_core else ""
    if sp:
        return f"(34 * tokens * hidden{core}) / tp"
    return f"10 * tokens * hidden + (24 * tokens * hidden{core}) / tp"


def activation_note(shape: Shape) -> Note:
    if shape.gated:
        return Note(
            "Activations in 16 bits, flash attention, no dropout: what autograd saves of a Llama block; fp32 logits.",
            "激活按 16 位、flash attention、无 dropout 计，为 autograd 保存的 Llama 层张量；logits 为 fp32。",
        )
    return Note(
        "Activations in 16 bits, 1-byte dropout masks, scores kept (arXiv 2205.05198, Table 2); fp32 logits.",
        "激活按 16 位、dropout mask 1 字节、保留 attention scores 计（arXiv 2205.05198，表 2）；logits 为 fp32。",
    )


def gathered_line(work: Working, shape: Shape, recipe: str) -> list[str]:
    """ZeRO-3: one layer computes while the next is gathered. Of layers with experts it is not modelled."""
    if shape.num_experts or "mlp_params" not in work.known:
        return []
    each = recipes.part_bytes(recipe, "params")
    value = 2 * each * (work.known["attention_params"] + work.known["mlp_params"])
    work.line("gathered_bytes", f"2 * {each} * (attention_params + mlp_params)", value, "B")
    return ["gathered_bytes"]
