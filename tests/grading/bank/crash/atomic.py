"""A temporary file, fsync, rename."""

import os

import torch
import torch.distributed as dist


def save(state, folder):
    if dist.get_rank() == dist.get_world_size() - 1:
        with open(os.path.join(folder, "new"), "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, os.path.join(folder, "state"))
    dist.barrier()


def load(folder):
    return torch.load(os.path.join(folder, "state"))
