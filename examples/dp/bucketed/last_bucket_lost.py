# shardkit: dp/bucketed
"""Wrong: a bucket joins the list when the next gradient no longer fits, so the last one never does."""

import torch
import torch.distributed as dist
from torch import nn


class DDPBucketed(nn.Module):
    def __init__(self, module: nn.Module, bucket_size_mb: float | None):
        super().__init__()
        self.module = module
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)

        self.buckets = []
        by_dtype = {}
        for param in reversed(list(module.parameters())):
            if param.requires_grad:
                by_dtype.setdefault(param.dtype, []).append(param)
        for params in by_dtype.values():
            current, room = [], bucket_size_mb and bucket_size_mb * 2**20
            for param in params:
                if current and room is not None and param.nbytes > room:
                    self.buckets.append(current)
                    current, room = [], bucket_size_mb * 2**20
                current.append(param)
                room = room and room - param.nbytes

        self.waiting_for = [set(bucket) for bucket in self.buckets]
        self.launched = []
        for missing in self.waiting_for:
            for param in missing:
                param.register_post_accumulate_grad_hook(lambda p, missing=missing: self.arrive(p, missing))

    def arrive(self, param, missing):
        missing.discard(param)
        while len(self.launched) < len(self.buckets) and not self.waiting_for[len(self.launched)]:
            self.launch()

    def launch(self):
        bucket = self.buckets[len(self.launched)]
        for param in bucket:
            if param.grad is None:
                param.grad = torch.zeros_like(param)
        flat = torch.cat([param.grad.flatten() for param in bucket]) / dist.get_world_size()
        self.launched.append((flat, dist.all_reduce(flat, async_op=True)))

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        while len(self.launched) < len(self.buckets):
            self.launch()
        for bucket, missing, (flat, work) in zip(self.buckets, self.waiting_for, self.launched, strict=True):
            work.wait()
            for param, piece in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                param.grad.copy_(piece.view_as(param.grad))
            missing.update(bucket)
        self.launched.clear()
