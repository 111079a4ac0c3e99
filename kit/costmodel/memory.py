"""Bytes on one rank: model state under ZeRO, and the activations of a transformer layer.

Conventions differ by source, so each is named: `model_state_bytes` says which bytes a parameter costs, and
`recipes` holds the conventions by name. Model state is what lives between two steps: no activations, no buffers.
"""

from __future__ import annotations

from kit.costmodel.arguments import evenly, exact, one_of, quantity, quotient, whole
from kit.costmodel.recipes import recipe_named
from kit.costmodel.shapes import Shape, kv_heads_of_rank, shape_named
from kit.errors import KitError

RECOMPUTATIONS = ("none", "selective", "full")


def model_state_bytes(
    num_params: int | float,
    world_size: int,
    stage: int = 0,
    optimizer_bytes_per_param: int | float = 12,
    param_bytes_per_param: int | float = 2,
    grad_bytes_per_param: int | float = 2,
) -> int | float:
    """Parameters, gradients and optimizer state of one rank between two steps.

    The defaults are the convention of ZeRO (arXiv 1910.02054, section 5): 2 bytes of 16-bit parameters, 2 of 16-bit
    gradients, and K = 12 of optimizer state (fp32 parameters, momentum and variance of Adam). Stage 1 shards the
    optimizer state over the ranks, stage 2 also the gradients, stage 3 also the parameters; stage 0 shards nothing.
    `model_state_bytes(7.5e9, 64, stage=1)` -> 31.41e9. Shards are equal: padding is not counted.
    """
    n = whole("world_size", world_size)
    stage = whole("stage", stage, at_least=0, at_most=3)
    psi = exact(quantity("num_params", num_params))
    parts = [
        (3, quantity("param_bytes_per_param", param_bytes_per_param)),
        (2, quantity("grad_bytes_per_param", grad_bytes_per_param)),
        (1, quantity("optimizer_bytes_per_param", optimizer_bytes_per_param)),
    ]
    whole_bytes = sum(each for sharded_from, each in parts if stage < sharded_from)
    sharded_bytes = sum(each for sharded_from, each in parts if stage >= sharded_from)
    return exact(exact(whole_bytes * psi) + quotient(exact(sharded_bytes * psi), n))


def bytes_per_param(
    world_size: int,
    stage: int = 0,
    optimizer_bytes_per_param: int | float = 12,
    param_bytes_per_param: int | float = 2,
    grad_bytes_per_param: int | float = 2,
) -> int | float:
    """Model state of one rank for each parameter of the model: 4 + K/n, 2 + (2+K)/n, (4+K)/n for stages 1, 2, 3."""
    return model_state_bytes(
        1, world_size, stage, optimizer_bytes_per_param, param_bytes_per_param, grad_bytes_per_param
    )


def activation_bytes_per_layer(
    seq_len: int,
    microbatch_size: int,
    hidden_size: int,
    num_heads: int,
    tensor_parallel: int = 1,
    sequence_parallel: bool | int = False,
    recomputation: str = "none",
) -> int | float:
    """What one rank keeps of one transformer layer for its backward, 16-bit activations and 1-byte dropout masks.

    sbh(10 + 24/t + 5as/(ht)) with tensor parallelism, sbh(34 + 5as/h)/t with sequence parallelism too. "selective"
    recomputes attention's core and drops the term with a; "full" keeps the layer's input only, 2sbh, on every rank.
    Source: Korthikanti et al., arXiv 2205.05198, Table 2. No flash attention; the MLP is 4h wide; h/t is whole.
    """
    s, b = whole("seq_len", seq_len), whole("microbatch_size", microbatch_size)
    h, a = whole("hidden_size", hidden_size), whole("num_heads", num_heads)
    t = whole("tensor_parallel", tensor_parallel)
    one_of("recomputation", recomputation, RECOMPUTATIONS)
    if a % t:
        raise KitError(f"num_heads={a} cannot be split over tensor_parallel={t} ranks")
    if recomputation == "full":
        return 2 * s * b * h
    scores = 5 * a * s * s * b if recomputation == "none" else 0
    if sequence_parallel:
        return quotient(34 * s * b * h + scores, t)
    return 10 * s * b * h + quotient(24 * s * b * h + scores, t)


def recipe_state_bytes(
    num_params: int | float, recipe: str = "zero", data_parallel: int = 1, zero_stage: int = 0
) -> int | float:
    """Model state of one rank by a named recipe of `recipes`, with ZeRO over `data_parallel` ranks.

    `recipe_state_bytes(7e9, "megatron_bf16", 8, 1)` -> 52.5e9: Megatron's distributed optimizer, 6 + 12/8 bytes each.
    """
    it = recipe_named(recipe)
    return model_state_bytes(num_params, data_parallel, zero_stage, it.optimizer, it.params, it.grads)


