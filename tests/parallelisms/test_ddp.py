"""DistributedDataParallel equals the mean of the ranks' gradients in one process."""

from __future__ import annotations

import pytest
import torch

from kit.world import World
from tests.parallelisms import programs_ddp as programs
from tests.parallelisms.agreement import EXACT, Case
from tests.parallelisms.conftest import operations_by_case
from tests.parallelisms.models import load, loss_of, sgd
from tests.parallelisms.unsharded import copied, initial_state, make_steps, of_rank, per_rank, train

# Gradients are of order 1 and rounded to half precision twice before they are added; three steps of SGD then move
# parameters by less than that. A rank left out, or a factor of 1/size, is off by more than 0.1.
HALF = 8 * torch.finfo(torch.float16).eps
BRAIN_HALF = 8 * torch.finfo(torch.bfloat16).eps

ONE = {"ddp": {"bucket_cap_mb": 1}}


def own_start(state, rank):
    """What a rank starts from: only rank 0's parameters may count."""
    return (
        state
        if rank == 0
        else {key: value + rank if value.dtype.is_floating_point else value for key, value in state.items()}
    )


def numel_of(state):
    return sum(value.numel() for value in state.values())


def all_reduced(size, num_bytes):
    """Ring all-reduce of the gradients: 2(n-1)/n of their bytes."""
    return lambda rank: {"all_reduce": 2 * (size - 1) / size * num_bytes}


def plain_case(
    size,
    label,
    *,
    model="mlp",
    ddp=None,
    hook=None,
    accumulate=1,
    scale=None,
    tolerance=EXACT,
    itemsize=8,
    num_flags=0,
    numel=None,
):
    """num_flags: how often torch reduces one int32 a parameter besides, which says whether it was used.

    numel: numbers reduced in all steps together, where that is not one a parameter in each.
    """
    state, steps = initial_state(model), make_steps(size, num_steps=4)
    expected = per_rank(train(model, state, steps, accumulate=accumulate, scale=scale), size)
    given = {"model": model, "ddp": ddp or {}, "accumulate": accumulate, **({"hook": hook} if hook else {})}
    inputs = [{**given, "state": own_start(state, r), "steps": of_rank(steps, r)} for r in range(size)]
    numel = numel if numel is not None else len(steps) // accumulate * numel_of(state)
    traffic = all_reduced(size, numel * itemsize + num_flags * len(state) * 4)
    between = EXACT if tolerance == EXACT or size == 2 else tolerance  # two terms have one order only
    return Case(programs.trains, inputs, expected, tolerance, between, traffic, label)


def unused_case(size, label, ddp):
    """Step 0 uses both branches on different ranks, step 1 the left one alone, step 2 none but rank 0's right one."""
    state, steps = initial_state("forked"), make_steps(size, num_steps=3)
    used = [
        [["right", "left"][rank % 2 : rank % 2 + 1] for rank in range(size)],
        [["left"]] * size,
        [["left", "right"] if rank == 0 else ["left"] for rank in range(size)],
    ]
    expected = per_rank(train("forked", state, steps, arguments=lambda step, rank: (used[step][rank],)), size)
    inputs = [
        {
            "model": "forked",
            "state": own_start(state, rank),
            "steps": of_rank(steps, rank),
            "branches": [step[rank] for step in used],
            "ddp": ddp,
        }
        for rank in range(size)
    ]
    return Case(programs.trains, inputs, expected, label=label)


def static_unused_case(size):
    """A static graph may leave the same parameters unused in every step without being told."""
    state, steps = initial_state("forked"), make_steps(size, num_steps=3)
    expected = per_rank(train("forked", state, steps, arguments=lambda step, rank: (["right"],)), size)
    given = {"model": "forked", "branches": [["right"]] * 3, "ddp": {"static_graph": True}}
    inputs = [{**given, "state": own_start(state, r), "steps": of_rank(steps, r)} for r in range(size)]
    return Case(programs.trains, inputs, expected, label="static graph, unused parameters")


def buffers_case(size):
    """Every forward starts from rank 0's running statistics; what a rank holds in the end is one update of these."""
    state, steps = initial_state("normed"), make_steps(size, num_steps=3)
    model = load("normed", state)
    optimizer = sgd(model.parameters())
    seen = {"losses": [], "grads": [], "params": []}
    buffers = [None] * size
    for batches in steps:
        optimizer.zero_grad()
        of_the_first = copied(model.named_buffers())
        losses = []
        for rank, batch in enumerate(batches):
            model.load_state_dict(of_the_first, strict=False)
            loss = loss_of(model(batch["x"]), batch)
            losses.append(loss.item())
            (loss / size).backward()
            buffers[rank] = copied(model.named_buffers())
        seen["losses"].append(losses)
        seen["grads"].append(copied((name, param.grad) for name, param in model.named_parameters()))
        optimizer.step()
        seen["params"].append(copied(model.named_parameters()))
        model.load_state_dict(buffers[0], strict=False)
    expected = [{**one, "buffers": buffers[rank]} for rank, one in enumerate(per_rank(seen, size))]
    inputs = [{"model": "normed", "state": own_start(state, r), "steps": of_rank(steps, r)} for r in range(size)]
    return Case(programs.trains, inputs, expected, label="buffers")


