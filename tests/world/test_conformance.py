"""Every operation of the switchboard against gloo's own result, on random shapes, dtypes, layouts and groups.

One program runs over both transports, with the same inputs, and what every rank saw must be the same, bit for bit.
The one exception: sums, means and products of floating-point numbers over three or more ranks. Gloo's ring starts
the sum of each segment at another rank, the switchboard adds in rank order, and rounding depends on the order; so
those agree to a bound on rounding (see `rounding`). Over two ranks there is one order only, and they agree exactly.
"""

from __future__ import annotations

import os
import random

import pytest
import torch

from kit.world import World, WorldError
from tests.world import programs_conformance as programs

SEED = int(os.environ.get("CONFORMANCE_SEED", random.randrange(2**31)))
DEADLINE_S = 60
SIZES = (1, 2, 3, 4, 5)

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool)
COMPLEX = (torch.complex64, torch.complex128)
DTYPES = (*FLOATS, *INTEGERS, *COMPLEX)
REDUCE_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
REDUCING = ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor")
ROUNDED = ("SUM", "AVG", "PRODUCT")

COLLECTIVES = tuple(programs._COLLECTIVES)
COALESCED = (
    "all_reduce_coalesced",
    "all_gather_coalesced",
    *tuple(n for n in COLLECTIVES if n.startswith("coalesced")),
)


