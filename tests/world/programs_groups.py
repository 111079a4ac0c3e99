"""Groups, device meshes and object collectives: what a rank knows of them, and what it gets through them.

All values are whole numbers, so that sums are exact in any order.
"""

from __future__ import annotations

import random

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def run_all(inputs):
    """What this rank saw in each (function, arguments) of inputs["cases"]."""
    seen = []
    for number, (name, arguments) in enumerate(inputs["cases"]):
        print(number, flush=True)
        try:
            seen.append(globals()[name](**arguments))
        except (RuntimeError, ValueError, TypeError) as error:
            seen.append({"raised": type(error).__name__, "says": str(error)})
    return seen


def mine(salt=0):
    return torch.arange(3.0) + 100 * dist.get_rank() + salt


def facts(group):
    """What torch.distributed says of a group, and what a reduction and a gathering in it give."""
    rank = dist.get_rank(group)
    if rank < 0:
        return {"rank": rank, "size": dist.get_world_size(group)}
    total = mine()
    dist.all_reduce(total, group=group)
    parts = [torch.zeros(3) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, mine(), group=group)
    ranks = dist.get_process_group_ranks(group)
    return {
        "rank": rank,
        "size": dist.get_world_size(group),
        "ranks": ranks,
        "backend": dist.get_backend(group),
        "global": [dist.get_global_rank(group, i) for i in range(len(ranks))],
        "in group": [dist.get_group_rank(group, r) for r in ranks],
        "total": total,
        "parts": parts,
    }


# Groups --------------------------------------------------------------------------------------------------------------


def the_world():
    return [facts(dist.group.WORLD), dist.get_rank(), dist.get_world_size(), dist.is_initialized(), dist.get_backend()]


def new_groups(ranks):
    return [facts(dist.new_group(members)) for members in ranks]


def overlapping_groups_in_flight(ranks):
    """Operations in several groups at once, waited for in the reverse order."""
    groups = [dist.new_group(members) for members in ranks]
    mine_of = [group for group in groups if dist.get_rank(group) >= 0]
    return _in_flight(mine_of)


def _in_flight(groups):
    xs = [mine(i) for i in range(len(groups))]
    works = [dist.all_reduce(x, group=group, async_op=True) for x, group in zip(xs, groups, strict=True)]
    for work in reversed(works):
        work.wait()
    return xs


def same_ranks_twice():
    """Two groups of the same ranks are two channels: messages do not mix."""
    ranks = list(range(dist.get_world_size()))
    one, other = dist.new_group(ranks), dist.new_group(ranks)
    a, b = mine(), mine(1)
    first, second = (one, other) if dist.get_rank() % 2 else (other, one)  # each rank in its own order
    order = [(first, a if first is one else b), (second, a if second is one else b)]
    for work in [dist.all_reduce(x, group=group, async_op=True) for group, x in order]:
        work.wait()
    return [a, b]


def members_only_group():
    ranks = list(range(0, dist.get_world_size(), 2))
    if dist.get_rank() not in ranks:
        return None
    return facts(dist.new_group(ranks, use_local_synchronization=True))


def not_a_member(ranks):
    group = dist.new_group(ranks)
    x = mine()
    work = dist.all_reduce(x, group=group, async_op=True)
    if work is not None:
        work.wait()
    return [x, work is None]


def destroys_a_group(ranks):
    group = dist.new_group(ranks)
    seen = facts(group)
    if dist.get_rank() in ranks:
        dist.destroy_process_group(group)
    x = mine()
    dist.all_reduce(x)
    return [seen, x]


def subgroups(group_size):
    group, groups = dist.new_subgroups(group_size)
    return [facts(group), [dist.get_process_group_ranks(g) for g in groups if dist.get_rank(g) >= 0]]


def subgroups_by_enumeration(ranks):
    group, _ = dist.new_subgroups_by_enumeration(ranks)
    return facts(group) if group is not None else None


