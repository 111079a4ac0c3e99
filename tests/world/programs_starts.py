"""Programs for tests of how ranks start and end."""

from __future__ import annotations

import os
import signal
import time

import torch
import torch.distributed as dist


class Holder:
    def method(self):
        return None


def sums(value):
    x = torch.full((5,), float(value))
    dist.all_reduce(x)
    return {"sum": x}


def large():
    rank = dist.get_rank()
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(1 << 17, generator=generator)
    works = [dist.all_reduce(x.clone(), async_op=True) for _ in range(3)]
    for work in works:
        work.wait()
    gathered = torch.empty(x.numel() * dist.get_world_size())
    dist.all_gather_into_tensor(gathered, x)
    dist.all_reduce(x)
    return torch.cat([gathered, x])


def patches_and_draws():
    patched = hasattr(torch, "patched_by_a_rank")
    torch.patched_by_a_rank = True
    return torch.rand(()).item(), patched


def initialises():
    dist.init_process_group("nccl")
    environment = [int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")]
    group = dist.new_group(backend="nccl")
    dist.all_reduce(torch.ones(1), group=group)
    return environment, [dist.get_rank(), dist.get_world_size()], dist.get_backend(group)


def ends_its_parent():
    if dist.get_rank() == 0:
        os.kill(os.getppid(), signal.SIGKILL)
    dist.barrier()
    time.sleep(1000)


def says_its_pid_and_sleeps(directory):
    rank = dist.get_rank()
    path = os.path.join(directory, f"{rank}.pid")
    with open(path + ".part", "w") as file:
        file.write(f"{os.getpid()} {os.getppid() if rank else os.getpid()}")
    os.replace(path + ".part", path)
    time.sleep(1000)


def add_up_often():
    """Ten all_reduces of ones, each waited for: what they add up to."""
    total = 0.0
    for _ in range(10):
        x = torch.ones(())
        dist.all_reduce(x)
        total += x.item()
    return total


def stand_still():
    """Every rank waits for a message of the next one."""
    dist.recv(torch.zeros(1), src=(dist.get_rank() + 1) % dist.get_world_size())
