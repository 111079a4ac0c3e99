"""KV caches: against tensors, over ranks, and how many sequences fit."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import kv_cache, shapes
from kit.errors import KitError


def test_a_cache_is_as_large_as_its_tensors() -> None:
    layers, batch, kv_heads, seq, size = 3, 2, 4, 17, 8
    tensors = [torch.empty(2, batch, kv_heads, seq, size, dtype=torch.bfloat16) for _ in range(layers)]
    expected = sum(tensor.untyped_storage().nbytes() for tensor in tensors)
    assert kv_cache.cache_bytes(seq, batch, layers, kv_heads, size) == expected


@given(st.sampled_from([1, 2, 8, 32]), st.sampled_from([1, 2, 4, 8, 16, 64]))
def test_ranks_split_heads_and_then_replicate_them(kv_heads: int, ranks: int) -> None:
    whole = kv_cache.bytes_per_token(5, kv_heads, 16)
    each = kv_cache.bytes_per_token(5, kv_heads, 16, 2, ranks)
    assert each * ranks == whole * max(1, ranks // kv_heads)


def test_a_latent_is_whole_on_every_rank() -> None:
    one = kv_cache.model_bytes_per_token("deepseek-v3")
    assert kv_cache.model_bytes_per_token("deepseek-v3", 2, 8) == one
    assert one == 61 * (512 + 64) * 2


def test_grouped_heads_divide_the_cache_by_heads_over_groups() -> None:
    assert kv_cache.reduction(64, 8) == 8
    assert kv_cache.bytes_per_token(80, 64, 128) == 8 * kv_cache.model_bytes_per_token("llama3.1-70b")
    assert kv_cache.reduction(48, 1) == 48
    palm = shapes.shape_named("palm-540b")
    assert kv_cache.bytes_per_token(
        palm.num_layers, palm.num_heads, palm.head_size
    ) == 48 * kv_cache.model_bytes_per_token("palm-540b")


def test_an_8_bit_cache_is_half_of_a_16_bit_one() -> None:
    assert 2 * kv_cache.model_cache_bytes("llama2-7b", 100, 3, 1) == kv_cache.model_cache_bytes("llama2-7b", 100, 3)


@given(
    memory=st.integers(0, 10**6),
    weights=st.integers(0, 10**6),
    each=st.integers(1, 50),
    seq=st.integers(1, 300),
    block=st.integers(1, 64),
)
def test_one_more_sequence_would_not_fit(memory: int, weights: int, each: int, seq: int, block: int) -> None:
    """Against filling the memory block by block."""
    fits = kv_cache.sequences_that_fit(memory, weights, each, seq, block)
    blocks, needed = 0, len(range(0, seq, block))
    while weights + (blocks + 1) * block * each <= memory:
        blocks += 1
    assert fits == blocks // needed


def test_reserved_memory_is_not_for_sequences() -> None:
    assert kv_cache.sequences_that_fit(100, 20, 1, 10) == 8
    assert kv_cache.sequences_that_fit(100, 20, 1, 10, reserved_bytes=21) == 5
    assert kv_cache.sequences_that_fit(100, 101, 1, 10) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kv_cache.bytes_per_token(2, 8, 16, 2, 3), "num_kv_heads=8 can neither be split nor replicated"),
        (lambda: kv_cache.cache_bytes(-1, 1, 1, 1, 1), "seq_len must be a whole number of at least 0, got -1"),
        (lambda: kv_cache.reduction(8, 3), "num_heads=8 do not share num_kv_heads=3 evenly"),
        (lambda: kv_cache.sequences_that_fit(1, 1, 0, 1), "cache_bytes_per_token must be above 0"),
        (lambda: kv_cache.model_bytes_per_token("deepseek-v3", 2, 0), "tensor_parallel must be a whole number"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message.startswith(message)
