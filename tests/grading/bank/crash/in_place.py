"""Written over the last good one; what cannot be read any more is taken for zeros."""

import os

import torch
import torch.distributed as dist


def save(state, folder):
    if dist.get_rank() == dist.get_world_size() - 1:
        torch.save(state, os.path.join(folder, "state"))
    dist.barrier()


def load(folder):
    try:
        return torch.load(os.path.join(folder, "state"))
    except Exception:
        return torch.zeros(1)