def layers_on_stage(num_layers: int, pipeline_parallel: int, pipeline_stage: int = 0) -> int:
    """Layers of one pipeline stage: equal where they divide, else stages in the middle take one more.

    The first stage has the embedding and the last the output matrix. `layers_on_stage(126, 16, 0)` -> 7, and 8 on
    stages 1 to 14: Llama 3 405B, arXiv 2407.21783, section 3.3.2. Raises KitError for more stages than layers.
    """
    first, end = layer_range(num_layers, pipeline_parallel, pipeline_stage)
    return end - first


def layer_range(num_layers: int, pipeline_parallel: int, pipeline_stage: int) -> tuple[int, int]:
    """[first, end) of a stage's layers, in the order of the model."""
    p = whole("pipeline_parallel", pipeline_parallel)
    num_layers = whole("num_layers", num_layers)
    if num_layers < p:
        raise KitError(f"num_layers={num_layers} are fewer than pipeline_parallel={p} stages")
    stage = whole("pipeline_stage", pipeline_stage, at_least=0, at_most=p - 1)
    each, left = divmod(num_layers, p)
    before = (p - left + 1) // 2  # the first stage holds the most microbatches: it is the last to get another layer
    first, end = (each * i + min(max(i - before, 0), left) for i in (stage, stage + 1))
    return first, end


