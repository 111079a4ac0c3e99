# shardkit: dp/bucketed
"""Wrong: torch.cat makes a copy, the copy is reduced, and .grad never hears of it."""

import torch
import torch.distributed as dist
from torch import nn


class DDPBucketed(nn.Module):
    def __init__(self, module: nn.Module, bucket_size_mb: float | None):
        super().__init__()
        self.module = module
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, src=0)
        self.groups = self.split_by_size(bucket_size_mb)

    def split_by_size(self, bucket_size_mb):
        groups = {}
        for param in reversed([p for p in self.module.parameters() if p.requires_grad]):
            of_dtype = groups.setdefault(param.dtype, [[]])
            total = sum(p.nbytes for p in of_dtype[-1]) + param.nbytes
            if of_dtype[-1] and bucket_size_mb is not None and total > bucket_size_mb * 2**20:
                of_dtype.append([])
            of_dtype[-1].append(param)
        return [group for of_dtype in groups.values() for group in of_dtype]

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        for group in self.groups:
            for param in group:
                if param.grad is None:
                    param.grad = torch.zeros_like(param)
            flat = torch.cat([param.grad.reshape(-1) for param in group])
            dist.all_reduce(flat)
            flat /= dist.get_world_size()
