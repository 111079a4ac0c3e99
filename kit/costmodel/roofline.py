"""The roofline: a product takes the longer of its FLOPs at the peak and its bytes at the memory's bandwidth.

Each operand is read once and the result written once, whatever fits where; nothing overlaps or fuses between products;
norms, activations, softmax and embeddings are left out. So these are lower bounds of time. Peaks and bandwidths are
those of kit.hardware. Source: Williams, Waterman and Patterson, CACM 52(4), 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from kit import hardware
from kit.costmodel import flops, formats, shapes
from kit.costmodel.arguments import exact, one_of, quantity, whole
from kit.costmodel.shapes import Shape, kv_heads_of_rank
from kit.errors import KitError
from kit.hardware import Profile

PHASES = ("prefill", "training", "decode")
PROFILE_DTYPES = {"fp64": "float64", "fp32": "float32", "tf32": "tf32", "fp16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class Cost:
    """One or several products. `bytes` are those that memory moves; intensity is FLOPs a byte."""

    name: str
    flops: int | float
    bytes: int | float
    compute_s: float
    memory_s: float

    @property
    def time_s(self) -> float:
        return max(self.compute_s, self.memory_s)

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes if self.bytes else math.inf

    @property
    def bound_by(self) -> str:
        return "compute" if self.compute_s >= self.memory_s else "memory"


def peak_flops_per_s(profile: str | Profile = "h100", dtype: str = "bf16") -> float:
    """Of a profile, by a format's name; KitError where the profile has no figure. `("a100", "bf16")` -> 312e12."""
    machine, name = hardware.profile(profile), formats.known(dtype)
    wanted = PROFILE_DTYPES.get(name, "float8" if name.startswith("fp8") else name)
    listed = dict(machine.flops_per_s)
    if wanted not in listed:
        raise KitError(f"profile {machine.name} has no peak of {dtype}, only of {', '.join(listed)}")
    return listed[wanted]


def ridge_point(profile: str = "h100", dtype: str = "bf16") -> float:
    """FLOPs a byte from which on compute decides: peak / bandwidth. `ridge_point("a100")` -> 312e12/2039e9 = 153."""
    return peak_flops_per_s(profile, dtype) / hardware.profile(profile).memory_bytes_per_s


def cost(name: str, num_flops: int | float, num_bytes: int | float, dtype: str, machine: Profile) -> Cost:
    peak = peak_flops_per_s(machine, dtype)
    return Cost(name, num_flops, num_bytes, num_flops / peak, num_bytes / machine.memory_bytes_per_s)


def gemm(m: int, n: int, k: int, dtype: str = "bf16", profile: str = "h100", count: int = 1) -> Cost:
    """`count` products of [m, k] by [k, n], operands and result in `dtype`.

    `gemm(4096, 4096, 4096).bound_by` -> "compute"; `gemm(1, 4096, 4096).bound_by` -> "memory".
    """
    times = whole("count", count)
    return cost(
        "gemm",
        times * flops.gemm_flops(m, n, k),
        times * gemm_bytes(m, n, k, dtype),
        dtype,
        hardware.profile(profile),
    )


def gemm_bytes(m: int, n: int, k: int, dtype: str = "bf16") -> int | float:
    """(mk + kn + mn) elements. `gemm_bytes(4096, 4096, 4096)` -> 100,663,296."""
    m, n, k = whole("m", m), whole("n", n), whole("k", k)
    return exact((m * k + k * n + m * n) * formats.bytes_per_element(dtype))


def gemm_intensity(m: int, n: int, k: int, dtype: str = "bf16") -> float:
    """2mnk / bytes; a cube's is n/3 in 16 bits, a vector's just below 1. `gemm_intensity(4096, 4096, 4096)` -> 1365."""
    return flops.gemm_flops(m, n, k) / gemm_bytes(m, n, k, dtype)


