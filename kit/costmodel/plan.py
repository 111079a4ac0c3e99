"""Which layouts of a dense model on so many GPUs fit, and how fast each is by the model below.

Layouts: every dp x tp x pp x cp = world_size, ZeRO stage, microbatch and recomputation that divides: heads, MLP and
sequence by tp, the sequence by cp (by 2cp, for balance under a causal mask), the batch by dp and the microbatch, no
more stages than layers. tp > 1 brings sequence parallelism. Ranks are numbered tp, cp, dp, pp, tp fastest, and fill
nodes in order.

Memory: `memory.rank_state_bytes` and `activations.stage_bytes` with 1F1B, of the stage that holds most; with full
recomputation one layer's activations more, with ZeRO-3 two layers' parameters, gathered.

Time of a step: (m + p - 1)(C + T + X + 2Q) + D. For one microbatch on the slowest stage: C, FLOPs (causal, recomputed
ones too) at `efficiency` of the peak; T, ten all-gathers or reduce-scatters a layer (fourteen with full
recomputation), not hidden; X, what the ring of context parallelism takes longer than attention's products; Q, one
message to the next stage, not hidden. D: the gathers and reductions of gradients and parameters over dp x cp, as far
as they are longer than the forward or backward that they run behind. Collectives are rings at the pace of their
slowest link.

Left out: kernels (efficiency is one number for all sizes), memory traffic, the optimizer's step, loss and embedding
and their communication, ends of overlaps, contention, hierarchical collectives, interleaving, experts, offload,
fragmentation and the framework's own memory (only `usable` of the GPU's memory counts). The order of the layouts is
worth more than their times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kit import hardware
from kit.costmodel import activations, memory, recipes, roofline, shapes, training
from kit.costmodel.arguments import exact, one_of, whole
from kit.costmodel.memory import RECOMPUTATIONS
from kit.costmodel.shapes import Shape
from kit.costmodel.step import Job, Layout, context_s, data_s, message_s, microbatch_s, model_flops, tensor_s
from kit.errors import KitError


@dataclass(frozen=True, slots=True)
class Plan:
    """A layout's memory on its fullest stage and the parts of its step. `reason` says why it does not fit, else ""."""

    layout: Layout
    state_bytes: int | float
    activation_bytes: int | float
    other_bytes: int | float
    fits: bool
    reason: str
    compute_s: float
    bubble_s: float
    tensor_s: float
    context_s: float
    pipeline_s: float
    data_s: float
    tokens_per_s: float
    mfu: float

    @property
    def memory_bytes(self) -> int | float:
        return self.state_bytes + self.activation_bytes + self.other_bytes

    @property
    def step_s(self) -> float:
        return self.compute_s + self.bubble_s + self.tensor_s + self.context_s + self.pipeline_s + self.data_s


def job_of(
    model: str | Shape,
    world_size: int,
    profile: str = "h100",
    seq_len: int = 4096,
    global_batch_size: int = 1024,
    recipe: str = "megatron_bf16",
    dtype: str = "bf16",
    efficiency: float = 0.6,
    usable: float = 0.9,
    overlap: bool | int = True,
) -> Job:
    """Checked. Raises KitError for models with experts or MLA, whose activations are not modelled."""
    shape = shapes.shape_named(model) if isinstance(model, str) else model
    machine = hardware.profile(profile)
    roofline.peak_flops_per_s(profile, dtype)
    recipes.recipe_named(recipe)
    job = Job(
        shape,
        whole("world_size", world_size),
        machine,
        whole("seq_len", seq_len),
        whole("global_batch_size", global_batch_size),
        recipe,
        dtype,
        training.fraction("efficiency", efficiency),
        training.fraction("usable", usable),
        bool(overlap),
    )
    activations.layer_bytes_of(shape, job.seq_len)
    return job


