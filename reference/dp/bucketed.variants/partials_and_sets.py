"""A right answer: hooks are partials, a bucket knows what it misses as a set, and unused gradients count as zeros."""

from functools import partial

import torch
import torch.distributed as dist
from torch import nn


class DDPBucketed(nn.Module):
    def __init__(self, module, bucket_size_mb):
        super().__init__()
        self.module = module
        with torch.no_grad():
            for tensor in (*module.buffers(), *module.parameters()):
                dist.broadcast(tensor, 0)
        cap = float("inf") if bucket_size_mb is None else bucket_size_mb * (1 << 20)
        self._buckets, full = [], True
        for p in reversed([*module.parameters()]):
            if not p.requires_grad:
                continue
            if full or self._buckets[-1][-1].dtype != p.dtype:
                self._buckets.append([])
            self._buckets[-1].append(p)
            full = sum(q.numel() * q.element_size() for q in self._buckets[-1]) >= cap
        self._missing = [set(bucket) for bucket in self._buckets]
        self._flying = []
        for index, bucket in enumerate(self._buckets):
            for p in bucket:
                p.register_post_accumulate_grad_hook(partial(self._arrived, index))

    def _arrived(self, index, param):
        self._missing[index].discard(param)
        while len(self._flying) < len(self._buckets) and not self._missing[len(self._flying)]:
            bucket = self._buckets[len(self._flying)]
            flat = torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in bucket])
            self._flying.append((bucket, flat, dist.all_reduce(flat, async_op=True)))

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self):
        for index, missing in enumerate(self._missing):
            for param in [*missing]:
                self._arrived(index, param)
        while self._flying:
            bucket, flat, work = self._flying.pop()
            work.wait()
            flat.div_(dist.get_world_size())
            for p in bucket:
                piece, flat = flat[: p.numel()], flat[p.numel() :]
                if p.grad is None:
                    p.grad = torch.empty_like(p)
                p.grad.copy_(piece.view(p.shape))
        self._missing = [set(bucket) for bucket in self._buckets]