def gemm_s(m: int, n: int, k: int, dtype: str = "bf16", profile: str = "h100") -> float:
    """Seconds at the roofline. `gemm_s(4096, 4096, 4096, profile="a100")` -> 137.4e9/312e12 = 440e-6."""
    return gemm(m, n, k, dtype, profile).time_s


def gemm_attainable_flops_per_s(m: int, n: int, k: int, dtype: str = "bf16", profile: str = "h100") -> float:
    """min(peak, intensity x bandwidth). `gemm_attainable_flops_per_s(1, 4096, 4096)` -> 3.35e12 on an H100."""
    it = gemm(m, n, k, dtype, profile)
    return it.flops / it.time_s


def least_rows_for_compute(n: int, k: int, dtype: str = "bf16", profile: str = "h100") -> int:
    """The fewest rows m (tokens of a batch) with which [m, k] by [k, n] is bound by compute.

    m (2nk - r e (n + k)) >= r e nk, r the ridge point, e the bytes of an element. KitError where no m is enough.
    `least_rows_for_compute(8192, 8192, profile="a100")` -> 159.
    """
    n, k = whole("n", n), whole("k", k)
    per_element = ridge_point(profile, dtype) * formats.bytes_per_element(dtype)
    slope = 2 * n * k - per_element * (n + k)
    if slope <= 0:
        raise KitError(f"[m, {k}] by [{k}, {n}] in {dtype} is bound by {profile}'s memory for every m")
    return max(1, math.ceil(per_element * n * k / slope))


def layer(
    model: str | Shape,
    batch_size: int,
    seq_len: int,
    phase: str = "prefill",
    dtype: str = "bf16",
    profile: str = "h100",
    tensor_parallel: int = 1,
    flash: bool | int = True,
    causal: bool | int = False,
) -> tuple[Cost, ...]:
    """The products of the model's last layer on one of `tensor_parallel` ranks, without communication.

    prefill: a forward over batch x seq_len tokens. training: forward and backward, two more products for each.
    decode: one new token a sequence, which attends to `seq_len` tokens in the cache.
    `flash`: attention's scores stay on the chip; backward computes them again (2.5 times the forward's FLOPs).
    Experts: as many are read as tokens can reach, routed to different ones; each is counted whole on this rank.
    """
    one_of("phase", phase, PHASES)
    shape = shapes.shape_named(model) if isinstance(model, str) else model
    machine, each = hardware.profile(profile), formats.bytes_per_element(dtype)
    has_experts = shape.num_moe_layers > 0
    tokens_each = 1 if phase == "decode" else whole("seq_len", seq_len)
    products = flops.layer_gemms(shape, tokens_each, batch_size, tensor_parallel, has_experts)
    passes = 3 if phase == "training" else 1
    rows = []
    for it in products:
        if it.is_core and (flash or phase == "decode"):
            continue
        num_experts = experts_read(shape, it.m) if it.name.startswith("experts") else 1
        numel = it.m * it.k + num_experts * it.k * it.n + it.m * it.n
        half = 0.5 if it.is_core and causal else 1
        done = exact(passes * half * it.flops)
        rows.append(cost(it.name, done, exact(passes * it.count * numel * each), dtype, machine))
    if flash or phase == "decode":
        at = next(index for index, it in enumerate(products) if it.is_core)
        rows.insert(at, attention(shape, batch_size, seq_len, phase, dtype, machine, tensor_parallel, bool(causal)))
    return tuple(rows)


def attention(
    shape: Shape, batch_size: int, seq_len: int, phase: str, dtype: str, machine: Profile, ranks: int, causal: bool
) -> Cost:
    """The fused core: q, k, v read and the output written once; backward reads them and its gradient, and writes three.

    In decode K and V are the cache, once for all heads that share them; MLA is taken with K and V expanded.
    """
    b, s = whole("batch_size", batch_size), whole("seq_len", seq_len)
    heads, kv_heads = shape.num_heads // ranks, kv_heads_of_rank(shape.num_kv_heads, ranks)
    queries = 1 if phase == "decode" else s
    q, out = b * queries * heads * shape.head_size, b * queries * heads * shape.v_head_size
    kv = b * s * kv_heads * (shape.head_size + shape.v_head_size)
    done: int | float = 2 * b * queries * s * heads * (shape.head_size + shape.v_head_size)
    numel = q + kv + out
    if phase == "training":
        numel, done = numel + 2 * (q + kv + out), exact(3.5 * done)
    if causal and phase != "decode":
        done = exact(done / 2)
    return cost("attention", done, exact(numel * formats.bytes_per_element(dtype)), dtype, machine)