def search(
    model: str | Shape,
    world_size: int,
    profile: str = "h100",
    seq_len: int = 4096,
    global_batch_size: int = 1024,
    recipe: str = "megatron_bf16",
    dtype: str = "bf16",
    efficiency: float = 0.6,
    usable: float = 0.9,
    overlap: bool | int = True,
    max_microbatch_size: int = 8,
    max_context_parallel: int = 16,
) -> tuple[Plan, ...]:
    """Every layout: first those that fit, the fastest first, then the others, the smallest first.

    Raises KitError where no layout divides. `search("llama2-7b", 8, "h100", 4096, 64)[0].layout`.
    """
    job = job_of(model, world_size, profile, seq_len, global_batch_size, recipe, dtype, efficiency, usable, overlap)
    limits = whole("max_microbatch_size", max_microbatch_size), whole("max_context_parallel", max_context_parallel)
    found = [evaluate(job, layout) for layout in layouts(job, *limits)]
    if not found:
        raise KitError(
            f"no layout of {job.world_size} ranks divides this model and a batch of {job.global_batch_size}",
            "dp must divide the batch; heads and MLP bound tp, layers pp, the sequence cp",
        )
    return tuple(
        sorted(found, key=lambda it: (not it.fits, it.step_s if it.fits else it.memory_bytes, it.memory_bytes))
    )


