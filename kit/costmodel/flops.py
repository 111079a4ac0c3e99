"""FLOPs of a transformer, matrix products only: 2mnk each. Norms, softmax, activations and embeddings are left out.

Backward costs twice its forward: one product for the input's gradient and one for the weight's. Papers differ in
two ways, so each is an argument: whether a causal mask halves attention's core (q k^T and the product with v; it does
not in PTD-P and PaLM), and whether what is recomputed counts (in hardware FLOPs and HFU, not in model FLOPs and MFU).
"""

from __future__ import annotations

from dataclasses import dataclass

from kit.costmodel.arguments import evenly, exact, one_of, quantity, quotient, whole
from kit.costmodel.memory import RECOMPUTATIONS
from kit.costmodel.shapes import Shape, kv_heads_of_rank, shape_named, shape_of
from kit.errors import KitError


@dataclass(frozen=True, slots=True)
class Gemm:
    """`count` products of [m, k] by [k, n]; `is_core` says that it is of attention's core, which holds no weights.

    Experts are one grouped product: m counts each token once for every expert that it goes to.
    """

    name: str
    m: int
    n: int
    k: int
    count: int = 1
    is_core: bool = False

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k * self.count


def layer_gemms(
    shape: Shape, seq_len: int, batch_size: int = 1, tensor_parallel: int = 1, has_experts: bool = False
) -> tuple[Gemm, ...]:
    """Forward products of one layer on one of `tensor_parallel` ranks, in the order of execution.

    Each rank multiplies by its own heads and its own columns of the MLP; key-value heads fewer than the ranks are
    replicated. Raises KitError where heads or widths do not divide.
    """
    s, b, t = whole("seq_len", seq_len), whole("batch_size", batch_size), whole("tensor_parallel", tensor_parallel)
    tokens, h = b * s, shape.hidden_size
    heads = evenly("num_heads", shape.num_heads, "tensor_parallel", t)
    core = (
        Gemm("scores", s, s, shape.head_size, b * heads, is_core=True),
        Gemm("values", s, shape.v_head_size, s, b * heads, is_core=True),
    )
    projections = mla_projections(shape, tokens, heads) if shape.attention == "mla" else qkv(shape, tokens, heads, t)
    output = Gemm("attention_output", tokens, h, heads * shape.v_head_size)
    num_in = 2 if shape.gated else 1
    if not has_experts:
        f = evenly("ffn_size", shape.ffn_size, "tensor_parallel", t)
        return (*projections, *core, output, Gemm("mlp_in", tokens, num_in * f, h), Gemm("mlp_out", tokens, h, f))
    f = evenly("expert_ffn_size", shape.expert_ffn_size, "tensor_parallel", t)
    copies = tokens * (shape.experts_per_token + shape.num_shared_experts)
    return (
        *projections,
        *core,
        output,
        Gemm("router", tokens, shape.num_experts, h),
        Gemm("experts_in", copies, num_in * f, h),
        Gemm("experts_out", copies, h, f),
    )


def qkv(shape: Shape, tokens: int, heads: int, ranks: int) -> tuple[Gemm, ...]:
    kv_heads = kv_heads_of_rank(shape.num_kv_heads, ranks)
    return (Gemm("qkv", tokens, (heads + 2 * kv_heads) * shape.head_size, shape.hidden_size),)


def mla_projections(shape: Shape, tokens: int, heads: int) -> tuple[Gemm, ...]:
    """Down-projections are replicated, up-projections split by heads."""
    h, r = shape.hidden_size, shape.q_lora_rank
    query = (
        (Gemm("q_down", tokens, r, h), Gemm("q_up", tokens, heads * shape.head_size, r))
        if r
        else (Gemm("q", tokens, heads * shape.head_size, h),)
    )
    return (
        *query,
        Gemm("kv_down", tokens, shape.kv_lora_rank + shape.qk_rope_size, h),
        Gemm("kv_up", tokens, heads * (shape.qk_nope_size + shape.v_head_size), shape.kv_lora_rank),
    )