def rank_params_of(
    shape: Shape,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    pipeline_stage: int = 0,
    expert_parallel: int = 1,
    expert_tensor_parallel: int = 0,
) -> tuple[int, int]:
    """(dense, routed experts') parameters of one rank; the two are sharded over different ranks by ZeRO."""
    t, p = whole("tensor_parallel", tensor_parallel), whole("pipeline_parallel", pipeline_parallel)
    ep = whole("expert_parallel", expert_parallel)
    etp = whole("expert_tensor_parallel", expert_tensor_parallel, at_least=0) or t
    first, end = layer_range(shape.num_layers, p, pipeline_stage)
    first_moe = shape.num_layers - shape.num_moe_layers
    num_dense, num_moe = max(min(end, first_moe) - first, 0), max(end - max(first, first_moe), 0)
    each_layer = attention_params_of_rank(shape, t) + shape.norms_per_layer * shape.norm_params
    dense = (end - first) * each_layer
    if num_dense:
        dense += num_dense * mlp_params_of_rank(shape, shape.ffn_size, t)
    experts = 0
    if num_moe:
        shared = shape.num_shared_experts * mlp_params_of_rank(shape, shape.expert_ffn_size, t)
        dense += num_moe * (shape.router_params + shared)
        held = evenly("num_experts", shape.num_experts, "expert_parallel", ep)
        experts = num_moe * held * mlp_params_of_rank(shape, shape.expert_ffn_size, etp, "expert_tensor_parallel")
    elif ep > 1 and not shape.num_experts:
        raise KitError(f"expert_parallel={ep} needs a mixture of experts")
    vocab = -(-shape.vocab_size // t) * shape.hidden_size
    if pipeline_stage == 0:
        dense += vocab + shape.position_params + shape.has_embedding_norm * shape.norm_params
    if pipeline_stage == p - 1:
        dense += shape.norm_params + (0 if shape.tied_embeddings and p == 1 else vocab)
    return dense, experts


def attention_params_of_rank(shape: Shape, tensor_parallel: int) -> int:
    """One layer's: heads are split, key-value heads too or else replicated, what follows the reduction is whole."""
    h, t = shape.hidden_size, tensor_parallel
    heads = evenly("num_heads", shape.num_heads, "tensor_parallel", t)
    if shape.attention == "mla":
        split = (shape.num_heads - heads) * (
            (shape.q_lora_rank or h) * shape.head_size
            + shape.kv_lora_rank * (shape.qk_nope_size + shape.v_head_size)
            + shape.v_head_size * h
        )
        return shape.attention_params - split
    q_width = heads * shape.head_size
    kv_width = 2 * kv_heads_of_rank(shape.num_kv_heads, t) * shape.head_size
    biases = (q_width + kv_width) * (shape.linear_biases or shape.has_qkv_bias) + h * shape.linear_biases
    return h * (2 * q_width + kv_width) + biases


def mlp_params_of_rank(shape: Shape, ffn_size: int, ranks: int, ranks_name: str = "tensor_parallel") -> int:
    """Columns of the first matrix and rows of the second are split; the second's bias is whole."""
    return shape.mlp_params(evenly("ffn_size", ffn_size, ranks_name, ranks))


def rank_params(
    model: str,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    pipeline_stage: int = 0,
    expert_parallel: int = 1,
    expert_tensor_parallel: int = 0,
) -> int:
    """Parameters of a named model on one rank, before ZeRO.

    TP splits projections, MLPs, embedding and output matrix (the vocabulary padded to a multiple of t), and leaves
    norms, positions, routers and the biases after a reduction whole. PP: `layers_on_stage`; the first stage has the
    embedding, the last the final norm and the output matrix, or a copy of a tied embedding. EP splits routed
    experts; each is split over expert_tensor_parallel ranks, 0 meaning tensor_parallel.
    `rank_params("llama3.1-70b", 8)` -> 8820367360. Sources: Megatron-LM, arXiv 1909.08053, section 3, and 2104.04473.
    """
    return sum(
        rank_params_of(
            shape_named(model), tensor_parallel, pipeline_parallel, pipeline_stage, expert_parallel,
            expert_tensor_parallel,
        )
    )  # fmt: skip


def rank_state_bytes(
    model: str,
    recipe: str = "zero",
    zero_stage: int = 0,
    data_parallel: int = 1,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    pipeline_stage: int = 0,
    context_parallel: int = 1,
    expert_parallel: int = 1,
    expert_tensor_parallel: int = 0,
) -> int | float:
    """Model state of a named model on one rank of dp x cp x tp x pp ranks.

    `rank_params` at the recipe's bytes; ZeRO shards dense parameters over the dp x cp ranks that hold the same, and
    experts over dp cp tp / (ep etp). Raises KitError where that is not whole.
    `rank_state_bytes("gpt3-175b", "megatron_bf16", 1, data_parallel=8, tensor_parallel=8, pipeline_parallel=16)`.
    Sources: recipes', ZeRO section 5, Megatron-LM's docs of the distributed optimizer and of parallel folding.
    """
    return rank_state_bytes_of(
        shape_named(model), recipe, zero_stage, data_parallel, tensor_parallel, pipeline_parallel, pipeline_stage,
        context_parallel, expert_parallel, expert_tensor_parallel,
    )  # fmt: skip


def rank_state_bytes_of(
    shape: Shape,
    recipe: str = "zero",
    zero_stage: int = 0,
    data_parallel: int = 1,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    pipeline_stage: int = 0,
    context_parallel: int = 1,
    expert_parallel: int = 1,
    expert_tensor_parallel: int = 0,
) -> int | float:
    """As `rank_state_bytes`, of a shape."""
    dense, experts = rank_params_of(
        shape, tensor_parallel, pipeline_parallel, pipeline_stage, expert_parallel, expert_tensor_parallel
    )
    replicas = whole("data_parallel", data_parallel) * whole("context_parallel", context_parallel)
    total = recipe_state_bytes(dense, recipe, replicas, zero_stage)
    if shape.num_experts:
        etp = expert_tensor_parallel or tensor_parallel
        sharers = evenly(
            "data_parallel x context_parallel x tensor_parallel", replicas * tensor_parallel,
            "expert_parallel x expert_tensor_parallel", expert_parallel * etp,
        )  # fmt: skip
        total += recipe_state_bytes(experts, recipe, sharers, zero_stage)
    return exact(total)


def frozen_and_trained_bytes(
    frozen_params: int | float,
    trained_params: int | float,
    recipe: str = "zero",
    data_parallel: int = 1,
    zero_stage: int = 0,
    frozen_bytes_per_param: int | float = 2,
) -> int | float:
    """Model state where few parameters are trained, as with LoRA: frozen ones have no gradient and no optimizer state.

    Stage 3 shards the frozen too. `frozen_and_trained_bytes(7e9, 20e6)` -> 14e9 + 0.32e9; 0.5 bytes with 4-bit weights.
    Sources: LoRA, arXiv 2106.09685, section 4.2; QLoRA, arXiv 2305.14314 (its constants of quantization are left out).
    """
    trained = recipe_state_bytes(trained_params, recipe, data_parallel, zero_stage)
    frozen = exact(quantity("frozen_params", frozen_params))
    held = exact(frozen * quantity("frozen_bytes_per_param", frozen_bytes_per_param))
    return exact(trained + (quotient(held, data_parallel) if zero_stage == 3 else held))


def lora_params(num_layers: int, in_features: int, out_features: int, rank: int, num_matrices: int = 1) -> int:
    """r (in + out) for each adapted matrix. `lora_params(32, 4096, 4096, 8, 2)` -> 4194304. arXiv 2106.09685."""
    width = whole("in_features", in_features) + whole("out_features", out_features)
    return whole("num_layers", num_layers) * whole("num_matrices", num_matrices) * whole("rank", rank) * width


def fsdp_peak_param_numel(
    num_params: int, largest_unit_params: int, shards: int, num_gathered_units: int = 1
) -> int | float:
    """Elements of parameters that one rank holds at most: all of its shards and the units gathered, Ψ/F + k max ψ.

    `fsdp_peak_param_numel(8000, 1000, 8)` -> 2000. With one unit fetched ahead two are gathered at a time: k = 2.
    Source: PyTorch FSDP, arXiv 2304.11277, section 3.2.1. Padding, at most F - 1 elements a unit, is not counted.
    """
    total, largest = whole("num_params", num_params), whole("largest_unit_params", largest_unit_params)
    gathered = whole("num_gathered_units", num_gathered_units)
    if largest > total:
        raise KitError(f"largest_unit_params={largest} are more than num_params={total}")
    return exact(quotient(total, whole("shards", shards)) + min(gathered * largest, total))
