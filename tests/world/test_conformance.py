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
from tests.world import programs_groups, programs_handles, programs_messages

SEED = int(os.environ.get("CONFORMANCE_SEED", random.randrange(2**31)))
DEADLINE_S = 20
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
    """Run cases over both transports and compare what every rank saw in each; returns what gloo gave."""

    def run(program, size, cases, groups=(), tolerance=lambda case: 0.0):
        gloo, board = both(program, size, {"groups": list(groups), "cases": cases})
        differences = [
            f"{size} ranks, groups {groups}, rank {rank}, {case}:\n{found}"
            for number, case in enumerate(cases)
            for rank in range(size)
            if (found := difference(gloo[rank][number], board[rank][number], tolerance(case))) is not None
        ]
        assert not differences, f"{len(differences)} differences\n" + "\n".join(differences[:5])
        return gloo

    return run


def tolerance_of(case, size, groups=()):
    num_ranks = len(groups[case["group"] - 1]) if case["group"] else size
    reduces = case.get("reduce_op") in ROUNDED and (case["dtype"].is_floating_point or case["dtype"].is_complex)
    return rounding(case["dtype"], num_ranks) if reduces and num_ranks > 2 else 0.0


def nothing_raised(cases, ranks):
    """Where both transports raise they agree, and nothing was compared: say so unless it is meant."""
    raised = [
        (rank, case, value["says"])
        for rank, seen in enumerate(ranks)
        for case, value in zip(cases, seen, strict=True)
        if isinstance(value, dict) and "says" in value
    ]
    assert not raised, raised[:5]


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


def whole_cases(draw, name, dtypes, reduce_ops=(None,)):
    """The same small case for every dtype and reduction."""
    for dtype in dtypes:
        for reduce_op in reduce_ops:
            case = {"name": name, "group": 0, "seed": draw.randrange(2**31), "dtype": dtype, "layout": "plain"}
            case |= {"async": draw.random() < 0.5, "root": 0, "root_in_group": False, "shape": [3, 2]}
            yield case | ({"any_bits": True} if reduce_op is None else {"reduce_op": reduce_op})


def draw_message(draw, num_ranks, tags=(0, 1, 7)):
    src, dst = draw.sample(range(num_ranks), 2)
    return {
        "src": src,
        "dst": dst,
        "tag": draw.choice(tags),
        "seed": draw.randrange(2**31),
        "dtype": draw.choice(DTYPES),
        "shape": draw_shape(draw),
        "peer_in_group": draw.random() < 0.5,
    }


def draw_round(draw, name, groups, size):
    group = draw.randrange(len(groups) + 1)
    n = len(groups[group - 1]) if group else size
    messages = [draw_message(draw, n) for _ in range(draw.randint(1, 10))]
    script = {"name": name, "group": group, "messages": messages}
    if name == "from_any":
        # A tag of its own, or the round could take a message of the next one; gloo takes no empty one from any rank.
        receiver, tag = draw.randrange(n), 100 + draw.randrange(10**6)
        like = {**messages[0], "shape": [draw.randint(1, 9)]}
        senders = [rank for rank in range(n) if rank != receiver]
        script |= {"receiver": receiver, "blocking": draw.random() < 0.5}
        script["messages"] = [
            {**like, "src": src, "dst": receiver, "tag": tag, "seed": like["seed"] + src} for src in senders
        ]
    if name == "batch":
        messages += [{**draw_message(draw, n), "src": rank, "dst": (rank + 1) % n} for rank in range(n)]
    if name in ("exchange", "batch"):
        if name == "exchange":
            messages[0]["shape"] = large_shape(draw, name, n)
        script["post_order"] = in_line(draw, messages)
        script["wait_order"] = draw.sample(range(len(messages)), len(messages))
    return script


def in_line(draw, messages):
    """A random order in which messages of one channel (source, destination, tag) keep theirs."""
    order = draw.sample(range(len(messages)), len(messages))
    channel = [(message["src"], message["dst"], message["tag"]) for message in messages]
    waiting = {}
    for number in sorted(order):
        waiting.setdefault(channel[number], []).append(number)
    return [waiting[channel[number]].pop(0) for number in order]


# Collectives ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_collectives_agree_on_random_cases(agree, draw, size):
    groups = draw_groups(draw, size)
    cases = [draw_case(draw, name, groups, size) for name in COLLECTIVES for _ in range(12)]
    draw.shuffle(cases)
    seen = agree(programs.run_cases, size, cases, groups, lambda case: tolerance_of(case, size, groups))
    nothing_raised(cases, seen)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", REDUCING)