def core_of(gemms: tuple[Gemm, ...], causal: bool | int) -> int | float:
    whole_core = sum(gemm.flops for gemm in gemms if gemm.is_core)
    return quotient(whole_core, 2) if causal else whole_core


def flops_of(gemms: tuple[Gemm, ...], causal: bool | int = False) -> int | float:
    return sum(gemm.flops for gemm in gemms if not gemm.is_core) + core_of(gemms, causal)


def iteration_flops_of(
    shape: Shape, batch_size: int, seq_len: int, recomputation: str = "none", causal: bool | int = False
) -> int | float:
    """As `iteration_flops`, of a shape."""
    one_of("recomputation", recomputation, RECOMPUTATIONS)
    layers = [(shape.num_layers - shape.num_moe_layers, False), (shape.num_moe_layers, True)]
    total: int | float = 3 * logit_forward_flops(batch_size, seq_len, shape.hidden_size, shape.vocab_size)
    for num_layers, has_experts in layers:
        if num_layers:
            gemms = layer_gemms(shape, seq_len, batch_size, has_experts=has_experts)
            once, core = flops_of(gemms, causal), core_of(gemms, causal)
            again = {"none": 0, "selective": core, "full": once}[recomputation]
            total += num_layers * (3 * once + again)
    return exact(total)


def forward_flops_of(shape: Shape, batch_size: int, seq_len: int, causal: bool | int = False) -> int | float:
    """Forward of the whole model, logits included."""
    return quotient(exact(iteration_flops_of(shape, batch_size, seq_len, "none", causal)), 3)


def gemm_flops(m: int, n: int, k: int) -> int:
    """2mnk: a multiplication and an addition for each of the mnk terms. `gemm_flops(4096, 4096, 4096)` -> 137.4e9."""
    return 2 * whole("m", m) * whole("n", n) * whole("k", k)


def layer_forward_flops(
    seq_len: int,
    batch_size: int,
    hidden_size: int,
    ffn_size: int = 0,
    num_heads: int = 1,
    num_kv_heads: int = 0,
    gated: bool | int = False,
    causal: bool | int = False,
) -> int | float:
    """Forward of one layer: 24 B s h^2 + 4 B s^2 h for a GPT. ffn_size=0 means 4h, num_kv_heads=0 as many as heads.

    In general 2Bs (2h^2 + 2h^2 g/a + (2 or, gated, 3) h f) + 4 B s^2 h, the last halved by a causal mask.
    Source: PTD-P, arXiv 2104.04473, appendix. With backward it is 3 times this, with full recomputation 4 times.
    """
    shape = shape_of(
        num_layers=1,
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        ffn_size=whole("ffn_size", ffn_size, at_least=0) or 4 * hidden_size,
        gated=bool(gated),
        vocab_size=1,
    )
    return flops_of(layer_gemms(shape, seq_len, batch_size), causal)


def layer_backward_flops(seq_len: int, batch_size: int, hidden_size: int, part: str = "both") -> int:
    """Backward of a GPT layer, no causal halving: of the input ("input"), of the weights ("weight"), or both.

    Input sbh(24h + 8s), weights sbh(24h), together twice the forward sbh(24h + 4s): attention's core has no weights,
    so its backward is all input. What zero-bubble schedules call B and W. Source: arXiv 2401.10241, Table 1.
    """
    shape = shape_of(num_layers=1, hidden_size=hidden_size, num_heads=1, vocab_size=1)
    gemms = layer_gemms(shape, seq_len, batch_size)
    weight = sum(gemm.flops for gemm in gemms if not gemm.is_core)
    both = 2 * sum(gemm.flops for gemm in gemms)
    return {"input": both - weight, "weight": weight, "both": both}[one_of("part", part, ("input", "weight", "both"))]


