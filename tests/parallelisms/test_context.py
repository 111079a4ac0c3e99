"""Ring attention equals scaled_dot_product_attention over the whole sequence."""

from __future__ import annotations

import pytest
import torch

from tests.parallelisms import programs_context as programs
from tests.parallelisms.agreement import EXACT, Case

# The ring keeps its running output and log-sum-exp in float32, as torch's _SDPAMerger does for every dtype.
SINGLE = 1e2 * torch.finfo(torch.float32).eps


def whole_attention(size, causal, dtype=torch.float32):
    """[2, 3, 4 x size, 8]: what goes in, and what one process makes of it."""
    draw = torch.Generator().manual_seed(9)
    given = {
        name: torch.randn(2, 3, 4 * size, 8, generator=draw, dtype=torch.float64).to(dtype)
        for name in ("query", "key", "value", "grad")
    }
    parts = [given[name].double().requires_grad_() for name in ("query", "key", "value")]
    out = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=causal)
    out.backward(given["grad"].double())
    return given, [tensor.to(dtype) for tensor in (out.detach(), *(part.grad for part in parts))]


def part_of(tensor, rank, size, balanced):
    """A rank's time steps: one run of them, or one from the front and one from the back."""
    if not balanced:
        return tensor.chunk(size, 2)[rank].contiguous()
    pieces = tensor.chunk(2 * size, 2)
    return torch.cat([pieces[rank], pieces[2 * size - 1 - rank]], 2)


def ring_case(size, *, causal, balanced, rotate):
    given, results = whole_attention(size, causal)
    inputs = [
        {
            **{name: part_of(tensor, rank, size, balanced) for name, tensor in given.items()},
            "causal": causal,
            "balanced": balanced,
            "rotate": rotate,
        }
        for rank in range(size)
    ]
    expected = [[part_of(result, rank, size, balanced) for result in results] for rank in range(size)]
    label = f"{causal=} {balanced=} {rotate}"
    return Case(programs.attends, inputs, expected, SINGLE, EXACT, label=label)


def context_case(size, causal):
    given, results = whole_attention(size, causal)
    return Case(
        programs.shards_buffers, [{**given, "causal": causal}] * size, [results] * size, SINGLE, label=f"{causal=}"
    )


@pytest.mark.parametrize("size", [2, 3])
def test_the_ring_equals_attention_over_the_whole_sequence(agree, size):
    agree(
        size,
        [
            ring_case(size, causal=True, balanced=False, rotate="allgather"),
            ring_case(size, causal=True, balanced=True, rotate="allgather"),
            ring_case(size, causal=False, balanced=False, rotate="alltoall"),
            ring_case(size, causal=True, balanced=True, rotate="alltoall"),
            context_case(size, True),
        ],
    )
