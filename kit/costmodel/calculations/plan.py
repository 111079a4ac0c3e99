"""`calc plan`: the layouts of a model on so many GPUs that fit, fastest first, and the first one worked out."""

from __future__ import annotations

from collections.abc import Mapping

from kit.costmodel import plan, step
from kit.costmodel.arguments import whole
from kit.costmodel.breakdown import Calculation, Input, Note, Number, Quantity, Table, Working
from kit.costmodel.calculations.chosen import chosen, working_for
from kit.costmodel.plan import Plan
from kit.costmodel.step import Job

RESULTS = ("step_s", "tokens_per_s", "mfu", "memory_bytes", "state_bytes", "activation_bytes", "other_bytes",
           "compute_s", "bubble_s", "tensor_s", "context_s", "pipeline_s", "data_s")  # fmt: skip
LAYOUT = ("dp", "tp", "pp", "cp", "zero", "microbatch", "microbatches", "recompute")
CONVENTION = (
    Note(
        "A model of memory and time, not a measurement: kernels are one efficiency for all sizes, collectives rings; "
        "tp and pp messages are not hidden, what data parallelism sends hides behind the compute beside it.",
        "这是显存与时间的模型估计，不是实测：kernel 统一按一个效率计，集合通信按 ring；TP、PP 通信不重叠，"
        "DP 通信可被相邻计算掩盖。",
    ),
    Note(
        "Left out: the optimizer's step, embedding and loss, contention, fragmentation. The order is worth more than "
        "the times.",
        "不计：optimizer step、embedding 与 loss、争用、显存碎片。排序比绝对时间更可信。",
    ),
)


def calculate(
    gpus: int,
    model: str | None = None,
    figures: Mapping[str, Input] | None = None,
    profile: str = "h100",
    seq: int = 4096,
    batch: int = 1024,
    recipe: str = "megatron_bf16",
    dtype: str = "bf16",
    efficiency: float = 0.6,
    usable: float = 0.9,
    overlap: bool = True,
    max_microbatch: int = 8,
    top: int = 5,
) -> Calculation:
    """`kit.costmodel.plan.search`, `top` layouts of it. The result "fits" is "no" where none does."""
    it = chosen(model, figures or {})
    top = whole("top", top)
    how = (gpus, profile, seq, batch, recipe, dtype, efficiency, usable, overlap)
    found = plan.search(it.shape, *how, max_microbatch_size=max_microbatch)
    job = plan.job_of(it.shape, *how)
    best = found[0]
    inputs: dict[str, Input] = {
        **it.inputs, "gpus": gpus, "profile": job.machine.name, "seq": seq, "batch": batch, "recipe": recipe,
        "dtype": dtype, "efficiency": efficiency, "usable": usable, "overlap": overlap,
    }  # fmt: skip
    num_fit = sum(each.fits for each in found)
    results: dict[str, Quantity] = {
        "layouts": Quantity(len(found), "count"),
        "layouts_that_fit": Quantity(num_fit, "count"),
        "fits": Quantity("yes" if best.fits else "no", "word"),
    }
    for name, value in zip(LAYOUT, layout_of(best), strict=True):
        results[name] = Quantity(value, "word" if isinstance(value, str) else "count")
    work = lines_of(job, best)
    results |= work.quantities(RESULTS)
    notes = [it.note, *CONVENTION]
    if not best.fits:
        notes.insert(0, Note(f"No layout fits; the smallest {best.reason}.",
                             f"没有任何布局放得下；占用最小的布局需要 {best.memory_bytes / 1e9:.1f} GB。"))  # fmt: skip
    return Calculation("plan", inputs, tuple(notes), results, tuple(work.lines), table_of(found[:top]))


def layout_of(it: Plan) -> tuple[Number | str, ...]:
    at = it.layout
    return (at.data_parallel, at.tensor_parallel, at.pipeline_parallel, at.context_parallel, at.zero_stage,
            at.microbatch_size, at.num_microbatches, at.recomputation)  # fmt: skip


def table_of(plans: tuple[Plan, ...]) -> Table:
    units = {"place": "count", **dict.fromkeys(LAYOUT[:-1], "count"), "recompute": "word", "memory_bytes": "B",
             "step_s": "s", "mfu": "fraction", "fits": "word"}  # fmt: skip
    rows = [
        (place, *layout_of(it), it.memory_bytes, it.step_s, it.mfu, "yes" if it.fits else "no")
        for place, it in enumerate(plans, 1)
    ]
    return Table(units, tuple(rows))


def lines_of(job: Job, best: Plan) -> Working:
    """The step's parts as `kit.costmodel.plan` adds them up."""
    work = working_for(job.shape)
    at = best.layout
    forward, backward, core = step.microbatch_s(job, at)
    tensor = step.tensor_s(job, at)
    context = step.context_s(job, at)
    work.given(
        pp=at.pipeline_parallel, microbatches=at.num_microbatches, forward_s=forward, backward_s=backward,
        layer_tensor_s=tensor, ring_s=context, core_s=core if job.overlap else 0.0,
        message_s=step.message_s(job, at) if at.pipeline_parallel > 1 else 0.0,
        data_parallel_s=best.data_s, batch=job.global_batch_size, seq=job.seq_len, gpus=job.world_size,
        peak=job.peak_flops_per_s, model_flops=step.model_flops(job), state=best.state_bytes,
        activations=best.activation_bytes, other=best.other_bytes,
    )  # fmt: skip
    work.line("microbatch_tensor_s", "layer_tensor_s", tensor, "s")
    work.line("microbatch_context_s", "max(0, ring_s - core_s)", max(0.0, context - work.known["core_s"]), "s")
    work.line("compute_s", "microbatches * (forward_s + backward_s)", best.compute_s, "s")
    work.line(
        "bubble_s",
        "(pp - 1) * (forward_s + backward_s + microbatch_tensor_s + microbatch_context_s)",
        best.bubble_s,
        "s",
    )
    work.line("tensor_s", "microbatches * microbatch_tensor_s", best.tensor_s, "s")
    work.line("context_s", "microbatches * microbatch_context_s", best.context_s, "s")
    work.line("pipeline_s", "(microbatches + pp - 1) * 2 * message_s", best.pipeline_s, "s")
    work.line("data_s", "data_parallel_s", best.data_s, "s")
    parts = "compute_s + bubble_s + tensor_s + context_s + pipeline_s + data_s"
    work.line("step_s", parts, best.step_s, "s")
    work.line("tokens_per_s", "batch * seq / step_s", best.tokens_per_s, "tokens/s")
    work.line("mfu", "model_flops / (step_s * gpus * peak)", best.mfu, "fraction")
    work.line("state_bytes", "state", best.state_bytes, "B")
    work.line("activation_bytes", "activations", best.activation_bytes, "B")
    work.line("other_bytes", "other", best.other_bytes, "B")
    work.line("memory_bytes", "state_bytes + activation_bytes + other_bytes", best.memory_bytes, "B")
    return work