def attention_core_flops(
    seq_len: int,
    batch_size: int,
    num_heads: int,
    head_size: int,
    causal: bool | int = False,
    direction: str = "forward",
    flash: bool | int = False,
) -> int | float:
    """q k^T and the product with v: 4 B s^2 a d forward, twice that backward, half of it under a causal mask.

    FlashAttention computes the scores again in backward: 2.5 times its forward. `direction`: forward, backward, both.
    Source: FlashAttention-2, arXiv 2307.08691, section 4.1.
    """
    s, b = whole("seq_len", seq_len), whole("batch_size", batch_size)
    halves = 4 * b * s * s * whole("num_heads", num_heads) * whole("head_size", head_size)  # in units of one half
    halves *= {"forward": 2, "backward": 5 if flash else 4, "both": 7 if flash else 6}[
        one_of("direction", direction, ("forward", "backward", "both"))
    ]
    return quotient(halves, 4 if causal else 2)


def logit_forward_flops(batch_size: int, seq_len: int, hidden_size: int, vocab_size: int) -> int:
    """2 B s h V, the output matrix. With backward 6 B s h V: it is not recomputed. Source: PTD-P, appendix."""
    return gemm_flops(
        whole("batch_size", batch_size) * whole("seq_len", seq_len),
        whole("vocab_size", vocab_size),
        whole("hidden_size", hidden_size),
    )


def logits_in_layers(seq_len: int, hidden_size: int, vocab_size: int) -> float:
    """The output matrix in layers of a GPT: 2BshV over 24Bsh^2 + 4Bs^2h, so V/(12h + 2s); forward, or both passes.

    It weighs on the last stage of a pipeline. `logits_in_layers(2048, 4096, 51200)` -> 0.96.
    Source: PTD-P, arXiv 2104.04473, appendix.
    """
    layer = layer_forward_flops(seq_len, 1, hidden_size)
    return logit_forward_flops(1, seq_len, hidden_size, vocab_size) / layer


def gpt_iteration_flops(
    batch_size: int,
    seq_len: int,
    num_layers: int,
    hidden_size: int,
    vocab_size: int,
    recomputation: str = "full",
    causal: bool | int = False,
) -> int | float:
    """An iteration of a GPT over B sequences: 96 B s l h^2 (1 + s/(6h) + V/(16 l h)) with full recomputation.

    72 B s l h^2 (1 + s/(6h) + V/(12 l h)) without; selective recomputation adds attention's core, 4 B s^2 h l.
    Sources: PTD-P, arXiv 2104.04473, equation 3; Korthikanti et al., arXiv 2205.05198, appendix A.
    """
    shape = shape_of(num_layers=num_layers, hidden_size=hidden_size, num_heads=1, vocab_size=vocab_size)
    return iteration_flops_of(shape, batch_size, seq_len, recomputation, causal)


def iteration_flops(
    model: str, batch_size: int, seq_len: int, recomputation: str = "none", causal: bool | int = False
) -> int | float:
    """Forward, backward and what is recomputed, of a named model over `batch_size` sequences, all ranks together.

    3 times the forward; "full" adds the layers' forward (not the logits'), "selective" attention's core.
    A mixture of experts counts the experts that a token uses. `iteration_flops("gpt3-175b", 1536, 2048)` -> 3.4e18.
    """
    return iteration_flops_of(shape_named(model), batch_size, seq_len, recomputation, causal)


def flops_per_token(model: str, seq_len: int, recomputation: str = "none", causal: bool | int = False) -> int | float:
    """Training FLOPs of a named model for each token: `iteration_flops` over the tokens."""
    return quotient(iteration_flops(model, 1, seq_len, recomputation, causal), whole("seq_len", seq_len))


def forward_flops_per_token(model: str, seq_len: int, causal: bool | int = False) -> int | float:
    """Forward FLOPs of a named model for each token of a sequence, logits included: near 2N for short ones."""
    return quotient(forward_flops_of(shape_named(model), 1, seq_len, causal), whole("seq_len", seq_len))