def test_every_reduction_of_every_dtype_agrees_or_raises_on_both(agree, draw, name, size):
    cases = list(whole_cases(draw, name, DTYPES, REDUCE_OPS))
    for case in cases if name == "reduce_scatter" else ():
        case["parts"] = [[4]] * size
    gloo = agree(programs.run_cases, size, cases, tolerance=lambda case: tolerance_of(case, size))
    for seen in gloo:
        for case, value in zip(cases, seen, strict=True):
            assert isinstance(value, dict) is not is_defined(case["reduce_op"], case["dtype"]), (case, value)


MOVING = ("broadcast", "all_gather", "all_gather_into_tensor", "all_to_all", "all_to_all_single", "gather", "scatter")


def test_every_dtype_is_moved_unchanged(agree, draw):
    cases = [
        case
        for name in MOVING
        for case in whole_cases(draw, name, DTYPES)
        if name != "gather" or not case["dtype"].is_complex  # gloo's gather takes no complex tensor
    ]
    nothing_raised(cases, agree(programs.run_cases, 2, cases))


def large_shape(draw, name, n):
    """More than goes through a socket, whatever the dtype: parts and wholes of at least 64 KiB travel in segments."""
    shape = [draw.choice((1, 2)), draw.randrange(66_000, 70_000)]
    return [n, *shape] if name == "all_to_all_single_with_splits" else shape


@pytest.mark.parametrize("size", [2, 3, 4])
def test_large_tensors_agree(agree, draw, size):
    names = [name for name in COLLECTIVES if name not in COALESCED and "barrier" not in name]
    cases = [draw_case(draw, name, [], size) for name in names]
    for case in cases:
        case["shape"] = large_shape(draw, case["name"], size)
        case["parts"] = [[draw.randrange(66_000, 70_000)] for _ in range(size)]
    seen = agree(programs.run_cases, size, cases, tolerance=lambda case: tolerance_of(case, size))
    nothing_raised(cases, seen)


# Messages ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES[1:])
def test_messages_agree(agree, draw, size):
    groups = [ranks for ranks in draw_groups(draw, size) if len(ranks) > 1]
    rounds = [draw_round(draw, name, groups, size) for name in programs_messages._ROUNDS for _ in range(10)]
    draw.shuffle(rounds)
    agree(programs_messages.run_rounds, size, rounds, groups)


# Groups, meshes, objects ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_groups_and_meshes_agree(agree, draw, size):
    half = max(1, size // 2)
    cases = [
        ("members_only_group", {}),  # first: torch's name for it counts the groups that a rank is in
        ("the_world", {}),
        ("new_groups", {"ranks": draw_groups(draw, size) or [[0]]}),
        ("overlapping_groups_in_flight", {"ranks": [*draw_groups(draw, size), list(range(size))]}),
        ("same_ranks_twice", {}),
        ("not_a_member", {"ranks": draw.sample(range(size), half)}),
        ("destroys_a_group", {"ranks": draw.sample(range(size), half)}),
        ("subgroups_by_enumeration", {"ranks": [list(range(half)), list(range(half, size))][: min(size, 2)]}),
        ("group_of_named_backend", {}),
        *(("subgroups", {"group_size": k}) for k in (1, 2) if size % k == 0),
        *((name, {"shape": [k, size // k]}) for name in ("mesh_of", "mesh_axes_in_turn") for k in divisors(size)),
    ]
    nothing_raised(cases, agree(programs_groups.run_all, size, cases))


def divisors(number):
    return [k for k in range(1, number + 1) if number % k == 0]


@pytest.mark.parametrize("size", SIZES)
def test_objects_agree(agree, draw, size):
    cases = [("object_lists_around_a_ring", {"seed": draw.randrange(1000)})]
    for name in ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list"):
        for _ in range(3):
            ranks = sorted(draw.sample(range(size), draw.randint(1, size)))
            root = {} if name == "all_gather_object" else {"root": draw.randrange(len(ranks))}
            cases.append((name, {"seed": draw.randrange(1000), "ranks": ranks, **root}))
    nothing_raised(cases, agree(programs_groups.run_all, size, cases))


# Handles, futures, functional collectives, gradients -----------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_handles_futures_and_functional_collectives_agree(agree, size):
    cases = list(programs_handles.CASES)
    nothing_raised(cases, agree(programs_handles.run_all, size, cases))
