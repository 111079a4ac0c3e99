"""Calls that have no meaning: refused in the rank, or by the network when they do not fit together."""

from __future__ import annotations

import torch
import torch.distributed as dist


def me():
    return dist.get_rank()


def there():
    return dist.get_world_size()


# Refused in the rank, before anything is sent: (name, call, exception, what it says) ----------------------------------


def _strided():
    return torch.zeros(4, 3)[:, 0]


def _room(count, *shape):
    return [torch.zeros(*shape) for _ in range(count)]


REFUSED = {
    "all_reduce of a column": (lambda: dist.all_reduce(_strided()), ValueError, r"strides \[3\].*not dense"),
    "broadcast of a column": (lambda: dist.broadcast(_strided(), 0), ValueError, r"strides \[3\].*not dense"),
    "all_gather of a column": (
        lambda: dist.all_gather(_room(there(), 4), _strided()), ValueError, r"shape \[4\] and strides \[3\]",
    ),
    "all_gather into columns": (
        lambda: dist.all_gather([_strided() for _ in range(there())], torch.zeros(4)), ValueError, r"strides \[3\]",
    ),
    "all_reduce of an expanded tensor": (
        lambda: dist.all_reduce(torch.zeros(1).expand(4)), ValueError, r"strides \[0\].*not dense",
    ),
    "send of a transposed tensor": (
        lambda: dist.send(torch.zeros(2, 3).t(), (me() + 1) % there()), ValueError, r"strides \[1, 3\].*not contiguous",
    ),
    "recv into a transposed tensor": (
        lambda: dist.recv(torch.zeros(2, 3).t(), (me() + 1) % there()), ValueError, r"strides \[1, 3\].*not contiguous",
    ),
    "recv from any into a transposed tensor": (
        lambda: dist.recv(torch.zeros(2, 3).t()), ValueError, r"strides \[1, 3\].*not contiguous",
    ),
    "all_to_all_single of a transposed tensor": (
        lambda: dist.all_to_all_single(torch.zeros(6, 2), torch.zeros(2, 6).t()), ValueError, "not contiguous",
    ),
    "all_to_all_single into a transposed tensor": (
        lambda: dist.all_to_all_single(torch.zeros(2, 6).t(), torch.zeros(6, 2)), ValueError, "not contiguous",
    ),
    "send to oneself": (lambda: dist.send(torch.zeros(1), me()), ValueError, ""),
    "isend to oneself": (lambda: dist.isend(torch.zeros(1), me()), ValueError, "itself"),
    "irecv from oneself": (lambda: dist.irecv(torch.zeros(1), me()), ValueError, "itself"),
    "all_gather_into_tensor too short": (
        lambda: dist.all_gather_into_tensor(torch.zeros(5), torch.zeros(3)),
        ValueError, r"the output has 5 elements, not 2 ranks x 3",
    ),
    "reduce_scatter_tensor too long": (
        lambda: dist.reduce_scatter_tensor(torch.zeros(3), torch.zeros(7)),
        ValueError, r"the input has 7 elements, not 2 ranks x 3",
    ),
    "all_gather list too short": (
        lambda: dist.all_gather(_room(1, 3), torch.zeros(3)), ValueError, "1 output tensors for a group of 2 ranks",
    ),
    "reduce_scatter list too long": (
        lambda: dist.reduce_scatter(torch.zeros(3), _room(3, 3)), ValueError, "3 input tensors for a group of 2 ranks",
    ),
    "all_to_all list too long": (
        lambda: dist.all_to_all(_room(2, 3), _room(3, 3)), ValueError, "3 input tensors for a group of 2",
    ),
    "gather list too short": (
        lambda: dist.gather(torch.zeros(3), _room(1, 3), dst=me()), ValueError, "1 output tensors",
    ),
    "scatter list too short": (
        lambda: dist.scatter(torch.zeros(3), _room(1, 3), src=me()), ValueError, "1 input tensors",
    ),
    "all_to_all_single not divisible": (
        lambda: dist.all_to_all_single(torch.zeros(4), torch.zeros(5)),
        ValueError, "dimension 0 of the input is 5, not divisible by 2",
    ),
    "all_to_all_single splits of another sum": (
        lambda: dist.all_to_all_single(torch.zeros(4), torch.zeros(5), [2, 2], [2, 2]),
        ValueError, r"input split sizes \[2, 2\] do not cut a dimension of 5 into 2",
    ),
    "all_to_all_single negative split": (
        lambda: dist.all_to_all_single(torch.zeros(4), torch.zeros(4), [5, -1], [2, 2]), ValueError, r"\[5, -1\]",
    ),
    "all_to_all_single too few splits": (
        lambda: dist.all_to_all_single(torch.zeros(4), torch.zeros(4), [4], [2, 2]), ValueError, r"\[4\]",
    ),
    "all_gather_into_tensor of another dtype": (
        lambda: dist.all_gather_into_tensor(torch.zeros(6, dtype=torch.float64), torch.zeros(3)),
        ValueError, "different dtypes: float32, float64",
    ),
    "reduce_scatter_tensor of another dtype": (
        lambda: dist.reduce_scatter_tensor(torch.zeros(3, dtype=torch.int64), torch.zeros(6)),
        ValueError, "different dtypes: float32, int64",
    ),
    "sparse": (lambda: dist.all_reduce(torch.zeros(3).to_sparse()), (ValueError, NotImplementedError), "parse"),
    "meta": (
        lambda: dist.all_reduce(torch.zeros(3, device="meta")), (ValueError, RuntimeError, NotImplementedError), "",
    ),
    "premultiplied sum": (
        lambda: dist.all_reduce(torch.zeros(3), dist._make_nccl_premul_sum(2.0)), NotImplementedError, "PREMUL_SUM",
    ),
    "coalescing with a device": (lambda: _with_coalescing_manager(), NotImplementedError, "_coalescing_manager"),
}  # fmt: skip