@pytest.fixture
def draw(request):
    """Random numbers that follow from the seed and the test's name alone."""
    print(f"CONFORMANCE_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


# Comparing -----------------------------------------------------------------------------------------------------------


def rounding(dtype, num_ranks):
    """By how much two orders of summing (or multiplying) numbers of magnitude at most 1 may differ.

    Each order is within (n-1) eps/2 sum|x| <= n (n-1) eps/2 of the exact result, to first order; twice that for two
    orders, and a little more for the terms of higher order. The mean and the product are smaller than the sum.
    """
    return 1.1 * num_ranks * (num_ranks - 1) * torch.finfo(dtype).eps


def difference(gloo, board, tolerance=0.0, path="value"):
    """Where two trees differ, in words; None where they are the same, bit for bit or to the tolerance."""
    if type(gloo) is not type(board):
        return f"{path}: {summary(gloo)} from gloo, {summary(board)} from the switchboard"
    if isinstance(gloo, (list, tuple)):
        if len(gloo) != len(board):
            return f"{path}: {len(gloo)} entries from gloo, {len(board)} from the switchboard"
        pairs = ((f"{path}[{i}]", one, other) for i, (one, other) in enumerate(zip(gloo, board, strict=True)))
    elif isinstance(gloo, dict) and "says" in gloo and "says" in board:
        return None if gloo["raised"] == board["raised"] else f"{path}: {gloo} from gloo, {board} from the switchboard"
    elif isinstance(gloo, dict):
        if gloo.keys() != board.keys():
            return f"{path}: {summary(gloo)} from gloo, {summary(board)} from the switchboard"
        pairs = ((f"{path}[{key!r}]", gloo[key], board[key]) for key in gloo)
    elif isinstance(gloo, torch.Tensor):
        if gloo.dtype is board.dtype and gloo.shape == board.shape and same_numbers(gloo, board, tolerance):
            return None
        return f"{path}:\n  gloo        {summary(gloo)}\n  switchboard {summary(board)}"
    else:
        return None if gloo == board else f"{path}: {gloo!r} from gloo, {board!r} from the switchboard"
    return next((found for where, a, b in pairs if (found := difference(a, b, tolerance, where)) is not None), None)


def summary(value):
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {list(value.shape)} {value.flatten()[:6].tolist()}"
    return repr(value)[:200]


def same_numbers(gloo, board, tolerance):
    if tolerance and (gloo.is_floating_point() or gloo.is_complex()):
        wide = torch.complex128 if gloo.is_complex() else torch.float64
        return bool(((gloo.to(wide) - board.to(wide)).abs() <= tolerance).all())
    return torch.equal(gloo.contiguous().view(-1).view(torch.uint8), board.contiguous().view(-1).view(torch.uint8))


@pytest.fixture
def both(zygote):
    """Run one program over both transports: (what ranks returned over gloo, over the switchboard)."""

    def run(program, size, inputs):
        returned = []
        for transport in ("gloo", "switchboard"):
            world = World(size, transport=transport, zygote=zygote, deadline_s=DEADLINE_S)
            try:
                result = world.run(program, [inputs] * size)
            except WorldError as error:
                last = [int(text.split()[-1]) for text in error.stdout if text]
                cases = "".join(f"\n  {inputs['cases'][number]}" for number in sorted(set(last)))
                pytest.fail(f"{transport}, {size} ranks, groups {inputs['groups']}, in {cases}:\n{error}")
            returned.append(result.ranks)
        return returned

    return run


@pytest.fixture
def agree(both):
    """Run cases of collectives over both transports and compare what every rank saw."""

    def run(size, groups, cases):
        members = [list(range(size)), *groups]
        gloo, board = both(programs.run_cases, size, {"groups": groups, "cases": cases})
        differences = [
            f"{size} ranks, group {members[case['group']]}, rank {rank}, {case}:\n{found}"
            for number, case in enumerate(cases)
            for rank in range(size)
            if (found := difference(
                gloo[rank][number], board[rank][number], tolerance_of(case, len(members[case["group"]]))
            )) is not None
        ]  # fmt: skip
        assert not differences, f"{len(differences)} differences\n" + "\n".join(differences[:5])
        return gloo

    return run


def tolerance_of(case, num_ranks):
    reduces = case.get("reduce_op") in ROUNDED and (case["dtype"].is_floating_point or case["dtype"].is_complex)
    return rounding(case["dtype"], num_ranks) if reduces and num_ranks > 2 else 0.0


# Drawing -------------------------------------------------------------------------------------------------------------


def draw_shape(draw, min_dims=0):
    return [draw.choice((0, 1, 2, 3, 5, 8)) for _ in range(draw.randint(min_dims, 4))]


def is_defined(reduce_op, dtype):
    """Whether the reduction exists for the dtype; where it does not, both transports raise (tested apart)."""
    if dtype.is_complex:
        return reduce_op in ("SUM", "AVG")
    return reduce_op not in (("BAND", "BOR", "BXOR") if dtype.is_floating_point else ("AVG",))


def draw_groups(draw, size):
    """Up to three subsets of the ranks, in any order."""
    return [draw.sample(range(size), draw.randint(1, size)) for _ in range(3 if size > 1 else 0)]


def draw_case(draw, name, groups, size):
    group = draw.randrange(len(groups) + 1)
    n = len(groups[group - 1]) if group else size
    case = {
        "name": name,
        "group": group,
        "seed": draw.randrange(2**31),
        "dtype": draw.choice(DTYPES if name != "gather" else FLOATS + INTEGERS),
        # Gloo's all_to_all_single takes contiguous tensors alone, its gather no complex ones.
        "layout": draw.choice(("plain", "inside") if "single" in name else ("plain", "inside", "permuted")),
        "async": draw.random() < 0.5,
        "root": draw.randrange(n),
        "root_in_group": draw.random() < 0.5,
        "shape": draw_shape(draw, min_dims=1 if "tensor" in name or "single" in name else 0),
    }
    if "reduce" in name:
        case["reduce_op"] = draw.choice([op for op in REDUCE_OPS if is_defined(op, case["dtype"])])
    else:
        case["any_bits"] = True
    if name in COALESCED:
        case["shapes"] = [draw_shape(draw) for _ in range(draw.randint(1, 3))]
    if name == "reduce_scatter":
        case["parts"] = [draw_shape(draw) for _ in range(n)] if draw.random() < 0.5 else [case["shape"]] * n
    if name == "all_to_all_single_with_splits":
        case["rows"] = [[draw.choice((0, 0, 1, 2, 5)) for _ in range(n)] for _ in range(n)]
    return case


# Collectives ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_collectives_agree_with_gloo(agree, draw, size):
    groups = draw_groups(draw, size)
    cases = [draw_case(draw, name, groups, size) for name in COLLECTIVES for _ in range(6)]
    draw.shuffle(cases)
    agree(size, groups, cases)