def group_of_named_backend():
    return dist.get_backend(dist.new_group(backend="gloo"))


# Device meshes -------------------------------------------------------------------------------------------------------


def mesh_of(shape):
    mesh = init_device_mesh("cpu", tuple(shape), mesh_dim_names=("replica", "shard"))
    seen = [mesh.get_rank(), mesh.get_coordinate(), mesh.mesh, mesh.size(0), mesh.size(1)]
    for axis in ("replica", "shard"):
        seen += [mesh.get_local_rank(axis), facts(mesh.get_group(axis)), facts(mesh[axis].get_group())]
    flat = mesh["replica", "shard"]._flatten("both")
    seen.append(facts(flat.get_group()))
    return seen


def mesh_axes_in_turn(shape):
    """A hybrid reduction: scatter along one axis, reduce along the other, gather again."""
    mesh = init_device_mesh("cpu", tuple(shape), mesh_dim_names=("replica", "shard"))
    replica, shard = mesh.get_group("replica"), mesh.get_group("shard")
    x = torch.arange(6.0 * shape[1]) + 10 * dist.get_rank()
    part = torch.zeros(6)
    dist.reduce_scatter_tensor(part, x, group=shard)
    dist.all_reduce(part, group=replica)
    whole = torch.zeros(6 * shape[1])
    dist.all_gather_into_tensor(whole, part, group=shard)
    return [part, whole]


# Object collectives --------------------------------------------------------------------------------------------------


def thing(seed, rank=None):
    """Some object, of another kind and length on every rank."""
    draw = random.Random(f"{seed} {dist.get_rank() if rank is None else rank}")
    kinds = (
        lambda: None,
        lambda: draw.randrange(-(10**20), 10**20),
        lambda: draw.random(),
        lambda: "".join(draw.choices("abc \n\0é漢", k=draw.randrange(2000))),
        lambda: bytes(draw.randrange(256) for _ in range(draw.randrange(500))),
        lambda: [draw.random() for _ in range(draw.randrange(20))],
        lambda: {"step": draw.randrange(9), "nested": {"shape": (1, 2), "on": True}},
        lambda: torch.arange(draw.randrange(50)),
    )
    return draw.choice(kinds)()


def all_gather_object(seed, ranks):
    group = dist.new_group(ranks)
    if dist.get_rank() not in ranks:
        return None
    objects = [None] * len(ranks)
    dist.all_gather_object(objects, thing(seed), group=group)
    return objects


def gather_object(seed, ranks, root):
    group = dist.new_group(ranks)
    if dist.get_rank() not in ranks:
        return None
    objects = [None] * len(ranks) if dist.get_rank(group) == root else None
    dist.gather_object(thing(seed), objects, group=group, group_dst=root)
    return objects


def broadcast_object_list(seed, ranks, root):
    group = dist.new_group(ranks)
    if dist.get_rank() not in ranks:
        return None
    is_root = dist.get_rank(group) == root
    objects = [thing(seed), thing(seed + 1), thing(seed + 2)] if is_root else [None] * 3
    dist.broadcast_object_list(objects, src=dist.get_global_rank(group, root), group=group)
    return objects


def scatter_object_list(seed, ranks, root):
    group = dist.new_group(ranks)
    if dist.get_rank() not in ranks:
        return None
    objects = [thing(seed, rank) for rank in range(len(ranks))] if dist.get_rank(group) == root else None
    got = [None]
    dist.scatter_object_list(got, objects, group=group, group_src=root)
    return got


def object_lists_around_a_ring(seed):
    n, rank = dist.get_world_size(), dist.get_rank()
    if n == 1:
        return None
    got, source = [None, None], None
    for turn in range(n):  # one sender at a time: a send waits for its receive
        if turn == rank:
            dist.send_object_list([thing(seed), thing(seed + 1)], (rank + 1) % n)
        elif (turn + 1) % n == rank:
            source = dist.recv_object_list(got, turn)
    return [got, source]
