"""Parameters of one rank, line by line: what TP and EP split, what a pipeline stage has, what stays whole."""

from __future__ import annotations

from kit.costmodel import memory
from kit.costmodel.arguments import whole
from kit.costmodel.breakdown import Working
from kit.costmodel.shapes import Shape, kv_heads_of_rank


def rank_parameters(work: Working, shape: Shape, tp: int, pp: int, stage: int, ep: int, etp: int) -> tuple[int, int]:
    """Adds lines up to `dense_params` and `expert_params`, as `memory.rank_params_of` counts them. Returns both.

    Formulas use tp, ep and etp, which must be known to `work`; `etp` is the ranks that share one expert.
    """
    dense, experts = memory.rank_params_of(shape, tp, pp, stage, ep, etp)
    first, end = memory.layer_range(shape.num_layers, pp, stage)
    first_moe = shape.num_layers - shape.num_moe_layers
    num_dense, num_moe = max(min(end, first_moe) - first, 0), max(end - max(first, first_moe), 0)
    work.given(norm_params=shape.norms_per_layer * shape.norm_params)
    attention_line(work, shape, tp)
    parts = []
    if num_dense:
        mlp_line(work, shape, "mlp_params", "ffn", "tp", memory.mlp_params_of_rank(shape, shape.ffn_size, tp))
        each = "attention_params + mlp_params + norm_params"
        value = work.known["attention_params"] + work.known["mlp_params"] + work.known["norm_params"]
        work.line("layer_params", each, value, "count")
        work.given(stage_layers=num_dense)
        parts.append("stage_layers * layer_params")
    if num_moe:
        moe_lines(work, shape, tp)
        work.given(moe_layers=num_moe)
        parts.append("moe_layers * moe_layer_params")
    work.line("vocab_params", "ceil(vocab / tp) * hidden", -(-shape.vocab_size // tp) * shape.hidden_size, "count")
    parts += outside_layers(work, shape, pp, stage)
    work.line("dense_params", " + ".join(parts), dense, "count")
    if num_moe:
        one = memory.mlp_params_of_rank(shape, shape.expert_ffn_size, etp, "expert_tensor_parallel")
        mlp_line(work, shape, "one_expert_params", "expert_ffn", "etp", one)
        work.line("expert_params", "moe_layers * experts / ep * one_expert_params", experts, "count")
    return dense, experts


def outside_layers(work: Working, shape: Shape, pp: int, stage: int) -> list[str]:
    """Embedding, positions, norms and output matrix, where this stage has them."""
    parts = []
    is_first, is_last = stage == 0, stage == pp - 1
    matrices = is_first + (is_last and not (shape.tied_embeddings and pp == 1))
    if matrices:
        parts.append("vocab_params" if matrices == 1 else "2 * vocab_params")
    if is_first and shape.max_positions:
        parts.append("positions * hidden")
    norms = is_first * shape.has_embedding_norm + is_last
    if norms:
        work.given(outer_norm_params=norms * shape.norm_params)
        parts.append("outer_norm_params")
    return parts


def attention_line(work: Working, shape: Shape, tp: int) -> None:
    """One layer's projections on one rank."""
    value = memory.attention_params_of_rank(shape, tp)
    if shape.attention == "mla":
        query = (
            "q_rank * (hidden + 1 + heads / tp * head_size)" if shape.q_lora_rank else "hidden * heads / tp * head_size"
        )
        down, up = "hidden * (kv_rank + rope) + kv_rank", "kv_rank * heads / tp * (nope + v_head_size)"
        work.line("attention_params", f"{query} + {down} + {up} + heads / tp * v_head_size * hidden", value, "count")
        return
    rank_kv_heads_line(work, shape, tp)
    formula = "2 * hidden * head_size * (heads / tp + rank_kv_heads)"
    if shape.linear_biases or shape.has_qkv_bias:
        formula += " + head_size * (heads / tp + 2 * rank_kv_heads)"
    work.line("attention_params", formula + (" + hidden" if shape.linear_biases else ""), value, "count")


def rank_kv_heads_line(work: Working, shape: Shape, tp: int) -> None:
    """Key-value heads of one rank, once."""
    if "rank_kv_heads" not in work.known:
        heads = kv_heads_of_rank(shape.num_kv_heads, whole("tensor_parallel", tp))
        work.line("rank_kv_heads", "max(kv_heads / tp, 1)", heads, "count")


def mlp_line(work: Working, shape: Shape, name: str, width: str, ranks: str, value: int) -> None:
    num_in = 2 if shape.gated else 1
    formula = f"{num_in + 1} * hidden * {width} / {ranks}"
    if shape.linear_biases:
        formula += f" + {f'{num_in} * ' if num_in > 1 else ''}{width} / {ranks} + hidden"
    work.line(name, formula, value, "count")


def moe_lines(work: Working, shape: Shape, tp: int) -> None:
    """What a layer with experts has beside the routed ones."""
    bias = " + 1" if shape.has_router_bias else ""
    work.line(
        "router_params", f"experts * (hidden{bias})" if bias else "experts * hidden", shape.router_params, "count"
    )
    parts = ["attention_params", "norm_params", "router_params"]
    if shape.num_shared_experts:
        shared = memory.mlp_params_of_rank(shape, shape.expert_ffn_size, tp)
        mlp_line(work, shape, "one_shared_params", "expert_ffn", "tp", shared)
        work.line("shared_params", "shared_experts * one_shared_params", shape.num_shared_experts * shared, "count")
        parts.append("shared_params")
    work.line("moe_layer_params", " + ".join(parts), sum(work.known[name] for name in parts), "count")
