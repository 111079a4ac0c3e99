"""Matrix products of a layer as formulas: `flops.layer_gemms` in the names of a shape."""

from __future__ import annotations

from kit.costmodel import flops
from kit.costmodel.breakdown import Working
from kit.costmodel.shapes import Shape

FORMULAS = {
    "qkv": "2 * tokens * hidden * head_size * (heads + 2 * kv_heads)",
    "q": "2 * tokens * hidden * heads * head_size",
    "q_down": "2 * tokens * hidden * q_rank",
    "q_up": "2 * tokens * q_rank * heads * head_size",
    "kv_down": "2 * tokens * hidden * (kv_rank + rope)",
    "kv_up": "2 * tokens * kv_rank * heads * (nope + v_head_size)",
    "scores": "2 * batch * heads * seq * seq * head_size",
    "values": "2 * batch * heads * seq * seq * v_head_size",
    "attention_output": "2 * tokens * heads * v_head_size * hidden",
    "router": "2 * tokens * hidden * experts",
}
WIDTHS = {"mlp": "ffn", "experts": "(experts_per_token + shared_experts) * expert_ffn"}


def product_formula(name: str, shape: Shape) -> str:
    """FLOPs of one product of a layer, forward, without tensor parallelism."""
    if name in FORMULAS:
        return FORMULAS[name]
    part, way = name.split("_")
    twice = 2 if shape.gated and way == "in" else 1
    return f"{2 * twice} * tokens * hidden * {WIDTHS[part]}"


def layer_line(work: Working, shape: Shape, seq: int, batch: int, causal: bool, has_experts: bool) -> tuple[str, str]:
    """Lines of one kind of layer, forward. Returns the names of its sum and of attention's core in it."""
    gemms = flops.layer_gemms(shape, seq, batch, has_experts=has_experts)
    for it in gemms:
        if f"{it.name}_flops" not in work.known:
            work.line(f"{it.name}_flops", product_formula(it.name, shape), it.flops, "FLOP")
    if "core_flops" not in work.known:
        half = " / 2" if causal else ""
        work.line("core_flops", f"(scores_flops + values_flops){half}", flops.core_of(gemms, causal), "FLOP")
    name = "moe_layer_flops" if has_experts else "layer_flops"
    parts = [f"{it.name}_flops" for it in gemms if not it.is_core]
    work.line(name, " + ".join([*parts, "core_flops"]), flops.flops_of(gemms, causal), "FLOP")
    return name, "core_flops"