def join_case(size, label, join, divisor):
    """Rank r has r + 1 batches; divisor(step) is what a step's summed gradient is divided by."""
    state, steps = initial_state("mlp"), make_steps(size, num_steps=size)
    model = load("mlp", state)
    optimizer = sgd(model.parameters())
    losses = [[] for _ in range(size)]
    for number, batches in enumerate(steps):
        optimizer.zero_grad()
        for rank in range(number, size):
            loss = loss_of(model(batches[rank]["x"]), batches[rank])
            losses[rank].append(loss.item())
            (loss / divisor(number)).backward()
        optimizer.step()
    expected = [{"losses": losses[rank], "params": copied(model.named_parameters())} for rank in range(size)]
    inputs = [
        {"state": own_start(state, rank), "steps": of_rank(steps, rank)[: rank + 1], "join": join}
        for rank in range(size)
    ]
    return Case(programs.joins, inputs, expected, label=label)


@pytest.mark.parametrize("size", [2, 3])
def test_variants_equal_the_mean_gradient_in_one_process(agree, size):
    cases = [
        plain_case(size, "many buckets"),
        plain_case(size, "one bucket", ddp={"bucket_cap_mb": 1}),
        plain_case(size, "gradients are views", ddp={"gradient_as_bucket_view": True}),
        plain_case(size, "static graph", ddp={"static_graph": True, "gradient_as_bucket_view": True}, num_flags=1),
        plain_case(size, "no_sync", accumulate=2),
        plain_case(size, "no_sync with views", accumulate=2, ddp={"gradient_as_bucket_view": True}),
        plain_case(size, "searched for unused", ddp={"find_unused_parameters": True}, num_flags=4),
        unused_case(size, "unused parameters", {"find_unused_parameters": True}),
        unused_case(size, "unused with views", {"find_unused_parameters": True, "gradient_as_bucket_view": True}),
        static_unused_case(size),
        buffers_case(size),
        join_case(size, "join by all", {}, lambda step: size),
        join_case(size, "join by the active", {"divide_by_initial_world_size": False}, lambda step: size - step),
    ]
    board = agree(size, cases)
    reduced = [sum(op.name == "all_reduce" for op in ops) for ops in operations_by_case(board, 0)]
    # The first step has one bucket of up to 1 MiB, torch regroups after it. Three buckets.
    assert reduced[0] == 1 + 3 * 3
    assert reduced[1] == 4


@pytest.mark.parametrize("size", [2, 3])
def test_communication_hooks_equal_what_they_say(agree, zygote, size):
    agree(
        size,
        [
            plain_case(size, "allreduce", hook="allreduce"),
            plain_case(size, "doubled", hook="doubled", scale=2 / size),
            plain_case(size, "built-in allreduce", hook="built-in allreduce"),
            plain_case(size, "fp16", hook="fp16", tolerance=HALF, itemsize=2),
            plain_case(size, "fp16 wrapper", hook="fp16 wrapper", tolerance=HALF, itemsize=2),
            plain_case(size, "built-in fp16", hook="built-in fp16", tolerance=HALF, itemsize=2),
            plain_case(size, "bf16", hook="bf16", tolerance=BRAIN_HALF, itemsize=2),
            # One bucket: with more, gloo hangs, probably since its two threads wait in the hook's inner all_reduce.
            plain_case(size, "full rank", hook="PowerSGD of full rank", numel=power_sgd_numel(16), **ONE),
            power_sgd_case(zygote, size),
        ],
    )


def power_sgd_numel(rank):
    """Two steps of plain all-reduce, then two of the factors P (rows) and Q (columns); a bias has one column."""
    shapes = [(13, 7), (11, 13), (5, 11)]
    plain = sum(rows * columns + rows for rows, columns in shapes)
    factors = sum((rows + columns) * min(rank, rows, columns) + rows + 1 for rows, columns in shapes)
    return 2 * plain + 2 * factors


def power_sgd_case(zygote, size):
    """PowerSGD is linear in the gradient, so ranks together equal one process that compresses the mean gradient.

    Vogels, Karimireddy and Jaggi, "PowerSGD", 2019, section 4.1 ("linearity").
    """
    state, steps = initial_state("mlp"), make_steps(size, num_steps=4)
    alone = World(1, zygote=zygote).run(programs.power_sgd_alone, [{"state": state, "steps": steps}]).ranks[0]
    exact = train("mlp", state, steps)
    assert not torch.allclose(alone["params"][-1]["0.weight"], exact["params"][-1]["0.weight"], atol=1e-4)
    inputs = [
        {"model": "mlp", "state": state, "steps": of_rank(steps, r), "hook": "PowerSGD of rank 1", **ONE}
        for r in range(size)
    ]
    return Case(
        programs.powers, inputs, [alone] * size, traffic=all_reduced(size, 8 * power_sgd_numel(1)), label="rank 1"
    )