def decode_flops_per_token(model: str, context_len: int) -> int:
    """Forward of one new token that attends to `context_len` tokens, itself included, from the KV cache.

    2 for each weight of a product, and 2 L a (d + d_v) for each token of context. MLA is counted unabsorbed: keys and
    values of the context are taken to be there, not to be projected from their latents again.
    """
    shape, length = shape_named(model), whole("context_len", context_len)
    per_token = forward_flops_of(shape, 1, 1)
    one_of_context = 2 * shape.num_layers * shape.num_heads * (shape.head_size + shape.v_head_size)
    return int(per_token) + (length - 1) * one_of_context


def training_flops(num_params: int | float, num_tokens: int | float, flops_per_param: int | float = 6) -> int | float:
    """6ND: 2 forward and 4 backward for each parameter and token; 8 with full recomputation.

    Attention's core is left out, and the embedding counts although it multiplies nothing. Of a mixture of experts
    N is what a token uses. `training_flops(174.6e9, 300e9)` -> 3.14e23. Source: GPT-3, arXiv 2005.14165, Table D.1.
    """
    params, tokens = quantity("num_params", num_params), quantity("num_tokens", num_tokens)
    return exact(exact(params) * exact(tokens) * exact(quantity("flops_per_param", flops_per_param)))


def petaflop_s_days(flops: int | float) -> float:
    """FLOPs over 8.64e19. `petaflop_s_days(3.14e23)` -> 3634. Source: GPT-3, arXiv 2005.14165, Table D.1."""
    return quantity("flops", flops) / (1e15 * 86400)


def palm_flops_per_token(
    num_params: int | float, num_layers: int, num_heads: int, head_size: int, seq_len: int
) -> int | float:
    """6N + 12 L H Q T: training FLOPs for each token, attention's core included, no causal halving.

    `palm_flops_per_token(540.35e9, 118, 48, 256, 2048)` -> 3.28e12. Source: PaLM, arXiv 2204.02311, appendix B.
    """
    core = 12 * whole("num_layers", num_layers) * whole("num_heads", num_heads)
    core *= whole("head_size", head_size) * whole("seq_len", seq_len)
    return exact(6 * exact(quantity("num_params", num_params)) + core)


def mfu(
    tokens_per_s: int | float,
    model_flops_per_token: int | float,
    num_gpus: int,
    peak_flops_per_s: int | float,
) -> float:
    """Model FLOPs utilisation, a fraction: what the model needs over what the GPUs could do.

    Recomputation does not count. `mfu(238300, 3.28e12, 6144, 275e12)` -> 0.462. Source: PaLM, section 4.1.
    """
    return utilisation(
        quantity("tokens_per_s", tokens_per_s) * quantity("model_flops_per_token", model_flops_per_token),
        whole("num_gpus", num_gpus) * quantity("peak_flops_per_s", peak_flops_per_s),
    )


def hfu(
    tokens_per_s: int | float,
    hardware_flops_per_token: int | float,
    num_gpus: int,
    peak_flops_per_s: int | float,
) -> float:
    """Hardware FLOPs utilisation, a fraction: as `mfu`, of all that is executed, what is recomputed included."""
    return mfu(tokens_per_s, hardware_flops_per_token, num_gpus, peak_flops_per_s)


def utilisation(used: float, could: float) -> float:
    """Raises KitError where more is used than there is: an argument is off by a unit then."""
    if could <= 0:
        raise KitError(f"peak_flops_per_s must be above 0, got {could!r} in all")
    if used > could * (1 + 1e-9):  # what was divided and multiplied again may be a rounding above
        raise KitError(f"{used:.4g} FLOP/s are more than the peak of all GPUs, {could:.4g}")
    return min(1.0, used / could)


def achieved_flops_per_s(iteration_flops: int | float, iteration_s: int | float, num_gpus: int) -> float:
    """FLOP/s of each GPU: what an iteration costs over its time and the GPUs. Source: PTD-P, Table 1."""
    seconds = quantity("iteration_s", iteration_s)
    if seconds == 0:
        raise KitError("iteration_s must be above 0")
    return quantity("iteration_flops", iteration_flops) / seconds / whole("num_gpus", num_gpus)
