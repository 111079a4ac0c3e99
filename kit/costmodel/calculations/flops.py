"""`calc flops`: floating-point operations of a training step, and what share of the hardware they use."""

from __future__ import annotations

from collections.abc import Mapping

from kit.costmodel import flops, roofline, shapes
from kit.costmodel.arguments import one_of, whole
from kit.costmodel.breakdown import Calculation, Input, Note, Number
from kit.costmodel.calculations.chosen import chosen, working_for
from kit.costmodel.calculations.products import layer_line
from kit.costmodel.memory import RECOMPUTATIONS
from kit.costmodel.training import positive
from kit.errors import KitError

RESULTS = (
    "forward_flops", "model_flops", "recomputed_flops", "iteration_flops", "flops_per_token", "rule_flops",
    "share_of_rule", "mfu", "hfu",
)  # fmt: skip


def calculate(
    seq: int,
    model: str | None = None,
    figures: Mapping[str, Input] | None = None,
    batch: int = 1,
    recompute: str = "none",
    causal: bool = False,
    gpus: int | None = None,
    step: Number | None = None,
    profile: str = "h100",
    dtype: str = "bf16",
) -> Calculation:
    """One iteration over `batch` sequences, all ranks together; with `gpus` and `step` seconds also MFU and HFU."""
    it = chosen(model, figures or {})
    shape, work = it.shape, working_for(it.shape)
    seq, batch = whole("seq", seq), whole("batch", batch)
    one_of("recomputation", recompute, RECOMPUTATIONS)
    inputs: dict[str, Input] = {**it.inputs, "seq": seq, "batch": batch, "recompute": recompute, "causal": causal}
    work.given(seq=seq, batch=batch)
    tokens = work.line("tokens", "batch * seq", batch * seq, "count")
    work.given(num_dense=shape.num_layers - shape.num_moe_layers, num_moe=shape.num_moe_layers)
    kinds = [(False, "num_dense")] if shape.num_layers > shape.num_moe_layers else []
    kinds += [(True, "num_moe")] if shape.num_moe_layers else []
    layers = [(count, layer_line(work, shape, seq, batch, causal, has)[0]) for has, count in kinds]
    work.line(
        "logit_flops", "2 * tokens * hidden * vocab",
        flops.logit_forward_flops(batch, seq, shape.hidden_size, shape.vocab_size), "FLOP",
    )  # fmt: skip
    forward = " + ".join([*(f"{count} * {name}" for count, name in layers), "logit_flops"])
    work.line("forward_flops", forward, flops.forward_flops_of(shape, batch, seq, causal), "FLOP")
    useful = work.line("model_flops", "3 * forward_flops", flops.iteration_flops_of(shape, batch, seq, "none", causal),
                       "FLOP")  # fmt: skip
    executed = flops.iteration_flops_of(shape, batch, seq, recompute, causal)
    if recompute != "none":
        again = {"selective": "layers * core_flops", "full": "forward_flops - logit_flops"}[recompute]
        work.line("recomputed_flops", again, executed - useful, "FLOP")
    more = "" if recompute == "none" else " + recomputed_flops"
    work.line("iteration_flops", f"model_flops{more}", executed, "FLOP")
    work.line("flops_per_token", "iteration_flops / tokens", executed / tokens, "FLOP")
    work.given(params=shapes.params_of(shape, "active"))
    rule = work.line("rule_flops", "6 * params * tokens", flops.training_flops(work.known["params"], tokens), "FLOP")
    work.line("share_of_rule", "model_flops / rule_flops", useful / rule, "fraction")
    inputs["params"] = work.known["params"]
    notes = [it.note, *conventions(causal, bool(shape.num_experts))]
    if step is not None or gpus is not None:
        if step is None or gpus is None:
            raise KitError("MFU needs both gpus and step, the seconds of an iteration")
        peak = roofline.peak_flops_per_s(profile, dtype)
        inputs |= {"gpus": whole("gpus", gpus), "step": positive("step", step), "profile": profile, "dtype": dtype}
        work.given(gpus=gpus, step=step, peak=peak)
        could = gpus * step * peak
        if executed > could:
            flops.utilisation(executed / step, gpus * peak)  # says so
        work.line("mfu", "model_flops / (gpus * step * peak)", useful / could, "fraction")
        work.line("hfu", "iteration_flops / (gpus * step * peak)", executed / could, "fraction")
        notes.append(Note(f"Peak of one {profile} in {dtype}: {peak / 1e12:g} TFLOP/s, without sparsity.",
                          f"{profile} 在 {dtype} 下的峰值：{peak / 1e12:g} TFLOP/s，不含稀疏加速。"))  # fmt: skip
    return Calculation("flops", inputs, tuple(notes), work.quantities(RESULTS), tuple(work.lines))


def conventions(causal: bool, has_experts: bool) -> list[Note]:
    notes = [
        Note("Matrix products only, 2mnk each; backward is twice forward. HFU counts what is recomputed, MFU not.",
             "只计矩阵乘，每个 2mnk；backward 为 forward 的两倍。MFU 不含重算，HFU 含重算。"),
        Note("Attention's core is halved by the causal mask.", "causal mask 使 attention 的 QK^T 与 PV 减半。")
        if causal
        else Note("Attention's core counts whole, as in PTD-P and PaLM: no causal halving.",
                  "attention 的 QK^T 与 PV 按全量计（同 PTD-P、PaLM），不因 causal mask 减半。"),
        Note("The rule is 6ND, N all parameters with the embedding.", "经验公式为 6ND，N 为全部参数（含 embedding）。"),
    ]  # fmt: skip
    if has_experts:
        notes.append(Note("Of a mixture of experts N is what a token uses.", "MoE 的 N 取每个 token 激活的参数。"))
    return notes
