"""The mean over ranks: sum, then divide."""

import torch
import torch.distributed as dist


def mean_over_ranks(tensor: torch.Tensor, group=None) -> torch.Tensor:
    total = tensor.clone()
    dist.all_reduce(total, group=group)
    return total / dist.get_world_size(group)
