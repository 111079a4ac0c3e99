"""FSDP1 and FSDP2 equal one process that holds every parameter and sees every rank's data."""

from __future__ import annotations

import math

import pytest
import torch

from tests.parallelisms import programs_fsdp as programs
from tests.parallelisms.agreement import EXACT, Case
from tests.parallelisms.models import copied, load, loss_of, sgd
from tests.parallelisms.unsharded import initial_state, make_steps, of_rank, train

# Reduced in bfloat16 as well: the sum of n gradients of order 1 is rounded n times, three steps of 0.02 x 2.7 (with
# momentum) move parameters by no more than that, and a forward in bfloat16 shows flipped roundings in the loss.
BRAIN_HALF = 8 * torch.finfo(torch.bfloat16).eps
# FSDP1 takes norms in float32. 1e3 roundings, see EXACT; a norm of one shard instead of all is off by a tenth.
SINGLE = 1e3 * torch.finfo(torch.float32).eps

SHAPES = [(13, 7), (13,), (11, 13), (11,), (5, 11), (5,)]


def flat_layers(parts, aligned):
    """FSDP1: each layer's numbers in one row, padded to a multiple of the parts: True is a number, False padding.

    aligned: with the original parameters in view, each tensor but the last is padded to 16 bytes.
    """
    layers = []
    for i in (0, 2, 4):
        weight, bias = math.prod(SHAPES[i]), math.prod(SHAPES[i + 1])
        row = [True] * weight + [False] * (weight % 2 if aligned else 0) + [True] * bias
        layers.append(row + [False] * (-len(row) % parts))
    return layers


def padded_numel(parts):
    """FSDP2: every parameter's rows padded to a multiple of the parts."""
    return sum(math.ceil(shape[0] / parts) * parts * math.prod(shape[1:]) for shape in SHAPES)


def rows_of(rank, parts, rows):
    """How many of `rows` a rank holds when they are cut like torch.chunk."""
    length = math.ceil(rows / parts)
    return max(0, min(length, rows - rank * length))


def in_half(state, steps, reduce_dtype):
    """Forward and backward in bfloat16, gradients added in reduce_dtype, the parameters in float64."""
    model = load("mlp", state)
    optimizer = sgd(model.parameters())
    seen = {"losses": [], "grads": [], "params": [], "norms": []}
    for batches in steps:
        optimizer.zero_grad()
        losses, grads = [], [torch.zeros_like(param, dtype=reduce_dtype) for param in model.parameters()]
        for batch in batches:
            half = load("mlp", state).to(torch.bfloat16)
            half.load_state_dict(model.state_dict())
            loss = loss_of(half(batch["x"].bfloat16()), batch)
            loss.backward()
            losses.append(loss.item())
            grads = [
                grad + param.grad.to(reduce_dtype) / len(batches)
                for grad, param in zip(grads, half.parameters(), strict=True)
            ]
        for param, grad in zip(model.parameters(), grads, strict=True):
            param.grad = grad.double()
        seen["losses"].append(losses)
        seen["grads"].append(copied((name, param.grad) for name, param in model.named_parameters()))
        optimizer.step()
        seen["params"].append(copied(model.named_parameters()))
    return seen


def expected_on(rank, seen, own, grads):
    return {
        "losses": [losses[rank] for losses in seen["losses"]],
        "params": seen["params"],
        "norms": seen["norms"],
        **({"grads": seen["grads"][-1]} if grads else {}),
        "own": own,
    }


