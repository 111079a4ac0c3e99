"""ZeroRedundancyOptimizer equals the optimizer that it shards; Join equals leaving the ended ranks out."""

from __future__ import annotations

import pytest

from tests.parallelisms import programs_zero as programs
from tests.parallelisms.agreement import Case
from tests.parallelisms.models import copied, gradients, load, loss_of, sgd
from tests.parallelisms.unsharded import initial_state, make_steps, of_rank


def zero_case(size, label, *, views=False, late=False):
    state, steps = initial_state("mlp"), make_steps(size)
    model = load("mlp", state)
    groups = [{"params": model[:-1].parameters()}, {"params": model[-1].parameters(), "lr": 0.05 if late else 0.02}]
    optimizer = sgd(groups)
    seen = {"losses": [], "grads": [], "params": []}
    for number, batches in enumerate(steps):
        model.zero_grad()
        losses = [loss_of(model(batch["x"]), batch) for batch in batches]
        (sum(losses) / size).backward()
        seen["losses"].append([loss.item() for loss in losses])
        seen["grads"].append(gradients(model.named_parameters()))
        if late and number == 0:
            for param in model[-1].parameters():
                param.grad = None  # not the optimizer's yet
        optimizer.step()
        seen["params"].append(copied(model.named_parameters()))
    momenta = [optimizer.state[param]["momentum_buffer"] for param in model.parameters()]
    own = sharded_numel([param.numel() for param in model.parameters()], size, late)
    expected = [
        {
            **seen,
            "losses": [losses[rank] for losses in seen["losses"]],
            "own": own[rank],
            **({"momenta": momenta} if rank == 0 else {}),
        }
        for rank in range(size)
    ]
    inputs = [{"state": state, "steps": of_rank(steps, r), "views": views, "late": late} for r in range(size)]
    early = sharded_numel([param.numel() for param in model[:-1].parameters()], size, False) if late else own
    total = sum(param.numel() for param in model.parameters())

    def traffic(rank):
        """DDP's all-reduce, and each rank broadcasts what it looks after; rank 0 all parameters once at the start."""
        own_bytes = 8 * (early[rank] + (len(steps) - 1) * own[rank])
        start = 8 * total if rank == 0 else 0
        return {"all_reduce": 2 * (size - 1) / size * 8 * total * len(steps), "broadcast float64": own_bytes + start}

    return Case(programs.trains, inputs, expected, traffic=traffic, label=label)


def sharded_numel(numels, size, late):
    """How many numbers each rank looks after; parameters of a late group are dealt out after the others."""
    owners = owners_of(numels[:-2], size) if late else owners_of(numels, size)
    loads = [sum(numel for numel, owner in zip(numels, owners, strict=False) if owner == r) for r in range(size)]
    if late:
        for numel in sorted(numels[-2:], reverse=True):
            loads[loads.index(min(loads))] += numel
    return loads


def owners_of(numels, size):
    """Largest parameter first, to the rank with the fewest numbers."""
    loads, owners = [0] * size, [0] * len(numels)
    for index in sorted(range(len(numels)), key=lambda i: -numels[i]):
        owners[index] = loads.index(min(loads))
        loads[owners[index]] += numels[index]
    return owners


def join_case(size, batches_of):
    """Rank r has batches_of[r] batches; a step's gradient is divided by all ranks, as DDP's join does.

    DDP hands a rank that has run out no gradients, so it goes on updating its parameters with the last that it saw.
    """
    state, steps = initial_state("mlp"), make_steps(size, num_steps=max(batches_of))
    model = load("mlp", state)
    params = list(model.parameters())
    owners = owners_of([param.numel() for param in params], size)
    optimizer, last_seen = sgd(params), [None] * len(params)
    for number, batches in enumerate(steps):
        optimizer.zero_grad()
        for rank, batch in enumerate(batches):
            if number < batches_of[rank]:
                (loss_of(model(batch["x"]), batch) / size).backward()
        for index, param in enumerate(params):
            if number < batches_of[owners[index]]:
                last_seen[index] = param.grad
            param.grad = last_seen[index].clone()
        optimizer.step()
    inputs = [{"state": state, "steps": of_rank(steps, rank)[: batches_of[rank]]} for rank in range(size)]
    return Case(programs.joins, inputs, [copied(model.named_parameters())] * size)


def count_case(size):
    numbers = [[10.0**rank + turn for turn in range(size - rank)] for rank in range(size)]
    sums = [sum(own[turn] for own in numbers if turn < len(own)) for turn in range(size)]
    expected = [(sums[: size - rank], [rank == 0]) for rank in range(size)]
    return Case(programs.counts, numbers, expected)


@pytest.mark.parametrize("size", [2, 3])
def test_the_sharded_optimizer_equals_the_whole_one(agree, size):
    agree(
        size,
        [
            zero_case(size, "plain"),
            zero_case(size, "parameters are views", views=True),
            zero_case(size, "add_param_group", late=True),
            zero_case(size, "add_param_group with views", views=True, late=True),
            join_case(size, [2 + rank for rank in range(size)]),
            join_case(size, [3, 1, 2][:size]),
            count_case(size),
        ],
    )
