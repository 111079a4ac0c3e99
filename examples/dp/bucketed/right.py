# shardkit: dp/bucketed
"""A right answer: a queue of buckets, each sent when its last gradient arrives, never out of turn."""

import torch
import torch.distributed as dist
from torch import nn


class Bucket:
    def __init__(self):
        self.params = []
        self.num_bytes = 0
        self.clear()

    def add(self, param):
        self.params.append(param)
        self.num_bytes += param.numel() * param.element_size()

    def clear(self):
        self.arrived = set()
        self.flat = None
        self.work = None

    def is_full(self):
        return len(self.arrived) == len(self.params)

    def send(self):
        # A parameter that this rank did not use still owes the others its zeros.
        for param in self.params:
            if param.grad is None:
                param.grad = torch.zeros_like(param)
        self.flat = torch.cat([param.grad.reshape(-1) for param in self.params])
        self.work = dist.all_reduce(self.flat, async_op=True)

    def receive(self):
        self.work.wait()
        self.flat /= dist.get_world_size()
        pieces = self.flat.split([param.numel() for param in self.params])
        for param, piece in zip(self.params, pieces, strict=True):
            param.grad.copy_(piece.view_as(param.grad))


class DDPBucketed(nn.Module):
    def __init__(self, module: nn.Module, bucket_size_mb: float | None):
        super().__init__()
        self.module = module
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, src=0)

        cap = float("inf") if bucket_size_mb is None else bucket_size_mb * 2**20
        self.buckets = []
        open_buckets = {}  # one for each dtype
        for param in reversed(list(module.parameters())):
            if not param.requires_grad:
                continue
            bucket = open_buckets.get(param.dtype)
            size = param.numel() * param.element_size()
            if bucket is None or (bucket.params and bucket.num_bytes + size > cap):
                bucket = open_buckets[param.dtype] = Bucket()
                self.buckets.append(bucket)
            bucket.add(param)
            param.register_post_accumulate_grad_hook(self.make_hook(bucket))
        self.num_sent = 0

    def make_hook(self, bucket):
        def on_gradient(param):
            bucket.arrived.add(param)
            # Full buckets wait for those before them: every rank must send in the same order.
            while self.num_sent < len(self.buckets) and self.buckets[self.num_sent].is_full():
                self.send_next()

        return on_gradient

    def send_next(self):
        self.buckets[self.num_sent].send()
        self.num_sent += 1

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        while self.num_sent < len(self.buckets):
            self.send_next()
        for bucket in self.buckets:
            bucket.receive()
            bucket.clear()
        self.num_sent = 0
