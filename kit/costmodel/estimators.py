"""What tools and papers themselves print as an estimate, each by its own formula and with what it leaves out.

They disagree with one another and with `memory` by design: a question that quotes one names it.
"""

from __future__ import annotations

from kit.costmodel.arguments import exact, quantity, quotient, whole
from kit.costmodel.recipes import bytes_per_param
from kit.errors import KitError


def deepspeed_zero2_gpu_bytes(num_params: int | float, num_gpus: int, is_offloaded: bool | int = False) -> int | float:
    """DeepSpeed's estimate of ZeRO-2's model state on a GPU: 4P + 16P/n, or 2P with the optimizer on CPU.

    Gradients are not sharded in it: the 16-bit ones count in full and the fp32 ones among the 16.
    `deepspeed_zero2_gpu_bytes(2.851e9, 8)` -> 17.1e9, printed as 15.93GB, which are GiB.
    Source: DeepSpeed docs, memory requirements, estimate_zero2_model_states_mem_needs_all_live.
    """
    params = exact(quantity("num_params", num_params))
    n = whole("num_gpus", num_gpus)
    return exact(2 * params) if is_offloaded else exact(4 * params + quotient(exact(16 * params), n))


def deepspeed_zero2_cpu_bytes(
    num_params: int | float,
    gpus_per_node: int,
    num_nodes: int = 1,
    is_offloaded: bool | int = False,
    buffer_factor: int | float = 1.5,
) -> int | float:
    """DeepSpeed's estimate of ZeRO-2's memory on a host: every process loads 4P, or max(4n, 16) P offloaded.

    Times `buffer_factor`. `deepspeed_zero2_cpu_bytes(2.851e9, 8)` -> 136.8e9, printed as 127.45GB, which are GiB.
    Source: as `deepspeed_zero2_gpu_bytes`; n counts all GPUs where it is offloaded, else a node's.
    """
    params, g = exact(quantity("num_params", num_params)), whole("gpus_per_node", gpus_per_node)
    each = max(4 * g * whole("num_nodes", num_nodes), 16) if is_offloaded else 4 * g
    return exact(each * params * quantity("buffer_factor", buffer_factor))


def deepspeed_zero3_gpu_bytes(
    num_params: int | float, largest_layer_params: int | float, num_gpus: int, offloaded: str = "none"
) -> int | float:
    """DeepSpeed's estimate of ZeRO-3's model state on a GPU: 4 x largest layer + 18P/n.

    The optimizer on CPU leaves 2P/n of the 18, parameters there too leave none. `offloaded`: none, optimizer, all.
    Source: DeepSpeed docs, memory requirements, estimate_zero3_model_states_mem_needs_all_live.
    """
    kept = {"none": 18, "optimizer": 2, "all": 0}
    if offloaded not in kept:
        raise KitError(f"offloaded must be one of none, optimizer, all, got {offloaded!r}")
    largest = exact(quantity("largest_layer_params", largest_layer_params))
    sharded = exact(kept[offloaded] * exact(quantity("num_params", num_params)))
    return exact(4 * largest + quotient(sharded, whole("num_gpus", num_gpus)))


def deepspeed_overlap_buffer_bytes(
    bucket_numel: int | float = 500_000_000, bytes_per_element: int | float = 2, factor: int | float = 4.5
) -> int | float:
    """What `overlap_comm` costs: 4.5 times the all-gather and the reduce bucket. `(5e8)` -> 9e9.

    Source: Hugging Face transformers, docs of DeepSpeed: 5e8 x 2 bytes x 2 x 4.5.
    """
    buckets = 2 * quantity("bucket_numel", bucket_numel) * quantity("bytes_per_element", bytes_per_element)
    return exact(buckets * quantity("factor", factor))


