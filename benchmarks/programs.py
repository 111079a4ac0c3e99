"""What the measured ranks run."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


def one_all_reduce(_inputs: object = None) -> torch.Tensor:
    x = torch.ones(4)
    dist.all_reduce(x)
    return x


def nothing() -> None:
    """A launch alone."""


def ten_all_reduces() -> None:
    all_reduces(10)


def all_reduces(count: int) -> None:
    x = torch.ones(1024)
    for _ in range(count):
        dist.all_reduce(x)


def own_memory() -> int:
    """Bytes of memory that this rank alone has after ten all_reduces, while all ranks are there (Linux)."""
    ten_all_reduces()
    with open("/proc/self/smaps_rollup") as file:
        own = next(int(line.split()[1]) << 10 for line in file if line.startswith("Private_Dirty:"))
    dist.barrier()
    return own


def repeated_all_reduce(inputs: dict[str, int]) -> list[float]:
    """Seconds of each of `repeats` all_reduces of `numel` float32, after `warmup` unmeasured ones."""
    x = torch.ones(inputs["numel"])
    seconds = []
    for step in range(inputs["warmup"] + inputs["repeats"]):
        dist.barrier()
        started = time.perf_counter()
        dist.all_reduce(x)
        if step >= inputs["warmup"]:
            seconds.append(time.perf_counter() - started)
    return seconds


def steps(kind: str) -> float:
    """Seconds of ten training steps, after one unmeasured, of a small model under DDP or FSDP2."""
    layers = [torch.nn.Linear(256, 256) for _ in range(4)]
    model = torch.nn.Sequential(*(module for layer in layers for module in (layer, torch.nn.ReLU())))
    if kind == "fully_shard":
        for layer in layers:
            fully_shard(layer)
        fully_shard(model)
    else:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    started = 0.0
    for step in range(11):
        if step == 1:
            dist.barrier()
            started = time.perf_counter()
        model(torch.randn(64, 256)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return time.perf_counter() - started


def receive_both() -> None:
    """A deadlock of two ranks, 0.2 s after the start."""
    time.sleep(0.2)
    dist.recv(torch.ones(1), 1 - dist.get_rank())


def spawned(rank: int, size: int, path: str) -> None:
    """A rank as torch.multiprocessing.spawn starts it."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
    one_all_reduce()
    dist.destroy_process_group()
