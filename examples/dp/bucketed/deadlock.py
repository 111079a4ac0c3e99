# shardkit: dp/bucketed
"""Wrong: a rank that did not use a bucket's parameters sends nothing, and the others wait for it."""

import torch
import torch.distributed as dist
from torch import nn


class DDPBucketed(nn.Module):
    def __init__(self, module: nn.Module, bucket_size_mb: float | None):
        super().__init__()
        self.module = module
        self.world_size = dist.get_world_size()
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, src=0)
        self.buckets = [[]]
        num_bytes = 0
        for param in reversed([p for p in module.parameters() if p.requires_grad]):
            last = self.buckets[-1]
            passes_cap = bucket_size_mb is not None and num_bytes + param.nbytes > bucket_size_mb * 2**20
            if last and (passes_cap or last[0].dtype != param.dtype):
                self.buckets.append([])
                num_bytes = 0
            self.buckets[-1].append(param)
            num_bytes += param.nbytes
        self.fresh = set()
        self.launched = {}
        for index, bucket in enumerate(self.buckets):
            for param in bucket:
                param.register_post_accumulate_grad_hook(self.hook_for(index))

    def hook_for(self, index):
        def hook(param):
            self.fresh.add(param)
            if all(p in self.fresh for p in self.buckets[index]):
                self.launch(index)

        return hook

    def launch(self, index):
        flat = torch.cat([param.grad.reshape(-1) for param in self.buckets[index]])
        self.launched[index] = dist.all_reduce(flat, async_op=True), flat

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        for index, bucket in enumerate(self.buckets):
            if index not in self.launched and any(param in self.fresh for param in bucket):
                for param in bucket:
                    if param.grad is None:
                        param.grad = torch.zeros_like(param)
                self.launch(index)
        for index, (work, flat) in self.launched.items():
            work.wait()
            pieces = flat.div_(self.world_size).split([param.numel() for param in self.buckets[index]])
            for param, piece in zip(self.buckets[index], pieces, strict=True):
                param.grad.copy_(piece.view_as(param))
        self.launched.clear()
        self.fresh.clear()
