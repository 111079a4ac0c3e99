"""DTensor, and parallelize_module by columns, rows, sequence and loss; with fully_shard over a second axis."""

from __future__ import annotations

import contextlib

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

from tests.parallelisms.models import cross_entropy, load


def plan_of(kind):
    """Which layer is cut how: "tensor" keeps activations whole between layers, "sequence" cuts them by time.

    "loss" is "sequence" with logits that stay cut by vocabulary.
    """
    inner = {name: ColwiseParallel() for name in ("query", "key", "value", "up")}
    if kind == "tensor":
        return {
            **inner,
            "embedding": RowwiseParallel(input_layouts=Replicate()),
            "out": RowwiseParallel(),
            "down": RowwiseParallel(),
            "head": ColwiseParallel(output_layouts=Replicate()),
        }
    logits = {"output_layouts": Shard(-1), "use_local_output": False} if kind == "loss" else {}
    return {
        **inner,
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=True),
        **{name: SequenceParallel(use_local_output=True) for name in ("norm_before", "norm_after", "norm_last")},
        **{name: ColwiseParallel(input_layouts=Shard(1)) for name in ("query", "key", "value", "up")},
        "out": RowwiseParallel(output_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1)),
        "head": ColwiseParallel(input_layouts=Shard(1), **(logits or {"output_layouts": Replicate()})),
    }


def trains(given):
    """given: {"kind", "mesh": (data, tensor) ranks, "state", "steps"}; returns everything whole in the end."""
    mesh = init_device_mesh("cpu", given["mesh"], mesh_dim_names=("data", "tensor"))
    model = load("transformer", given["state"])
    parallelize_module(model, mesh["tensor"], plan_of(given["kind"]))
    if given["mesh"][0] > 1:
        for layer in (model.up, model.down, model):
            fully_shard(layer, mesh=mesh["data"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, foreach=False)
    seen = {"losses": []}
    for batch in given["steps"]:
        optimizer.zero_grad()
        with loss_parallel() if given["kind"] == "loss" else contextlib.nullcontext():
            logits = model(batch["tokens"])
            targets = batch["targets"]
            if given["kind"] == "loss":
                targets = distribute_tensor(targets, mesh["tensor"], [Replicate()])
            loss = cross_entropy(logits, targets)
            loss.backward()
        seen["losses"].append(whole(loss).item())
        optimizer.step()
    seen["grads"] = {name: whole(param.grad) for name, param in model.named_parameters()}
    seen["params"] = {name: whole(param) for name, param in model.named_parameters()}
    return seen


def whole(tensor):
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().clone()


PLACEMENTS = {
    "S0": Shard(0),
    "S1": Shard(1),
    "R": Replicate(),
    "P": Partial(),
    "Pavg": Partial("avg"),
    "Pmax": Partial("max"),
}


def redistributes(given):
    """given: {"tensor", "locals": a tensor of this rank, "pairs": [(from, to)]}.

    A partial placement starts from the ranks' own tensors. Returns what is whole, and this rank's part, for each pair.
    """
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    seen = []
    for one, other in given["pairs"]:
        if one.startswith("P"):
            start = DTensor.from_local(given["locals"], mesh, [PLACEMENTS[one]])
        else:
            start = distribute_tensor(given["tensor"], mesh, [PLACEMENTS[one]])
        moved = start.redistribute(mesh, [PLACEMENTS[other]])
        seen.append([moved.full_tensor(), moved.to_local() + 0])
    return seen


def computes(given):
    """Products and means of matrices cut in every way, and their gradients; given: {"a", "b"}."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    seen = []
    for one in ("S0", "S1", "R"):
        for other in ("S0", "S1", "R"):
            a = distribute_tensor(given["a"], mesh, [PLACEMENTS[one]]).requires_grad_()
            b = distribute_tensor(given["b"], mesh, [PLACEMENTS[other]]).requires_grad_()
            product = (a @ b).tanh()
            loss = product.square().sum() + product.mean() + a.softmax(1).square().sum()
            loss.backward()
            seen.append([whole(product), whole(loss), whole(a.grad), whole(b.grad)])
    return seen