def _with_coalescing_manager():
    with dist._coalescing_manager(device=torch.device("cpu")):
        dist.all_reduce(torch.zeros(1))


def every_refusal():
    """What each refused call said; afterwards everything still works."""
    seen = {}
    for name, (call, exception, _) in REFUSED.items():
        try:
            call()
        except exception as error:
            seen[name] = str(error)
        else:
            seen[name] = None
    x = torch.ones(2)
    dist.all_reduce(x)
    return [seen, x]


# Calls that do not fit together ---------------------------------------------------------------------------------------


def misfit(inputs):
    """One of MISFITS, on two ranks."""
    MISFITS[inputs][0]()


def _gather_to_root_with_room_for(numel):
    outputs = [torch.zeros(2), torch.zeros(numel)] if me() == 0 else None
    dist.gather(torch.zeros(2 if me() == 0 else 3), outputs)


def _scatter_of(numel):
    parts = [torch.zeros(2), torch.zeros(numel)] if me() == 0 else None
    dist.scatter(torch.zeros(2 if me() == 0 else 3), parts)


def _mixed_layouts(call):
    x = torch.zeros(3, 2).t() if me() else torch.zeros(2, 3)
    call(x)


def _message(sent, room):
    dist.send(sent, 1) if me() == 0 else dist.recv(room, 0)


MISFITS = {
    "all_reduce sizes": (
        lambda: dist.all_reduce(torch.zeros(2 + me())), r"rank 0: float32 \[2\], rank 1: float32 \[3\]",
    ),
    "coalesced all_reduce sizes": (
        lambda: dist.all_reduce_coalesced([torch.zeros(2 + me()), torch.zeros(3 - me())]).wait(),
        r"rank 0: float32 \[2\], \[3\], rank 1: float32 \[3\], \[2\]",
    ),
    "all_reduce dtypes": (
        lambda: dist.all_reduce(torch.zeros(2, dtype=(torch.float32, torch.int32)[me()])),
        "rank 0: float32, rank 1: int32",
    ),
    "reduce sizes": (lambda: dist.reduce(torch.zeros(2 + me()), 0), r"rank 0: float32 \[2\], rank 1: float32 \[3\]"),
    "broadcast sizes": (lambda: dist.broadcast(torch.zeros(2 + me()), 0), r"\[2\], rank 1: float32 \[3\]"),
    "broadcast roots": (lambda: dist.broadcast(torch.zeros(2), me()), "different roots: rank 0: 0, rank 1: 1"),
    "all_gather sizes": (
        lambda: dist.all_gather(_room(2, 2 + me()), torch.zeros(2 + me())),
        "rank 1 sends 3 elements, rank 0 has room for 2",
    ),
    "all_gather_into_tensor sizes": (
        lambda: dist.all_gather_into_tensor(torch.zeros(4 + 2 * me()), torch.zeros(2 + me())),
        r"rank 0: float32 \[2\], rank 1: float32 \[3\]",
    ),
    "reduce_scatter parts": (
        lambda: dist.reduce_scatter(torch.zeros(2), [torch.zeros(2), torch.zeros(2 + me())]),
        r"rank 0: \[2, 2\] elements, rank 1: \[2, 3\] elements",
    ),
    "reduce_scatter output": (
        lambda: dist.reduce_scatter(torch.zeros(2), [torch.zeros(2), torch.zeros(3)]),
        "rank 1 receives 2 elements where its part has 3",
    ),
    "reduce_scatter reductions": (
        lambda: dist.reduce_scatter_tensor(
            torch.zeros(2), torch.zeros(4), (dist.ReduceOp.SUM, dist.ReduceOp.MAX)[me()]
        ),
        "different reductions: rank 0: SUM, rank 1: MAX",
    ),
    "all_to_all sizes": (
        lambda: dist.all_to_all_single(torch.zeros(4), torch.zeros(4), [2, 2], [1 + me(), 3 - me()]),
        "rank 0 sends 1 elements to rank 0, which expects 2",
    ),
    "gather part": (lambda: _gather_to_root_with_room_for(2), r"rank 1 sends 3 elements, the root \(rank 0\) has 2"),
    "scatter part": (lambda: _scatter_of(4), r"rank 1 expects 3 elements, the root \(rank 0\) has 4"),
    "message size": (lambda: _message(torch.zeros(2), torch.zeros(3)), r"different sizes: \[2\] sent, \[3\] received"),
    "message dtype": (
        lambda: _message(torch.zeros(2), torch.zeros(2, dtype=torch.int32)), "float32 sent, int32 received",
    ),
    "all_reduce layouts": (
        lambda: _mixed_layouts(dist.all_reduce), r"\[2, 3\], float32 \[2, 3\] \(memory order \[1, 0\]\)",
    ),
    "broadcast layouts": (lambda: _mixed_layouts(lambda x: dist.broadcast(x, 0)), r"memory order \[1, 0\]"),
    "reduce layouts": (lambda: _mixed_layouts(lambda x: dist.reduce(x, 0)), r"memory order \[1, 0\]"),
    "scatter layouts": (
        lambda: dist.scatter(torch.zeros(3, 2).t(), _room(2, 2, 3) if me() == 0 else None), r"memory order \[1, 0\]",
    ),
    "reduce_scatter layouts": (
        lambda: dist.reduce_scatter(torch.zeros(3, 2).t(), _room(2, 2, 3)), r"memory order \[1, 0\]",
    ),
}  # fmt: skip
