"""torch.distributed.nn and functional collectives: values, and gradients of the sum of all ranks' losses."""

from __future__ import annotations

import pytest
import torch

from tests.parallelisms import programs_functional as programs
from tests.parallelisms.agreement import Case

ROOT = programs.ROOT


def rows_for(xs, rank, size, scaled):
    """What an all_to_all brings to a rank: its part of everybody's rows."""
    if scaled:
        return [x[2 * rank : 2 * rank + 2] * (rank + 1) for x in xs]
    starts = [sum(programs.splits_to(other, size)[:rank]) for other in range(size)]
    return [
        x[start : start + programs.splits_to(other, size)[rank]]
        for other, (x, start) in enumerate(zip(xs, starts, strict=True))
    ]


# name: (everybody's x, rank, size) -> this rank's outputs
WHOLE = {
    "nn.broadcast": lambda xs, rank, size: [xs[ROOT] + 0],
    "nn.gather": lambda xs, rank, size: [x + 0 if rank == ROOT else torch.zeros_like(x) for x in xs],
    "nn.scatter": lambda xs, rank, size: [rows_for(xs, rank, size, True)[ROOT]],
    "nn.reduce": lambda xs, rank, size: [sum(xs) if rank == ROOT else torch.zeros_like(xs[0])],
    "nn.reduce_scatter": lambda xs, rank, size: [sum(rows_for(xs, rank, size, True))],
    "nn.all_gather": lambda xs, rank, size: [x + 0 for x in xs],
    "nn.all_to_all": lambda xs, rank, size: rows_for(xs, rank, size, True),
    "nn.all_to_all_single": lambda xs, rank, size: [torch.cat(rows_for(xs, rank, size, False))],
    "nn.all_reduce": lambda xs, rank, size: [sum(xs)],
    "all_reduce": lambda xs, rank, size: [sum(xs)],
    "all_gather_tensor": lambda xs, rank, size: [torch.cat(xs)],
    "all_gather_tensor of columns": lambda xs, rank, size: [torch.cat(xs, 1)],
    "reduce_scatter_tensor": lambda xs, rank, size: [sum(xs)[2 * rank : 2 * rank + 2] + 0],
    "reduce_scatter_tensor of columns": lambda xs, rank, size: [sum(xs)[2 * rank : 2 * rank + 2].t()],
    "all_to_all_single": lambda xs, rank, size: [torch.cat(rows_for(xs, rank, size, False))],
    "broadcast": lambda xs, rank, size: [xs[ROOT]],
    "all_reduce max": lambda xs, rank, size: [torch.stack(xs).amax(0)],
    "all_reduce avg": lambda xs, rank, size: [sum(xs) / size],
    "all_reduce_coalesced": lambda xs, rank, size: [sum(xs), 2 * sum(xs)[:1]],
    "all_gather_into_tensor_coalesced": lambda xs, rank, size: [torch.cat(xs), 2 * torch.cat([x[:1] for x in xs])],
    "reduce_scatter_tensor_coalesced": lambda xs, rank, size: [
        sum(xs)[2 * rank : 2 * rank + 2],
        2 * sum(xs)[rank : rank + 1],
    ],
    "permute_tensor": lambda xs, rank, size: [xs[rank - 1].flatten()],
}


def numbers(size, seed):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(2 * size, 3, generator=draw, dtype=torch.float64) for _ in range(size)]


def differentiable_case(size, name):
    xs = [x.requires_grad_() for x in numbers(size, 5)]
    outputs = [WHOLE[name](xs, rank, size) for rank in range(size)]
    draw = torch.Generator().manual_seed(6)
    weights = [[torch.randn(o.shape, generator=draw, dtype=torch.float64) for o in own] for own in outputs]
    total = sum(
        (output * weight).sum()
        for own, of_own in zip(outputs, weights, strict=True)
        for output, weight in zip(own, of_own, strict=True)
    )
    total.backward()
    grads = [x.grad if x.grad is not None else torch.zeros_like(x) for x in xs]
    inputs = [{"name": name, "x": xs[rank].detach(), "weights": weights[rank]} for rank in range(size)]
    expected = [([output.detach() for output in outputs[rank]], grads[rank]) for rank in range(size)]
    return Case(programs.differentiates, inputs, expected, label=name)


def plain_case(size, name):
    xs = numbers(size, 8)
    expected = [[output.contiguous() for output in WHOLE[name](xs, rank, size)] for rank in range(size)]
    return Case(programs.computes, [{"name": name, "x": x} for x in xs], expected, label=name)


@pytest.mark.parametrize("size", [2, 3])
def test_collectives_and_their_gradients_equal_one_process(agree, size):
    agree(
        size,
        [
            *(differentiable_case(size, name) for name in programs.DIFFERENTIABLE),
            *(plain_case(size, name) for name in programs.PLAIN),
        ],
    )
