"""Programs whose live storages are known to the byte."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

from kit.world import inside

KIB = 1 << 10


def views_and_frees():
    """One storage of 4 KiB and its views, then shrunk, then dropped."""
    x = torch.ones(KIB)
    views = [x[3:], x.view(2, -1), x.detach(), x.t()]
    inside.mark("views")
    passing = torch.ones(2 * KIB)
    del passing
    inside.mark("through")
    inside.mark("nothing since")
    x.untyped_storage().resize_(KIB)
    inside.mark("shrunk")
    x.untyped_storage().resize_(16 * KIB)
    inside.mark("grown")
    del x, views
    inside.mark("dropped")


def data_is_swapped():
    """What `p.data = ...` leaves behind lives on while autograd keeps it, here by a view of it."""
    param = nn.Parameter(torch.ones(KIB))
    loss = param.view(2, -1).square().sum()
    param.data = torch.ones(1)
    inside.mark("swapped")
    del loss
    inside.mark("graph freed")


def a_file(folder):
    mapped = torch.from_file(os.path.join(folder, "weights"), shared=True, size=KIB)
    mapped.fill_(1.0)
    inside.mark("mapped")
    del mapped
    inside.mark("unmapped")


def kinds():
    """A layer of 4 KiB of weights, tied to a second one; Adam's moments are twice that, and its steps 4 bytes."""
    first, second = nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False)
    second.weight = first.weight
    optimizer = torch.optim.Adam(first.parameters())
    second(first(torch.ones(1, 32))).sum().backward()
    inside.mark("backward")
    optimizer.step()
    inside.mark("step")
    optimizer.zero_grad()
    inside.mark("cleared")


def allocate(numels):
    """Keep tensors of these sizes, then every second."""
    kept = [torch.empty(numel) for numel in numels]
    inside.hold("all")
    del kept[::2]
    inside.hold("half")
    return sum(t.numel() * 4 for t in kept)


def wrapped(model, kind):
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if kind == "fsdp1":
        policy = ModuleWrapPolicy({nn.Linear})
        return FullyShardedDataParallel(model, auto_wrap_policy=policy, device_id=torch.device("cpu"))
    for layer in model:
        fully_shard(layer)
    return fully_shard(model)


def train(kind):
    """Three steps; losses as floats, to the last bit."""
    torch.manual_seed(0)
    model = wrapped(nn.Sequential(nn.Linear(32, 64, bias=False), nn.Linear(64, 32, bias=False)), kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for step in range(3):
        loss = model(torch.randn(4, 32, generator=generator)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        inside.mark(f"step {step}")
    return losses


def read_too_early():
    x = torch.ones(100)
    work = dist.all_reduce(x, async_op=True)
    x.add_(1)
    work.wait()
