"""Work under a causal mask counted token by token, and the ring's inequality held at its edge."""

import pytest

from kit.costmodel.context import causal_idle_fraction, causal_pairs, least_ring_tokens
from kit.costmodel.model_traffic import cp_bytes_per_layer
from kit.errors import KitError


def counted(tokens):
    """Keys at or before each query, itself included."""
    return sum(token + 1 for token in tokens)


@pytest.mark.parametrize("context_parallel", [1, 2, 3, 4])
def test_pairs_are_those_of_the_tokens_that_a_rank_holds(context_parallel):
    seq_len = 24 * context_parallel
    block, chunk = 24, 12
    for rank in range(context_parallel):
        contiguous = range(rank * block, (rank + 1) * block)
        last = 2 * context_parallel - 1 - rank
        zigzag = [*range(rank * chunk, (rank + 1) * chunk), *range(last * chunk, (last + 1) * chunk)]
        assert causal_pairs(seq_len, context_parallel, rank) == counted(contiguous)
        assert causal_pairs(seq_len, context_parallel, rank, "zigzag") == counted(zigzag)


def test_zigzag_leaves_nobody_idle_and_contiguous_nearly_half():
    assert causal_idle_fraction(65536, 8, "zigzag") == 0
    assert causal_idle_fraction(2**20, 8) == pytest.approx(7 / 15, rel=1e-5)
    assert causal_idle_fraction(64, 1) == 0


@pytest.mark.parametrize("queries_per_kv_head", [1, 4])
def test_least_ring_tokens_are_where_a_block_costs_what_its_keys_cost(queries_per_kv_head):
    flops, bandwidth, head_dim, num_kv_heads = 400e12, 50e9, 128, 8
    tokens = least_ring_tokens(flops, bandwidth, queries_per_kv_head)
    num_heads = num_kv_heads * queries_per_kv_head
    compute_s = 4 * tokens**2 * head_dim * num_heads / flops
    hop_bytes = cp_bytes_per_layer(2 * tokens, 1, num_heads, head_dim, 2, num_kv_heads, direction="forward")
    assert compute_s == pytest.approx(hop_bytes / bandwidth, rel=1e-3)


def test_ring_attention_s_block_size_for_a100():
    assert least_ring_tokens(312e12, 300e9) == 1040


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((10, 4, 0), "cannot be split into 4 chunks"),
        ((12, 4, 0, "zigzag"), "cannot be split into 8 chunks"),
        ((16, 4, 4), "rank must be a whole number from 0 to 3"),
        ((16, 4, 0, "striped"), "layout must be one of"),
    ],
)
def test_nonsense_is_refused(arguments, reason):
    with pytest.raises(KitError, match=reason):
        causal_pairs(*arguments)
