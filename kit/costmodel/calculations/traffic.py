"""`calc traffic`: bytes that one rank sends in a training step, by each kind of parallelism."""

from __future__ import annotations

from collections.abc import Mapping

from kit.costmodel import memory, model_traffic, traffic
from kit.costmodel.arguments import evenly, exact, one_of, quantity, quotient, whole
from kit.costmodel.breakdown import Calculation, Input, Note, Number, Working
from kit.costmodel.calculations.chosen import chosen, is_shape_given, working_for
from kit.costmodel.calculations.parameters import rank_kv_heads_line, rank_parameters
from kit.costmodel.collectives import zero_passes
from kit.costmodel.shapes import Shape
from kit.errors import KitError

STRATEGIES = ("ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp", "zero++")
CP_METHODS = ("ring", "all_gather", "ulysses")
RESULTS = ("dp_bytes", "dp_inside_bytes", "dp_between_bytes", "tp_bytes", "pp_bytes", "cp_bytes", "ep_bytes",
           "total_bytes")  # fmt: skip
CONVENTION = (
    Note(
        "Bytes that one rank sends in a step: all-reduce 2(n-1)/n S, all-gather, reduce-scatter and all-to-all "
        "(n-1)/n S, S the full buffer. Papers that print 2M or 3M drop (n-1)/n.",
        "指一个 rank 每步发送的字节数：all-reduce 2(n-1)/n S，all-gather、reduce-scatter、all-to-all (n-1)/n S，"
        "S 为完整 buffer。论文写的 2M、3M 略去了 (n-1)/n。",
    ),
    Note("Embedding, output matrix and loss send more beside it, which is not counted.",
         "embedding、输出矩阵和 loss 的通信不计。"),
)  # fmt: skip


