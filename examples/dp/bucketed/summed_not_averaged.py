# shardkit: dp/bucketed
"""Wrong: the gradients are added up over the ranks, and nothing divides by their number."""

import torch
import torch.distributed as dist
from torch import nn


class DDPBucketed(nn.Module):
    def __init__(self, module: nn.Module, bucket_size_mb: float | None):
        super().__init__()
        self.module = module
        with torch.no_grad():
            for tensor in (*module.parameters(), *module.buffers()):
                dist.broadcast(tensor, src=0)
        self.buckets = self.fill(float("inf") if bucket_size_mb is None else bucket_size_mb * 1024 * 1024)
        self.missing = [len(bucket) for bucket in self.buckets]
        self.in_flight = []
        for index, bucket in enumerate(self.buckets):
            for param in bucket:
                param.register_post_accumulate_grad_hook(lambda _, index=index: self.count(index))

    def fill(self, cap):
        buckets, room = [], {}
        for param in reversed([p for p in self.module.parameters() if p.requires_grad]):
            num_bytes = param.numel() * param.element_size()
            if param.dtype not in room or room[param.dtype][1] < num_bytes:
                buckets.append([])
                room[param.dtype] = [buckets[-1], cap]
            room[param.dtype][0].append(param)
            room[param.dtype][1] -= num_bytes
        return buckets

    def count(self, index):
        self.missing[index] -= 1
        while len(self.in_flight) < len(self.buckets) and self.missing[len(self.in_flight)] == 0:
            self.launch()

    def launch(self):
        bucket = self.buckets[len(self.in_flight)]
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([grad.flatten() for grad in grads])
        self.in_flight.append((dist.all_reduce(flat, async_op=True), flat))

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        while len(self.in_flight) < len(self.buckets):
            self.launch()
        for bucket, (work, flat) in zip(self.buckets, self.in_flight, strict=True):
            work.wait()
            offset = 0
            for param in bucket:
                param.grad = flat[offset : offset + param.numel()].view(param.shape).clone()
                offset += param.numel()
        self.in_flight.clear()
        self.missing = [len(bucket) for bucket in self.buckets]
