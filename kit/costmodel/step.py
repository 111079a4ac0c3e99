"""The time of one training step of one layout, in parts: compute, tensor, context, pipeline and data parallelism.

What is modelled and what is left out: kit.costmodel.plan. Of one microbatch on the slowest stage, or it says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kit.costmodel import collectives, flops, memory, model_traffic, recipes, roofline, shapes
from kit.costmodel.shapes import Shape
from kit.hardware import Profile, Tier


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be trained, and on what. `efficiency` of the peak, `usable` of the memory, both fractions."""

    shape: Shape
    world_size: int
    machine: Profile
    seq_len: int
    global_batch_size: int
    recipe: str = "megatron_bf16"
    dtype: str = "bf16"
    efficiency: float = 0.6
    usable: float = 0.9
    overlap: bool = True

    @property
    def peak_flops_per_s(self) -> float:
        return roofline.peak_flops_per_s(self.machine, self.dtype)


@dataclass(frozen=True, slots=True)
class Layout:
    data_parallel: int
    tensor_parallel: int
    pipeline_parallel: int
    context_parallel: int
    zero_stage: int
    microbatch_size: int
    num_microbatches: int
    recomputation: str


@lru_cache(maxsize=4096)
def layer_flops(job: Job, tensor_parallel: int, batch_size: int) -> tuple[float, float]:
    """(forward, attention's core in it) of one layer on one rank, causal, before context parallelism."""
    products = flops.layer_gemms(job.shape, job.seq_len, batch_size, tensor_parallel)
    return flops.flops_of(products, True), flops.core_of(products, True)


@lru_cache(maxsize=4)
def model_flops(job: Job) -> int | float:
    """Of one step, nothing recomputed, causal: what MFU counts."""
    return flops.iteration_flops_of(job.shape, job.global_batch_size, job.seq_len, "none", True)


def microbatch_s(job: Job, layout: Layout) -> tuple[float, float, float]:
    """(forward, backward with recomputation, attention's core in both) of one microbatch on the slowest stage."""
    b, t, p, c = layout.microbatch_size, layout.tensor_parallel, layout.pipeline_parallel, layout.context_parallel
    whole_layer, core = layer_flops(job, t, b)
    head = flops.logit_forward_flops(b, job.seq_len, job.shape.hidden_size, -(-job.shape.vocab_size // t))
    most = -(-job.shape.num_layers // p)
    last = memory.layers_on_stage(job.shape.num_layers, p, p - 1)
    with_head = last * whole_layer + head
    is_last = with_head >= most * whole_layer
    layers, forward = (last, with_head) if is_last else (most, most * whole_layer)
    again = {"none": 0.0, "selective": layers * core, "full": layers * whole_layer}[layout.recomputation]
    rate = c * job.efficiency * job.peak_flops_per_s
    return forward / rate, (2 * forward + again) / rate, layers * 3 * core / rate


def tensor_s(job: Job, layout: Layout) -> float:
    """All-gathers and reduce-scatters of one microbatch in all layers of a stage."""
    t = layout.tensor_parallel
    if t == 1:
        return 0.0
    tier = tier_of(job, 1, t)
    whole_activation = model_traffic.activation_bytes(
        job.seq_len // layout.context_parallel, layout.microbatch_size, job.shape.hidden_size
    )
    once = collectives.all_gather_s(whole_activation, t, tier.latency_s, tier.bytes_per_s)
    num_layers = -(-job.shape.num_layers // layout.pipeline_parallel)
    return num_layers * (14 if layout.recomputation == "full" else 10) * once


def context_s(job: Job, layout: Layout) -> float:
    """The ring's hops of one microbatch in all layers of a stage: K and V forward, and back with their gradients."""
    c, t = layout.context_parallel, layout.tensor_parallel
    if c == 1:
        return 0.0
    tier = tier_of(job, t, c)
    heads, kv_heads = job.shape.num_heads // t, shapes.kv_heads_of_rank(job.shape.num_kv_heads, t)
    sent = model_traffic.cp_bytes_per_layer(
        job.seq_len, layout.microbatch_size, max(heads, kv_heads), job.shape.head_size, c, kv_heads
    )
    hops = 2 * (c - 1) + c
    return -(-job.shape.num_layers // layout.pipeline_parallel) * (hops * tier.latency_s + sent / tier.bytes_per_s)


def message_s(job: Job, layout: Layout) -> float:
    """One boundary, one way; sequence parallelism sends each rank's part."""
    stride = job.world_size // layout.pipeline_parallel
    tier = tier_of(job, stride, layout.pipeline_parallel)
    sent = model_traffic.pp_bytes_per_microbatch(
        job.seq_len, layout.microbatch_size, job.shape.hidden_size, 2,
        layout.tensor_parallel * layout.context_parallel,
    )  # fmt: skip
    return tier.message_s(sent)


def data_s(job: Job, layout: Layout, forward_s: float, backward_s: float) -> float:
    """What gathers and reductions over dp x cp take longer than what they run behind."""
    n = layout.data_parallel * layout.context_parallel
    if n == 1:
        return 0.0
    tier = tier_of(job, layout.tensor_parallel, n)
    p = layout.pipeline_parallel
    num_params = max(sum(memory.rank_params_of(job.shape, layout.tensor_parallel, p, at)) for at in {0, p // 2, p - 1})
    params, grads = (num_params * recipes.part_bytes(job.recipe, part) for part in ("params", "grads"))
    grads = grads or params
    gather, reduce = (collectives.all_gather_s(size, n, tier.latency_s, tier.bytes_per_s) for size in (params, grads))
    m, stage = layout.num_microbatches, layout.zero_stage
    if not job.overlap:
        forward_s = backward_s = 0.0
    if stage == 0:
        return max(0.0, 2 * reduce - backward_s)
    if stage == 3:
        return m * (max(0.0, gather - forward_s) + max(0.0, gather + reduce - backward_s))
    return max(0.0, gather - forward_s) + (m if stage == 2 else 1) * max(0.0, reduce - backward_s)


def tier_of(job: Job, stride: int, num_ranks: int) -> Tier:
    """The slowest link of the groups of every stride-th rank: inside where each of them lies in one node."""
    per_node, block = job.machine.ranks_per_node, stride * num_ranks
    is_inside = per_node is None or job.world_size <= per_node or per_node % block == 0
    return job.machine.inside if is_inside else job.machine.between
