"""Bytes of the keys and values that decoding keeps: MHA, GQA, MQA, MLA, and what tensor parallelism makes of them.

Every token of a sequence keeps one key and one value in every layer: 2 L g d elements with g key-value heads of d.
g = a is MHA, 1 < g < a GQA (arXiv 2305.13245), g = 1 MQA (arXiv 1911.02150). Source of the formula: Pope et al.,
arXiv 2211.05102, section 2.1. Bytes are of one rank.
"""

from __future__ import annotations

from kit.costmodel.arguments import exact, quantity, whole
from kit.costmodel.shapes import Shape, kv_heads_of_rank, shape_named
from kit.errors import KitError


def bytes_per_token(
    num_layers: int,
    num_kv_heads: int,
    head_size: int,
    bytes_per_element: int | float = 2,
    tensor_parallel: int = 1,
) -> int | float:
    """2 L g/t d bytes; where t exceeds g every rank still holds one head: the cache is replicated t/g times.

    `bytes_per_token(80, 8, 128)` -> 327680, Llama 3.1 70B; on 16 ranks 40960, as on 8. `num_layers` are the rank's,
    with pipeline parallelism its stage's. Raises KitError where heads neither split nor replicate evenly.
    """
    heads = kv_heads_of_rank(num_kv_heads, tensor_parallel)
    elements = 2 * whole("num_layers", num_layers) * heads * whole("head_size", head_size)
    return exact(elements * exact(quantity("bytes_per_element", bytes_per_element)))


def mla_bytes_per_token(
    num_layers: int, kv_lora_rank: int, qk_rope_size: int, bytes_per_element: int | float = 2
) -> int | float:
    """L (r_kv + d_rope): one latent and one rotary key for all heads. Every tensor-parallel rank holds all of it.

    `mla_bytes_per_token(61, 512, 64)` -> 70272, DeepSeek-V3. Source: arXiv 2412.19437, section 2.1.1.
    """
    width = whole("kv_lora_rank", kv_lora_rank) + whole("qk_rope_size", qk_rope_size, at_least=0)
    elements = whole("num_layers", num_layers) * width
    return exact(elements * exact(quantity("bytes_per_element", bytes_per_element)))


def bytes_per_token_of(shape: Shape, bytes_per_element: int | float = 2, tensor_parallel: int = 1) -> int | float:
    """As `model_bytes_per_token`, of a shape."""
    if shape.attention == "mla":
        whole("tensor_parallel", tensor_parallel)
        return mla_bytes_per_token(shape.num_layers, shape.kv_lora_rank, shape.qk_rope_size, bytes_per_element)
    return bytes_per_token(shape.num_layers, shape.num_kv_heads, shape.head_size, bytes_per_element, tensor_parallel)


def model_bytes_per_token(model: str, bytes_per_element: int | float = 2, tensor_parallel: int = 1) -> int | float:
    """Of a named model, all layers. `model_bytes_per_token("llama2-7b")` -> 524288."""
    return bytes_per_token_of(shape_named(model), bytes_per_element, tensor_parallel)


def cache_bytes(
    seq_len: int,
    batch_size: int,
    num_layers: int,
    num_kv_heads: int,
    head_size: int,
    bytes_per_element: int | float = 2,
    tensor_parallel: int = 1,
) -> int | float:
    """A batch of sequences of equal length. `cache_bytes(4096, 1, 32, 32, 128)` -> 2 GiB, Llama 2 7B."""
    each = bytes_per_token(num_layers, num_kv_heads, head_size, bytes_per_element, tensor_parallel)
    return exact(whole("seq_len", seq_len, at_least=0) * whole("batch_size", batch_size, at_least=0) * each)


def model_cache_bytes(
    model: str, seq_len: int, batch_size: int = 1, bytes_per_element: int | float = 2, tensor_parallel: int = 1
) -> int | float:
    """As `cache_bytes`, of a named model. `model_cache_bytes("llama3.1-405b", 131072)` -> 63 GiB."""
    each = model_bytes_per_token(model, bytes_per_element, tensor_parallel)
    return exact(whole("seq_len", seq_len, at_least=0) * whole("batch_size", batch_size, at_least=0) * each)


def reduction(num_heads: int, num_kv_heads: int) -> int:
    """How many times smaller than with MHA: a/g. `reduction(64, 8)` -> 8."""
    a, g = whole("num_heads", num_heads), whole("num_kv_heads", num_kv_heads)
    if a % g:
        raise KitError(f"num_heads={a} do not share num_kv_heads={g} evenly")
    return a // g


def sequences_that_fit(
    memory_bytes: int | float,
    weight_bytes: int | float,
    cache_bytes_per_token: int | float,
    seq_len: int,
    block_tokens: int = 1,
    reserved_bytes: int | float = 0,
) -> int:
    """Sequences of `seq_len` tokens that one rank's memory holds beside its weights, in whole blocks of tokens.

    floor((memory - weights - reserved) / (ceil(s / block) block bytes_per_token)); 0 where the weights do not fit.
    `sequences_that_fit(80e9, 16e9, 131072, 4096)` -> 119. Blocks: PagedAttention, arXiv 2309.06180, section 4.
    """
    free = quantity("memory_bytes", memory_bytes) - quantity("weight_bytes", weight_bytes)
    free = exact(free - quantity("reserved_bytes", reserved_bytes))
    block = whole("block_tokens", block_tokens)
    tokens = -(-whole("seq_len", seq_len) // block) * block
    each = exact(tokens * quantity("cache_bytes_per_token", cache_bytes_per_token))
    if each == 0:
        raise KitError("cache_bytes_per_token must be above 0")
    return max(int(free // each), 0)
