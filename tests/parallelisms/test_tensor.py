"""Tensor, sequence and loss parallelism, and DTensor's own algebra, equal plain tensors in one process."""

from __future__ import annotations

import pytest
import torch

from tests.parallelisms import programs_tensor as programs
from tests.parallelisms.agreement import Case
from tests.parallelisms.models import copied, cross_entropy, gradients, load, sgd
from tests.parallelisms.unsharded import initial_state

KINDS = ("tensor", "sequence", "loss")


def parallel_case(kind, mesh, time=6):
    """Ranks of one data index have the same tokens; the gradient is the mean over data indices."""
    num_data, num_tensor = mesh
    state = initial_state("transformer")
    draw = torch.Generator().manual_seed(7)
    batches = [
        [
            {key: torch.randint(15, (2 + data, time), generator=draw) for key in ("tokens", "targets")}
            for data in range(num_data)
        ]
        for _ in range(3)
    ]
    model = load("transformer", state)
    optimizer = sgd(model.parameters())
    seen = {"losses": []}
    for step in batches:
        optimizer.zero_grad()
        losses = [cross_entropy(model(batch["tokens"]), batch["targets"]) for batch in step]
        (sum(losses) / num_data).backward()
        seen["losses"].append([loss.item() for loss in losses])
        optimizer.step()
    seen |= {"grads": gradients(model.named_parameters()), "params": copied(model.named_parameters())}
    places = [rank // num_tensor for rank in range(num_data * num_tensor)]
    inputs = [
        {"kind": kind, "mesh": mesh, "state": state, "steps": [step[place] for step in batches]} for place in places
    ]
    expected = [{**seen, "losses": [losses[place] for losses in seen["losses"]]} for place in places]
    return Case(programs.trains, inputs, expected, label=f"{kind} {mesh}")


def redistribute_case(size):
    """A matrix of 5 x 7, so that some shards are short."""
    draw = torch.Generator().manual_seed(3)
    tensor = torch.randn(5, 7, generator=draw, dtype=torch.float64)
    own = [torch.randn(5, 7, generator=draw, dtype=torch.float64) for _ in range(size)]
    starts = {
        **dict.fromkeys(("S0", "S1", "R"), tensor),
        "P": sum(own),
        "Pavg": sum(own) / size,
        "Pmax": torch.stack(own).amax(0),
    }
    pairs = [(one, other) for one in starts for other in ("S0", "S1", "R")]

    def part(whole, placement, rank):
        if placement == "R":
            return whole
        dim = int(placement[1])
        parts = whole.chunk(size, dim)
        return parts[rank] if rank < len(parts) else whole.narrow(dim, 0, 0)

    expected = [[[starts[one], part(starts[one], other, rank)] for one, other in pairs] for rank in range(size)]
    inputs = [{"tensor": tensor, "locals": own[rank], "pairs": pairs} for rank in range(size)]
    return Case(programs.redistributes, inputs, expected)


def algebra_case(size):
    draw = torch.Generator().manual_seed(4)
    given = {
        "a": torch.randn(5, 7, generator=draw, dtype=torch.float64),
        "b": torch.randn(7, 4, generator=draw, dtype=torch.float64),
    }
    a, b = (value.clone().requires_grad_() for value in given.values())
    product = (a @ b).tanh()
    loss = product.square().sum() + product.mean() + a.softmax(1).square().sum()
    loss.backward()
    values = [product.detach(), loss.detach(), a.grad, b.grad]
    return Case(programs.computes, [given] * size, [[values] * 9] * size)


@pytest.mark.parametrize("size", [2, 3])
def test_one_axis_equals_one_process(agree, size):
    agree(size, [*(parallel_case(kind, (1, size)) for kind in KINDS), redistribute_case(size), algebra_case(size)])


def test_tensor_parallelism_and_fsdp_together_equal_one_process(agree):
    # "loss" cuts the sequence too.
    agree(4, [*(parallel_case(kind, (2, 2)) for kind in ("tensor", "loss")), redistribute_case(4)])