def experts_read(shape: Shape, copies: int) -> int:
    """Experts that have work: of the routed ones at most one a copy."""
    tokens = copies // (shape.experts_per_token + shape.num_shared_experts)
    return min(shape.num_experts, tokens * shape.experts_per_token) + shape.num_shared_experts


def total(costs: Iterable[Cost], name: str = "total") -> Cost:
    """FLOPs, bytes and both times added up; the time of the sum is below that of the products one after another."""
    rows = list(costs)
    return Cost(
        name,
        sum(row.flops for row in rows),
        sum(row.bytes for row in rows),
        sum(row.compute_s for row in rows),
        sum(row.memory_s for row in rows),
    )


def layer_s(
    model: str,
    batch_size: int,
    seq_len: int,
    phase: str = "prefill",
    dtype: str = "bf16",
    profile: str = "h100",
    tensor_parallel: int = 1,
    flash: bool | int = True,
    causal: bool | int = False,
) -> float:
    """Seconds of one layer, its products one after another: the sum of `layer`'s times."""
    return sum(
        row.time_s for row in layer(model, batch_size, seq_len, phase, dtype, profile, tensor_parallel, flash, causal)
    )


def layer_intensity(
    model: str, batch_size: int, seq_len: int, phase: str = "prefill", dtype: str = "bf16", tensor_parallel: int = 1
) -> float:
    """FLOPs a byte of one layer, all products together. Decoding a batch B in 16 bits at short context: near B."""
    return total(layer(model, batch_size, seq_len, phase, dtype, "h100", tensor_parallel)).intensity


def decode_step_s(
    model: str,
    batch_size: int,
    context_len: int,
    dtype: str = "bf16",
    profile: str = "h100",
    tensor_parallel: int = 1,
) -> float:
    """One token for every sequence of the batch: all layers and the output matrix, which is split by vocabulary.

    At small batches it is the weights and the cache over the bandwidth. Layers of a mixture all count as such.
    `decode_step_s("llama2-7b", 1, 1)` -> (2 x 6.6e9)/3.35e12 = 3.9e-3: the floor of a token on an H100.
    """
    shape = shapes.shape_named(model)
    t = whole("tensor_parallel", tensor_parallel)
    one = layer_s(model, batch_size, context_len, "decode", dtype, profile, t)
    return shape.num_layers * one + gemm_s(batch_size, -(-shape.vocab_size // t), shape.hidden_size, dtype, profile)


def prefill_s(
    model: str,
    batch_size: int,
    seq_len: int,
    dtype: str = "bf16",
    profile: str = "h100",
    tensor_parallel: int = 1,
    causal: bool | int = True,
) -> float:
    """A prompt through all layers, and the output matrix for each sequence's last token."""
    shape = shapes.shape_named(model)
    t = whole("tensor_parallel", tensor_parallel)
    one = layer_s(model, batch_size, seq_len, "prefill", dtype, profile, t, causal=causal)
    return shape.num_layers * one + gemm_s(batch_size, -(-shape.vocab_size // t), shape.hidden_size, dtype, profile)


def time_of_bytes_s(num_bytes: int | float, profile: str = "h100") -> float:
    """Bytes over the memory's bandwidth. `time_of_bytes_s(140e9)` -> 0.0418: 70e9 weights in 16 bits, read once."""
    return quantity("num_bytes", num_bytes) / hardware.profile(profile).memory_bytes_per_s