def megatron_layer_params(
    hidden_size: int,
    ffn_size: int,
    num_heads: int,
    num_kv_heads: int = 0,
    head_size: int = 0,
    gated: bool | int = False,
    norm: str = "layernorm",
) -> int | float:
    """Megatron-LM's count of a layer: 2h^2 (1 + g/a) ad/h + 2h (1.5 f or f + n), n = 2 for LayerNorm, 1 for RMSNorm.

    Biases of the linear layers are left out. `megatron_layer_params(4096, 11008, 32, gated=True, norm="rmsnorm")` is
    Llama 2 7B's layer. Source: Megatron-LM, megatron/training/theoretical_memory_usage.py.
    """
    h, a = whole("hidden_size", hidden_size), whole("num_heads", num_heads)
    width = a * head_size if head_size else h
    norms = {"layernorm": 2, "rmsnorm": 1}
    if norm not in norms:
        raise KitError(f"norm must be one of layernorm, rmsnorm, got {norm!r}")
    attention = 2 * h * width + quotient(2 * h * width * (num_kv_heads or a), a)
    return attention + (3 if gated else 2) * h * whole("ffn_size", ffn_size) + 2 * h * norms[norm]


def megatron_state_bytes(
    rank_params: int | float, data_parallel: int = 1, has_distributed_optimizer: bool | int = False
) -> int | float:
    """Megatron-LM's weights and optimizer of its most loaded rank: 18 bytes a parameter, or 6 + 12/dp.

    Source: Megatron-LM, report_theoretical_memory, which prints MB of 2^20 bytes.
    """
    each = bytes_per_param("megatron_bf16", data_parallel, 1 if has_distributed_optimizer else 0)
    return exact(exact(quantity("rank_params", rank_params)) * each)


def megatron_activation_bytes(
    seq_len: int,
    microbatch_size: int,
    hidden_size: int,
    ffn_size: int,
    num_layers: int,
    vocab_size: int,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    num_chunks: int = 1,
    num_microbatches: int | None = None,
) -> int | float:
    """Megatron-LM's activations of the first stage, with sequence parallelism and selective recomputation.

    (sbh (18 + 4f/h) L + 8sbp + sbhp) x (1 + (p-1)/(pv) interleaved, min(1, m/p) else), with one stage also
    4sbh (1 + V/h); all over t. With f = 4h the layer is 34sbh; 8sbp are token ids of 8 bytes.
    Source: Megatron-LM, megatron/training/theoretical_memory_usage.py; its report prints MB of 2^20 bytes.
    """
    s, b, h = whole("seq_len", seq_len), whole("microbatch_size", microbatch_size), whole("hidden_size", hidden_size)
    p, v = whole("pipeline_parallel", pipeline_parallel), whole("num_chunks", num_chunks)
    layers = s * b * (18 * h + 4 * whole("ffn_size", ffn_size)) * whole("num_layers", num_layers)
    total: int | float = layers + 8 * s * b * p + s * b * h * p
    if v > 1:
        total = quotient(total * (p * v + p - 1), p * v)
    elif num_microbatches is not None:
        total = quotient(total * min(p, whole("num_microbatches", num_microbatches)), p)
    if p == 1:
        total += 4 * s * b * (h + whole("vocab_size", vocab_size))
    return quotient(exact(total), whole("tensor_parallel", tensor_parallel))


def zero_infinity_state_bytes(num_layers: int, hidden_size: int) -> int:
    """240 l h^2: 20 bytes for each of 12 l h^2 parameters. Source: ZeRO-Infinity, arXiv 2104.07857, equations 1, 2."""
    return 240 * whole("num_layers", num_layers) * whole("hidden_size", hidden_size) ** 2


def zero_infinity_working_memory_bytes(hidden_size: int) -> int:
    """16 h^2: parameters and gradients, 16-bit, of the largest linear layer, h to 4h. ZeRO-Infinity, equation 4."""
    return 16 * whole("hidden_size", hidden_size) ** 2


def zero_infinity_activation_bytes(
    seq_len: int, batch_size: int, hidden_size: int, num_heads: int, blocks_per_checkpoint: int = 1
) -> int:
    """b s c (16h + 2as): what is run again between two checkpoints, 16-bit. ZeRO-Infinity, equation 5."""
    each = 16 * whole("hidden_size", hidden_size) + 2 * whole("num_heads", num_heads) * whole("seq_len", seq_len)
    return whole("batch_size", batch_size) * seq_len * whole("blocks_per_checkpoint", blocks_per_checkpoint) * each