def fsdp1_case(size, label, *, parts=None, gathers=2, accumulate=1, clip=None, tolerance=EXACT, **given):
    """parts: over how many ranks a parameter is cut. gathers: how often a step needs the whole parameters."""
    parts = parts or size
    dtype = torch.float32 if tolerance == SINGLE else torch.float64
    model = {"dtype": dtype}
    state, steps = initial_state("mlp", **model), make_steps(size, num_steps=4, dtype=dtype)
    if "reduce_dtype" in given:
        seen = in_half(state, steps, given["reduce_dtype"])
    else:
        seen = train("mlp", state, steps, accumulate=accumulate, clip=clip, **model)
    is_original = given.get("options", {}).get("use_orig_params", False)
    layers = flat_layers(parts, is_original)
    numel = sum(map(len, layers))
    inputs = [
        {
            **given,
            "state": state,
            "model": model,
            "steps": of_rank(steps, rank),
            "accumulate": accumulate,
            **({"clip": clip} if clip else {}),
        }
        for rank in range(size)
    ]
    share, updates = (parts - 1) / parts, len(steps) // accumulate

    itemsize = given.get("reduce_dtype", dtype).itemsize

    def traffic(rank):
        """The parameters are gathered twice and the gradients scattered once, 3(n-1)/n; reading them is one more."""
        if parts == 1:
            return {"reduce_scatter": 0, "all_reduce": 2 * (size - 1) / size * numel * updates * itemsize}
        if "reduce_dtype" in given:
            gathered = {"all_gather bfloat16": share * numel * len(steps) * gathers * 2}
        else:
            gathered = {"all_gather": share * numel * (len(steps) * gathers + updates) * itemsize}
        return {"reduce_scatter": share * numel * updates * itemsize, **gathered}

    def own(rank):
        """How many numbers the rank's parameters have; the original ones leave padding out."""
        shards = [row[len(row) // parts * rank :][: len(row) // parts] if parts > 1 else row for row in layers]
        return sum(sum(shard) if is_original else len(shard) for shard in shards)

    expected = [expected_on(rank, seen, own(rank % parts), grads=False) for rank in range(size)]
    return Case(programs.trains_fsdp1, inputs, expected, tolerance, tolerance, traffic, label)


@pytest.mark.parametrize("size", [2, 3])
def test_fsdp1_equals_one_process(agree, size):
    agree(
        size,
        [
            fsdp1_case(size, "FULL_SHARD"),
            fsdp1_case(size, "original parameters", options={"use_orig_params": True}),
            fsdp1_case(size, "limited all-gathers", options={"limit_all_gathers": False, "forward_prefetch": True}),
            fsdp1_case(size, "SHARD_GRAD_OP", strategy="SHARD_GRAD_OP", gathers=1),
            fsdp1_case(size, "NO_SHARD", strategy="NO_SHARD", parts=1),
            fsdp1_case(size, "clipped", clip=0.5, tolerance=SINGLE),
            fsdp1_case(size, "no_sync", accumulate=2),
            fsdp1_case(size, "half, reduced in double", reduce_dtype=torch.float64),
            fsdp1_case(size, "half", reduce_dtype=torch.bfloat16, tolerance=BRAIN_HALF),
        ],
    )


def fsdp2_case(size, label, *, parts=None, gathers=2, accumulate=1, clip=None, tolerance=EXACT, traffic=True, **given):
    parts = parts or size
    state, steps = initial_state("mlp"), make_steps(size, num_steps=4)
    if "reduce_dtype" in given:
        seen = in_half(state, steps, given["reduce_dtype"])
    else:
        scale = 1 / given.get("divide_by", size)
        seen = train("mlp", state, steps, accumulate=accumulate, clip=clip, scale=scale)
    inputs = [
        {
            **given,
            "state": state,
            "steps": of_rank(steps, rank),
            "accumulate": accumulate,
            **({"clip": clip} if clip else {}),
        }
        for rank in range(size)
    ]
    share, numel, updates = (parts - 1) / parts, padded_numel(parts), len(steps) // accumulate
    itemsize = given.get("reduce_dtype", torch.float64).itemsize
    reads = updates + 1  # the program reads parameters after every step, and gradients in the end

    def sent(rank):
        """The parameters are gathered twice and the gradients scattered once: 3(n-1)/n; and what is read besides."""
        gathered = {"all_gather float64": share * numel * (len(steps) * gathers + reads) * 8}
        if "reduce_dtype" in given:
            gathered = {"all_gather bfloat16": share * numel * len(steps) * gathers * 2}
        return {"reduce_scatter": share * numel * updates * itemsize, **gathered}

    expected = [
        expected_on(
            rank,
            seen,
            sum(rows_of(rank % parts, parts, shape[0]) * math.prod(shape[1:]) for shape in SHAPES),
            grads=True,
        )
        for rank in range(size)
    ]
    return Case(programs.trains_fsdp2, inputs, expected, tolerance, tolerance, sent if traffic else None, label)


def columns_case(size):
    """Matrices cut by columns, which must divide evenly."""
    widths = {"widths": (6, 12, 18, 6)}
    state, steps = initial_state("mlp", **widths), make_steps(size, wide_in=6, wide_out=6)
    seen = train("mlp", state, steps, **widths)
    own = sum(value.numel() for value in state.values()) // size
    given = {"model": widths, "dim": 1, "state": state}
    inputs = [{**given, "steps": of_rank(steps, rank)} for rank in range(size)]
    return Case(programs.trains_fsdp2, inputs, [expected_on(r, seen, own, grads=True) for r in range(size)])


@pytest.mark.parametrize("size", [2, 3])
def test_fsdp2_equals_one_process(agree, size):
    agree(
        size,
        [
            fsdp2_case(size, "resharded"),
            fsdp2_case(size, "not resharded", reshard=False, gathers=1),
            fsdp2_case(size, "prefetched", prefetch=True),
            fsdp2_case(size, "offloaded", offload=True),
            fsdp2_case(size, "clipped", clip=0.5),
            # Without a reduction the gradients stay whole, the parameters do not.
            fsdp2_case(size, "accumulated", accumulate=2),
            fsdp2_case(size, "another divisor", divide_by=5.0),
            fsdp2_case(size, "half, reduced in double", reduce_dtype=torch.float64),
            fsdp2_case(size, "half", reduce_dtype=torch.bfloat16, tolerance=BRAIN_HALF),
            columns_case(size),
        ],
    )


def test_two_axes_equal_one_process(agree):
    agree(
        4,
        [
            fsdp1_case(4, "HYBRID_SHARD", strategy="HYBRID_SHARD", mesh=(2, 2), parts=2),
            fsdp1_case(4, "hybrid ZeRO 2", strategy="_HYBRID_SHARD_ZERO2", mesh=(2, 2), parts=2, gathers=1),
            fsdp2_case(4, "hybrid", mesh=(2, 2), parts=2),
            fsdp2_case(4, "hybrid, accumulated", mesh=(2, 2), parts=2, accumulate=2),
            fsdp2_case(4, "whole world"),
            fsdp2_case(4, "resharded to 2", reshard=2, traffic=False),
        ],
    )