def layouts(job: Job, max_microbatch_size: int = 8, max_context_parallel: int = 16) -> Iterator[Layout]:
    """Every layout that divides; ZeRO only where more than one rank holds the same parameters."""
    shape, n = job.shape, job.world_size
    for t in divisors(n):
        if shape.num_heads % t or shape.ffn_size % t or job.seq_len % t:
            continue
        if shape.num_kv_heads % t and t % shape.num_kv_heads:
            continue
        for p in divisors(n // t):
            for c in divisors(n // (t * p)):
                d = n // (t * p * c)
                is_cut = c > 1 and job.seq_len % (2 * c * t)
                if p > shape.num_layers or c > max_context_parallel or is_cut or job.global_batch_size % d:
                    continue
                samples = job.global_batch_size // d
                for b in (b for b in divisors(samples) if b <= max_microbatch_size):
                    for stage in (0, 1, 2, 3) if d * c > 1 else (0,):
                        for recomputation in RECOMPUTATIONS:
                            yield Layout(d, t, p, c, stage, b, samples // b, recomputation)


def evaluate(job: Job, layout: Layout) -> Plan:
    """Memory and time of one layout."""
    state, kept, other = fullest_stage(job, layout)
    limit = job.usable * job.machine.memory_bytes
    held = state + kept + other
    reason = "" if held <= limit else why_not(state, kept, other, limit)
    m, p = layout.num_microbatches, layout.pipeline_parallel
    forward, backward, core = microbatch_s(job, layout)
    tensor = tensor_s(job, layout)
    context = max(0.0, context_s(job, layout) - core) if job.overlap else context_s(job, layout)
    pipeline = 2 * message_s(job, layout) if p > 1 else 0.0
    parts = (m * (forward + backward), (p - 1) * (forward + backward + tensor + context), m * tensor, m * context,
             (m + p - 1) * pipeline, data_s(job, layout, forward, backward))  # fmt: skip
    step = sum(parts)
    tokens = job.global_batch_size * job.seq_len
    peak = job.world_size * job.peak_flops_per_s
    return Plan(layout, state, kept, other, not reason, reason, *parts, tokens / step, model_flops(job) / (step * peak))


def why_not(state: int | float, kept: int | float, other: int | float, limit: float) -> str:
    """What is too large, and by how much of it alone."""
    held = state + kept + other
    text = f"needs {held / 1e9:.1f} GB of {limit / 1e9:.1f}: state {state / 1e9:.1f}, activations {kept / 1e9:.1f}"
    return text + (f", gathered or recomputed layers {other / 1e9:.1f}" if other else "")


def fullest_stage(job: Job, layout: Layout) -> tuple[int | float, int | float, int | float]:
    """(model state, activations, gathered and recomputed layers) of the stage that holds most."""
    p = layout.pipeline_parallel
    first_with_more = (p - job.shape.num_layers % p) // 2 if job.shape.num_layers % p else 0
    return max((stage_memory(job, layout, stage) for stage in {0, first_with_more, p - 1}), key=sum)


def stage_memory(job: Job, layout: Layout, stage: int) -> tuple[int | float, int | float, int | float]:
    shape, t, c = job.shape, layout.tensor_parallel, layout.context_parallel
    state = memory.rank_state_bytes_of(
        shape, job.recipe, layout.zero_stage, layout.data_parallel, t, layout.pipeline_parallel, stage, c
    )
    kept = activations.stage_bytes_of(
        shape, job.seq_len, layout.microbatch_size, t, t > 1, layout.recomputation, c, layout.pipeline_parallel,
        layout.num_microbatches, stage,
    )  # fmt: skip
    other: int | float = 0
    if layout.recomputation == "full":
        other += activations.layer_bytes_of(shape, job.seq_len, layout.microbatch_size, t, t > 1, "none", c)
    if layout.zero_stage == 3:
        layer = memory.attention_params_of_rank(shape, t) + memory.mlp_params_of_rank(shape, shape.ffn_size, t)
        other += 2 * recipes.part_bytes(job.recipe, "params") * layer
    return state, kept, exact(other)


def divisors(number: int) -> tuple[int, ...]:
    return tuple(each for each in range(1, number + 1) if number % each == 0)


def planned(
    model: str,
    world_size: int,
    profile: str = "h100",
    seq_len: int = 4096,
    global_batch_size: int = 1024,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    context_parallel: int = 1,
    zero_stage: int = 1,
    microbatch_size: int = 1,
    recomputation: str = "none",
    efficiency: float = 0.6,
    recipe: str = "megatron_bf16",
) -> Plan:
    """One layout by its figures. Raises KitError where it does not divide."""
    job = job_of(model, world_size, profile, seq_len, global_batch_size, recipe, efficiency=efficiency)
    d = training.data_parallel(world_size, tensor_parallel, pipeline_parallel, context_parallel)
    m = training.num_microbatches(global_batch_size, microbatch_size, d)
    one_of("recomputation", recomputation, RECOMPUTATIONS)
    stage = whole("zero_stage", zero_stage, at_least=0, at_most=3)
    return evaluate(
        job, Layout(d, tensor_parallel, pipeline_parallel, context_parallel, stage, microbatch_size, m, recomputation)
    )


def step_s(
    model: str,
    world_size: int,
    profile: str = "h100",
    seq_len: int = 4096,
    global_batch_size: int = 1024,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    context_parallel: int = 1,
    zero_stage: int = 1,
    microbatch_size: int = 1,
    recomputation: str = "none",
    efficiency: float = 0.6,
) -> float:
    """Seconds of one step of one layout, whether it fits or not. `planned` takes the same and gives the parts."""
    return planned(
        model, world_size, profile, seq_len, global_batch_size, tensor_parallel, pipeline_parallel, context_parallel,
        zero_stage, microbatch_size, recomputation, efficiency,
    ).step_s  # fmt: skip


def memory_bytes(
    model: str,
    world_size: int,
    seq_len: int = 4096,
    global_batch_size: int = 1024,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    context_parallel: int = 1,
    zero_stage: int = 1,
    microbatch_size: int = 1,
    recomputation: str = "none",
    recipe: str = "megatron_bf16",
) -> int | float:
    """Bytes on the fullest rank of one layout: state, activations, and what is gathered or recomputed for a while."""
    return planned(
        model, world_size, "h100", seq_len, global_batch_size, tensor_parallel, pipeline_parallel, context_parallel,
        zero_stage, microbatch_size, recomputation, recipe=recipe,
    ).memory_bytes  # fmt: skip


def fewest_gpus(
    model: str, profile: str = "h100", seq_len: int = 4096, recipe: str = "megatron_bf16", usable: float = 0.9
) -> int:
    """The smallest power of two of GPUs on which some layout fits, with one sequence a rank at least.

    Raises KitError where 65536 are not enough. `fewest_gpus("llama2-7b", "h100")` -> 2.
    """
    n = 1
    while n <= 2**16:
        job = job_of(model, n, profile, seq_len, n, recipe, usable=usable)
        limit = job.usable * job.machine.memory_bytes
        if any(sum(fullest_stage(job, layout)) <= limit for layout in layouts(job, 1)):
            return n
        n *= 2
    raise KitError(f"{model} fits on no number of {profile} up to 65536 by this model")
