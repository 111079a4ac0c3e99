# shardkit: dp/bucketed
"""Wrong: an all-reduce by hand, in which every rank first sends to the right and nobody receives."""

import torch
import torch.distributed as dist
from torch import nn


class DDPBucketed(nn.Module):
    def __init__(self, module: nn.Module, bucket_size_mb: float | None):
        super().__init__()
        self.module = module
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, src=0)
        self.buckets = []
        num_bytes = 0
        for param in reversed([p for p in module.parameters() if p.requires_grad]):
            fits = bucket_size_mb is None or num_bytes + param.nbytes <= bucket_size_mb * 2**20
            if self.buckets and fits and self.buckets[-1][0].dtype == param.dtype:
                self.buckets[-1].append(param)
                num_bytes += param.nbytes
            else:
                self.buckets.append([param])
                num_bytes = param.nbytes

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        for bucket in self.buckets:
            for param in bucket:
                if param.grad is None:
                    param.grad = torch.zeros_like(param)
            flat = torch.cat([param.grad.reshape(-1) for param in bucket])
            self.average_around_the_ring(flat)
            for param, piece in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                param.grad.copy_(piece.view_as(param.grad))

    def average_around_the_ring(self, flat):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        passing = flat.clone()
        for _ in range(world_size - 1):
            arriving = torch.empty_like(passing)
            dist.send(passing, (rank + 1) % world_size)
            dist.recv(arriving, (rank - 1) % world_size)
            flat += arriving
            passing = arriving
        flat /= world_size
