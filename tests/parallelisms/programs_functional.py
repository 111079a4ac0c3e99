"""torch.distributed.nn and the functional collectives, with their gradients."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as differentiable

ROOT = 1


def splits_to(rank, size):
    """How many of a rank's 2 x size rows go to each rank: other numbers to every one, and none to itself."""
    counts = [0] * size
    others = [other for other in range(size) if other != rank]
    for position, other in enumerate(others[:-1]):
        counts[other] = 1 + position
    counts[others[-1]] = 2 * size - sum(counts)
    return counts


def splits_from(rank, size):
    return [splits_to(other, size)[rank] for other in range(size)]


def _scatter_of(x, size):
    return [x[2 * part : 2 * part + 2] * (part + 1) for part in range(size)]


# name: (x of this rank, rank, size) -> a tensor, or a list of tensors
DIFFERENTIABLE = {
    "nn.broadcast": lambda x, rank, size: differentiable.broadcast(x, ROOT),
    "nn.gather": lambda x, rank, size: differentiable.gather(x, ROOT),
    "nn.scatter": lambda x, rank, size: differentiable.scatter(_scatter_of(x, size), ROOT),
    "nn.reduce": lambda x, rank, size: differentiable.reduce(x, ROOT) if rank == ROOT else _only_takes_part(x),
    "nn.reduce_scatter": lambda x, rank, size: differentiable.reduce_scatter(
        torch.empty(2, 3, dtype=x.dtype), _scatter_of(x, size)
    ),
    "nn.all_gather": lambda x, rank, size: differentiable.all_gather(x),
    "nn.all_to_all": lambda x, rank, size: differentiable.all_to_all(
        [torch.empty(2, 3, dtype=x.dtype) for _ in range(size)], _scatter_of(x, size)
    ),
    "nn.all_to_all_single": lambda x, rank, size: differentiable.all_to_all_single(
        torch.empty(sum(splits_from(rank, size)), 3, dtype=x.dtype), x, splits_from(rank, size), splits_to(rank, size)
    ),
    "nn.all_reduce": lambda x, rank, size: differentiable.all_reduce(x),
    "all_reduce": lambda x, rank, size: functional.all_reduce(x, "sum", dist.group.WORLD),
    "all_gather_tensor": lambda x, rank, size: functional.all_gather_tensor_autograd(x, 0, dist.group.WORLD),
    "all_gather_tensor of columns": lambda x, rank, size: functional.all_gather_tensor_autograd(x, 1, dist.group.WORLD),
    "reduce_scatter_tensor": lambda x, rank, size: functional.reduce_scatter_tensor_autograd(
        x, "sum", 0, dist.group.WORLD
    ),
    "reduce_scatter_tensor of columns": lambda x, rank, size: functional.reduce_scatter_tensor_autograd(
        x.t().contiguous(), "sum", 1, dist.group.WORLD
    ),
    "all_to_all_single": lambda x, rank, size: functional.all_to_all_single_autograd(
        x, splits_from(rank, size), splits_to(rank, size), dist.group.WORLD
    ),
}


def _only_takes_part(x):
    """What a reduce leaves on other ranks than the root is nobody's to read, but its backward needs them."""
    return differentiable.reduce(x, ROOT) * 0


PLAIN = {
    "broadcast": lambda x, rank, size: functional.broadcast(x, ROOT, dist.group.WORLD),
    "all_reduce max": lambda x, rank, size: functional.all_reduce(x, "max", dist.group.WORLD),
    "all_reduce avg": lambda x, rank, size: functional.all_reduce(x, "avg", dist.group.WORLD),
    "all_reduce_coalesced": lambda x, rank, size: functional.all_reduce_coalesced(
        [x, x[:1] * 2], "sum", dist.group.WORLD
    ),
    "all_gather_into_tensor_coalesced": lambda x, rank, size: functional.all_gather_into_tensor_coalesced(
        [x, x[:1] * 2], dist.group.WORLD
    ),
    "reduce_scatter_tensor_coalesced": lambda x, rank, size: functional.reduce_scatter_tensor_coalesced(
        [x, x[:size] * 2], "sum", [0, 0], dist.group.WORLD
    ),
    "permute_tensor": lambda x, rank, size: functional.permute_tensor(
        x.flatten(),  # it counts elements where all_to_all_single wants rows
        [(other + 1) % size for other in range(size)],
        dist.group.WORLD,
    ),
}


def differentiates(given):
    """given: {"name", "x", "weights": as many as outputs}; returns the outputs and the gradient of x."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x = given["x"].clone().requires_grad_()
    outputs = _listed(DIFFERENTIABLE[given["name"]](x, rank, size))
    sum((output * weight).sum() for output, weight in zip(outputs, given["weights"], strict=True)).backward()
    return [output.detach() + 0 for output in outputs], x.grad


def computes(given):
    """given: {"name", "x"}; returns the outputs."""
    outputs = _listed(PLAIN[given["name"]](given["x"], dist.get_rank(), dist.get_world_size()))
    return [output + 0 for output in outputs]


def _listed(outputs):
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
