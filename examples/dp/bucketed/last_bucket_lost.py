# shardkit: dp/bucketed
"""Wrong: a bucket is sent when it is full, and the last one seldom is; nothing sends what is left in it."""

import torch
import torch.distributed as dist
from torch import nn


class DDPBucketed(nn.Module):
    def __init__(self, module: nn.Module, bucket_size_mb: float | None):
        super().__init__()
        self.module = module
        self.cap_bytes = None if bucket_size_mb is None else bucket_size_mb * 2**20
        self.pending = []
        self.pending_bytes = 0
        self.sent = []
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for param in module.parameters():
            if param.requires_grad:
                param.register_post_accumulate_grad_hook(self.collect)

    def collect(self, param):
        self.pending.append(param)
        self.pending_bytes += param.grad.nbytes
        if self.cap_bytes is not None and self.pending_bytes >= self.cap_bytes:
            self.send()

    def send(self):
        flat = torch.cat([param.grad.flatten() for param in self.pending]) / dist.get_world_size()
        self.sent.append((dist.all_reduce(flat, async_op=True), flat, self.pending))
        self.pending = []
        self.pending_bytes = 0

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        for work, flat, params in self.sent:
            work.wait()
            for param, piece in zip(params, flat.split([p.numel() for p in params]), strict=True):
                param.grad.copy_(piece.view_as(param))
        self.sent = []
        self.pending = []
        self.pending_bytes = 0
