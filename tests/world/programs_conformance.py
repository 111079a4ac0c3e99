"""What one rank does for a case of each collective, and what it saw: run alike over the switchboard and over gloo.

A case is a dict of plain values that every rank gets; a rank draws its own tensors from the case's seed.
"""

from __future__ import annotations

import math

import torch
import torch.distributed as dist


def run_cases(inputs):
    """What this rank saw in each case: a tree, {"raised": ..., "says": ...}, or None where it is not in the group."""
    groups = [dist.group.WORLD, *(dist.new_group(ranks) for ranks in inputs["groups"])]
    seen = []
    for number, case in enumerate(inputs["cases"]):
        print(number, flush=True)  # the last line tells which case a failed run was in
        group = groups[case["group"]]
        if dist.get_rank(group) < 0:
            seen.append(None)
            continue
        try:
            seen.append(_COLLECTIVES[case["name"]](case, group))
        except (RuntimeError, ValueError) as error:
            seen.append({"raised": type(error).__name__, "says": str(error)})
    return seen


# Tensors -------------------------------------------------------------------------------------------------------------


def draw(case, shape, rank=None, salt=0):
    """A tensor in the case's dtype and layout, other values on every rank."""
    rank = dist.get_rank() if rank is None else rank
    generator = torch.Generator().manual_seed(case["seed"] * 1009 + rank * 31 + salt)
    dtype, numel = case["dtype"], math.prod(shape)
    if dtype is torch.bool:
        flat = torch.randint(0, 2, (numel,), generator=generator).to(dtype)
    elif case.get("any_bits") or not (dtype.is_floating_point or dtype.is_complex):
        # Any bit pattern: integers of the whole range, and NaNs with payloads where nothing is computed.
        flat = torch.randint(0, 256, (numel * dtype.itemsize,), dtype=torch.uint8, generator=generator).view(dtype)
    else:
        real = torch.float64 if dtype is torch.complex128 else torch.float32
        flat = torch.rand(numel * (2 if dtype.is_complex else 1), dtype=real, generator=generator) * 2 - 1
        flat = torch.view_as_complex(flat.view(-1, 2)) if dtype.is_complex else flat.to(dtype)
    return laid_out(flat.view(shape), case["layout"])


def laid_out(tensor, layout):
    """The same elements, elsewhere in memory."""
    if layout == "permuted":
        backwards = list(reversed(range(tensor.dim())))
        return tensor.permute(backwards).contiguous().permute(backwards)
    if layout == "inside":  # a part of a larger buffer, whose ends must stay as they are
        buffer = torch.zeros(tensor.numel() + 5, dtype=tensor.dtype)
        buffer[2 : 2 + tensor.numel()] = tensor.reshape(-1)
        return buffer[2 : 2 + tensor.numel()].view(tensor.shape)
    return tensor


def empty(case, shape):
    return laid_out(torch.zeros(shape, dtype=case["dtype"]), case["layout"])


def around(tensor):
    """The tensor, and the whole buffer where it is a part of a larger one."""
    buffer = tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)
    return [tensor] if buffer.numel() == tensor.numel() else [tensor, buffer]


def done(case, work):
    if case["async"]:
        work.wait()


def root_of(case, group, side):
    """The root as a global rank or as a rank of the group: "src" or "dst" and "group_src" or "group_dst"."""
    if case["root_in_group"]:
        return {f"group_{side}": case["root"]}
    return {side: dist.get_global_rank(group, case["root"])}


def is_root(case, group):
    return dist.get_rank(group) == case["root"]


def op_of(case):
    return getattr(dist.ReduceOp, case["reduce_op"])


# Collectives ---------------------------------------------------------------------------------------------------------


def all_reduce(case, group):
    x = draw(case, case["shape"])
    done(case, dist.all_reduce(x, op_of(case), group=group, async_op=case["async"]))
    return around(x)


def all_reduce_coalesced(case, group):
    xs = [draw(case, shape, salt=i) for i, shape in enumerate(case["shapes"])]
    done(case, dist.all_reduce_coalesced(xs, op_of(case), group=group, async_op=case["async"]))
    return xs


def reduce(case, group):
    x = draw(case, case["shape"])
    done(case, dist.reduce(x, op=op_of(case), group=group, async_op=case["async"], **root_of(case, group, "dst")))
    # Elsewhere gloo leaves partial sums, which no program may read.
    return around(x) if is_root(case, group) else x.shape


def broadcast(case, group):
    x = draw(case, case["shape"])
    done(case, dist.broadcast(x, group=group, async_op=case["async"], **root_of(case, group, "src")))
    return around(x)


def all_gather(case, group):
    x = draw(case, case["shape"])
    outputs = [empty(case, case["shape"]) for _ in range(group.size())]
    done(case, dist.all_gather(outputs, x, group=group, async_op=case["async"]))
    return [x, *map(around, outputs)]


def all_gather_into_tensor(case, group):
    rows, *rest = case["shape"]
    x, output = draw(case, case["shape"]), empty(case, [rows * group.size(), *rest])
    done(case, dist.all_gather_into_tensor(output, x, group=group, async_op=case["async"]))
    return [x, *around(output)]