def calculate(
    model: str | None = None,
    figures: Mapping[str, Input] | None = None,
    params: Number | None = None,
    strategy: str = "ddp",
    dp: int = 1,
    param_bytes: Number = 2,
    grad_bytes: Number = 2,
    sync_every: str | None = None,
    keep_params: bool = False,
    shard_size: int | None = None,
    ranks_per_node: int = 8,
    tp: int = 1,
    sp: bool = False,
    pp: int = 1,
    stage: int | None = None,
    chunks: int = 1,
    cp: int = 1,
    cp_method: str = "ring",
    ep: int = 1,
    seq: int | None = None,
    microbatch: int = 1,
    microbatches: int = 1,
    element_bytes: Number = 2,
    recompute: str = "none",
) -> Calculation:
    """DP over dp x cp ranks that hold the same parameters; TP, CP, PP and EP need a shape and `seq`.

    stage=None is a stage in the middle where there is one. `sync_every`: step (DDP's default) or microbatch (FSDP's).
    """
    figures = figures or {}
    one_of("strategy", strategy, STRATEGIES)
    one_of("context-parallel method", cp_method, CP_METHODS)
    one_of("recomputation", recompute, memory.RECOMPUTATIONS)
    for name, each in (("param_bytes", param_bytes), ("grad_bytes", grad_bytes), ("element_bytes", element_bytes)):
        quantity(name, each)
    for name, count in (("microbatch", microbatch), ("chunks", chunks), ("ranks_per_node", ranks_per_node)):
        whole(name, count)
    if shard_size is not None and strategy != "hsdp":
        raise KitError(f"shard_size is for hsdp, got strategy {strategy}")
    at = whole("stage", min(1, pp - 1) if stage is None else stage, 0, whole("pp", pp) - 1)
    inputs: dict[str, Input] = {"strategy": strategy, "dp": whole("dp", dp), "param_bytes": param_bytes,
                                "grad_bytes": grad_bytes,
                                "microbatches": whole("microbatches", microbatches)}  # fmt: skip
    experts: Number = 0
    shape: Shape | None = None
    notes = []
    if params is not None:
        if is_shape_given(model, figures):
            raise KitError("params is a bare count; give it or a model")
        beyond = [name for name, value in {"tp": tp, "pp": pp, "cp": cp, "ep": ep}.items() if value != 1]
        if beyond:
            raise KitError(f"{', '.join(beyond)} need a shape, and params is a bare count", "name a model instead")
        work = Working()
        dense: Number = exact(quantity("params", params))
        inputs = {"params": dense, **inputs}
        work.given(params=dense, cp=1)
        work.line("dense_params", "params", dense, "count")
    else:
        it = chosen(model, figures)
        shape, work = it.shape, working_for(it.shape)
        notes.append(it.note)
        inputs = {**it.inputs, **inputs, "tp": whole("tp", tp), "pp": pp, "cp": whole("cp", cp)}
        work.given(tp=tp, ep=ep, etp=tp, cp=cp)
        dense, experts = rank_parameters(work, shape, tp, pp, at, ep, tp)
        if shape.num_experts:
            inputs["ep"] = ep
    work.given(dp=dp, microbatches=microbatches, param_bytes=param_bytes, grad_bytes=grad_bytes)
    sent = data_lines(work, inputs, strategy, dense, experts, dp * cp, sync_every, keep_params, shard_size,
                      ranks_per_node, tp, ep)  # fmt: skip
    if shape is not None and max(tp, pp, cp, ep) > 1:
        if seq is None:
            raise KitError("tp, pp, cp and ep send activations: give seq")
        inputs |= {"seq": whole("seq", seq), "microbatch": whole("microbatch", microbatch),
                   "element_bytes": element_bytes, "recompute": recompute, "sp": sp}  # fmt: skip
        evenly("seq", seq, "context_parallel", cp)
        work.given(seq=seq, microbatch=microbatch, element=element_bytes, pp=pp, chunks=chunks)
        work.given(stage_layers=memory.layers_on_stage(shape.num_layers, pp, at))
        size = (seq // cp, microbatch, shape.hidden_size)
        sent += [tensor_line(work, size, tp, sp, recompute, element_bytes, microbatches)] if tp > 1 else []
        if pp > 1:
            inputs |= {"stage": at, "chunks": chunks}
            sent.append(pipeline_line(work, size, tp if sp else 1, pp, at, chunks, microbatches, element_bytes))
        if cp > 1:
            inputs["cp_method"] = cp_method
            sent.append(context_line(work, shape, seq, microbatch, tp, cp, cp_method, element_bytes, microbatches))
        if ep > 1:
            sent.append(
                expert_line(work, shape, seq // cp * microbatch, tp if sp else 1, ep, element_bytes, microbatches)
            )
    work.line("total_bytes", " + ".join(sent), sum(work.known[name] for name in sent), "B")
    return Calculation("traffic", inputs, (*notes, *CONVENTION), work.quantities(RESULTS), tuple(work.lines))


def data_lines(
    work: Working, inputs: dict[str, Input], strategy: str, dense: Number, experts: Number, n: int,
    sync_every: str | None, keep_params: bool, shard_size: int | None, ranks_per_node: int, tp: int, ep: int,
) -> list[str]:  # fmt: skip
    """Lines up to `dp_bytes` (or what is inside and between groups); experts are shared by fewer ranks."""
    k = int(work.known["microbatches"])
    if sync_every is not None:
        one_of("sync_every", sync_every, ("step", "microbatch"))
        if strategy not in ("ddp", "fsdp"):
            raise KitError(f"sync_every is for ddp and fsdp; {strategy} has one way only")
        inputs["sync_every"] = sync_every
    work.given(ranks=n)
    if strategy in ("hsdp", "zero++"):
        if experts:
            raise KitError(f"{strategy} is not modelled for experts", "use ddp, zero1, zero2, zero3 or fsdp")
        if strategy == "hsdp":
            return hsdp_lines(work, inputs, dense, n, k, keep_params, shard_size)
        return quantized_lines(work, inputs, dense, n, k, ranks_per_node)
    p, g = work.known["param_bytes"], work.known["grad_bytes"]
    groups: list[tuple[Number, int, str, str]] = [(dense, n, "dense_params", "(dp * cp)")]
    if experts:
        sharers = evenly("data_parallel x context_parallel x tensor_parallel", n * tp,
                         "expert_parallel x expert_tensor_parallel", ep * tp)  # fmt: skip
        groups.append((experts, sharers, "expert_params", "(dp * cp / ep)"))
    formulas, value = [], exact(0)
    for num, ranks, name, count in groups:
        lead = f"({count} - 1) / {count} * {name}"
        if strategy == "ddp":
            is_once = sync_every != "microbatch"
            value += traffic.ddp_bytes(num, ranks, g, k, is_once)
            formulas.append(f"2 * {lead} * grad_bytes" + ("" if is_once else " * microbatches"))
        elif strategy == "fsdp":
            is_each = sync_every != "step"
            value += traffic.fsdp_bytes(num, ranks, p, g, k, not keep_params, is_each)
            gathers = "microbatches" if keep_params else "2 * microbatches"
            formulas.append(f"{lead} * ({gathers} * param_bytes + {'microbatches' if is_each else '1'} * grad_bytes)")
        else:
            zero = int(strategy[-1])
            num_gathers, num_reductions = zero_passes(zero, k, not keep_params)
            value += traffic.zero_bytes(num, ranks, zero, p, g, k, not keep_params)
            formulas.append(f"{lead} * ({num_gathers} * param_bytes + {num_reductions} * grad_bytes)")
    work.line("dp_bytes", " + ".join(formulas), value, "B")
    return ["dp_bytes"]


def hsdp_lines(
    work: Working, inputs: dict[str, Input], dense: Number, n: int, k: int, keep_params: bool, shard_size: int | None
) -> list[str]:
    if shard_size is None:
        raise KitError("hsdp needs shard_size, the ranks that share one copy", "--shard-size 8, as many as a node has")
    replicas = evenly("dp x cp", n, "shard_size", whole("shard_size", shard_size))
    inputs["shard_size"] = shard_size
    work.given(shard_size=shard_size, replicas=replicas)
    p, g = work.known["param_bytes"], work.known["grad_bytes"]
    parts = [traffic.hsdp_bytes(dense, shard_size, replicas, p, g, level, k, not keep_params)
             for level in ("inside", "between")]  # fmt: skip
    gathers = "microbatches" if keep_params else "2 * microbatches"
    inside = f"(shard_size - 1) / shard_size * dense_params * ({gathers} * param_bytes + microbatches * grad_bytes)"
    between = "microbatches * 2 * (replicas - 1) / replicas * dense_params * grad_bytes / shard_size"
    work.line("dp_inside_bytes", inside, parts[0], "B")
    work.line("dp_between_bytes", between, parts[1], "B")
    return ["dp_inside_bytes", "dp_between_bytes"]


def quantized_lines(
    work: Working, inputs: dict[str, Input], dense: Number, n: int, k: int, ranks_per_node: int
) -> list[str]:
    """ZeRO++ with qwZ, hpZ and qgZ: inside a node, and what leaves it, shared by its ranks; 16-bit parameters."""
    nodes = evenly("dp x cp", n, "ranks_per_node", whole("ranks_per_node", ranks_per_node))
    inputs["ranks_per_node"] = ranks_per_node
    work.given(ranks_per_node=ranks_per_node, nodes=nodes)
    inside = "microbatches * (ranks_per_node - 1) / ranks_per_node * (0.5 + 1 + 0.25) * 2 * dense_params"
    work.line("dp_inside_bytes", inside, exact(k * traffic.zero_plus_plus_inside_bytes(dense, ranks_per_node)), "B")
    whole_node = traffic.zero_plus_plus_bytes(dense, num_nodes=nodes)
    formula = "microbatches * (nodes - 1) / nodes * (0.5 + 0.25) * 2 * dense_params / ranks_per_node"
    work.line("dp_between_bytes", formula, quotient(exact(k * whole_node), ranks_per_node), "B")
    return ["dp_inside_bytes", "dp_between_bytes"]


def tensor_line(
    work: Working, size: tuple[int, int, int], tp: int, sp: bool, recompute: str, each: Number, microbatches: int
) -> str:
    layers = int(work.known["stage_layers"])
    value = model_traffic.tp_bytes(layers, microbatches, *size, tp, each, recompute, sp)
    passes = 8 + (4 if recompute == "full" else 0) + (2 if sp else 0)
    work.line(
        "tp_bytes",
        f"stage_layers * microbatches * {passes} * (tp - 1) / tp * microbatch * seq / cp * hidden * element",
        value,
        "B",
    )
    return "tp_bytes"


def pipeline_line(
    work: Working, size: tuple[int, int, int], shared: int, pp: int, stage: int, chunks: int, microbatches: int,
    each: Number,
) -> str:  # fmt: skip
    value = model_traffic.pp_bytes(pp, microbatches, *size, each, stage, chunks, shared)
    work.given(messages=2 * chunks - (stage == 0) - (stage == pp - 1), shared=shared)
    over = " / tp" if shared > 1 else ""
    work.line("pp_bytes", f"messages * microbatches * microbatch * seq / cp * hidden * element{over}", value, "B")
    return "pp_bytes"


def context_line(
    work: Working,
    shape: Shape,
    seq: int,
    microbatch: int,
    tp: int,
    cp: int,
    method: str,
    each: Number,
    microbatches: int,
) -> str:
    """K and V of the rank's heads; MLA is taken with K and V expanded, and is refused here."""
    if shape.attention == "mla":
        raise KitError("context parallelism is not modelled for MLA")
    rank_kv_heads_line(work, shape, tp)
    heads, kv_heads = evenly("num_heads", shape.num_heads, "tensor_parallel", tp), int(work.known["rank_kv_heads"])
    one = model_traffic.cp_bytes_per_layer(seq, microbatch, heads, shape.head_size, cp, kv_heads, method, each)
    if method == "ulysses":
        formula = "2 * (cp - 1) / cp * (2 * heads / tp + 2 * max(rank_kv_heads, cp))"
    elif method == "ring":
        formula = "(2 * (cp - 1) + cp) * 2 * rank_kv_heads"
    else:
        formula = "3 * (cp - 1) * 2 * rank_kv_heads"
    tokens = "microbatch * seq / cp * head_size * element"
    value = int(work.known["stage_layers"]) * microbatches * one
    work.line("cp_bytes", f"stage_layers * microbatches * {formula} * {tokens}", value, "B")
    return "cp_bytes"


def expert_line(work: Working, shape: Shape, tokens: int, shared: int, ep: int, each: Number, microbatches: int) -> str:
    """Dropless and evenly routed: dispatch and combine, forward and backward."""
    mine = evenly("tokens", tokens, "tensor_parallel", shared)
    one = model_traffic.ep_bytes_per_layer(mine, shape.hidden_size, shape.experts_per_token, ep, each, each)
    layers = int(work.known.get("moe_layers", 0))
    work.given(moe_layers=layers, tokens=mine)
    formula = "moe_layers * microbatches * 4 * tokens * experts_per_token * hidden * (ep - 1) / ep * element"
    work.line("ep_bytes", formula, layers * microbatches * one, "B")
    return "ep_bytes"