def all_gather_coalesced(case, group):
    xs = [draw(case, shape, salt=i) for i, shape in enumerate(case["shapes"])]
    outputs = [[empty(case, shape) for shape in case["shapes"]] for _ in range(group.size())]
    done(case, dist.all_gather_coalesced(outputs, xs, group=group, async_op=case["async"]))
    return outputs


def reduce_scatter(case, group):
    """Lists whose parts may be of different sizes."""
    parts = [draw(case, shape, salt=i) for i, shape in enumerate(case["parts"])]
    output = empty(case, case["parts"][dist.get_rank(group)])
    done(case, dist.reduce_scatter(output, parts, op_of(case), group=group, async_op=case["async"]))
    return [parts, *around(output)]


def reduce_scatter_tensor(case, group):
    rows, *rest = case["shape"]
    x, output = draw(case, [rows * group.size(), *rest]), empty(case, case["shape"])
    done(case, dist.reduce_scatter_tensor(output, x, op_of(case), group=group, async_op=case["async"]))
    return [x, *around(output)]


def all_to_all(case, group):
    inputs = [draw(case, case["shape"], salt=j) for j in range(group.size())]
    outputs = [empty(case, case["shape"]) for _ in range(group.size())]
    done(case, dist.all_to_all(outputs, inputs, group=group, async_op=case["async"]))
    return [inputs, [around(output) for output in outputs]]


def all_to_all_single(case, group):
    rows, *rest = case["shape"]
    x, output = draw(case, [rows * group.size(), *rest]), empty(case, [rows * group.size(), *rest])
    done(case, dist.all_to_all_single(output, x, group=group, async_op=case["async"]))
    return [x, *around(output)]


def all_to_all_single_with_splits(case, group):
    """Rank i sends case["rows"][i][j] rows to rank j; some are zero."""
    me, rows, rest = dist.get_rank(group), case["rows"], case["shape"][1:]
    out_splits = [row[me] for row in rows]
    x, output = draw(case, [sum(rows[me]), *rest]), empty(case, [sum(out_splits), *rest])
    done(case, dist.all_to_all_single(output, x, out_splits, rows[me], group=group, async_op=case["async"]))
    return [x, *around(output)]


def gather(case, group):
    x = draw(case, case["shape"])
    outputs = [empty(case, case["shape"]) for _ in range(group.size())] if is_root(case, group) else None
    done(case, dist.gather(x, outputs, group=group, async_op=case["async"], **root_of(case, group, "dst")))
    return [x, [around(output) for output in outputs or ()]]


def scatter(case, group):
    parts = [draw(case, case["shape"], salt=i) for i in range(group.size())] if is_root(case, group) else None
    output = empty(case, case["shape"])
    done(case, dist.scatter(output, parts, group=group, async_op=case["async"], **root_of(case, group, "src")))
    return [parts, *around(output)]


def barrier(case, group):
    done(case, dist.barrier(group=group, async_op=case["async"]))
    return "passed"


def monitored_barrier(case, group):
    dist.monitored_barrier(group=group, wait_all_ranks=case["async"])
    return "passed"


def coalesced_all_reduces(case, group):
    """The coalescing manager's fast path: the all_reduces inside become one."""
    xs = [draw(case, shape, salt=i) for i, shape in enumerate(case["shapes"])]
    with dist._coalescing_manager(group=group, async_ops=case["async"]) as manager:
        for x in xs:
            dist.all_reduce(x, op_of(case), group=group)
    done(case, manager)
    return xs


def coalesced_all_gathers(case, group):
    xs = [draw(case, [3, *shape], salt=i) for i, shape in enumerate(case["shapes"])]
    outputs = [empty(case, [3 * group.size(), *shape]) for shape in case["shapes"]]
    with dist._coalescing_manager(group=group, async_ops=case["async"]) as manager:
        for output, x in zip(outputs, xs, strict=True):
            dist.all_gather_into_tensor(output, x, group=group)
    done(case, manager)
    return outputs


def coalesced_reduce_scatters(case, group):
    xs = [draw(case, [3 * group.size(), *shape], salt=i) for i, shape in enumerate(case["shapes"])]
    outputs = [empty(case, [3, *shape]) for shape in case["shapes"]]
    with dist._coalescing_manager(group=group, async_ops=case["async"]) as manager:
        for output, x in zip(outputs, xs, strict=True):
            dist.reduce_scatter_tensor(output, x, op_of(case), group=group)
    done(case, manager)
    return outputs


_COLLECTIVES = {
    function.__name__: function
    for function in (
        all_reduce,
        all_reduce_coalesced,
        reduce,
        broadcast,
        all_gather,
        all_gather_into_tensor,
        all_gather_coalesced,
        reduce_scatter,
        reduce_scatter_tensor,
        all_to_all,
        all_to_all_single,
        all_to_all_single_with_splits,
        gather,
        scatter,
        barrier,
        monitored_barrier,
        coalesced_all_reduces,
        coalesced_all_gathers,
        coalesced_reduce_scatters,
    )
}
