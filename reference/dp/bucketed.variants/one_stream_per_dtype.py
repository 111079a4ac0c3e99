"""Buckets filled per dtype, torch's own flatten helpers, ReduceOp.AVG, sets instead of counters."""

import math
from collections import defaultdict

import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

MIB = 1 << 20


def fill(params, cap):
    """Yields lists of parameters; the open list of each dtype is closed before it would pass the cap."""
    open_lists = defaultdict(list)
    for p in params:
        current = open_lists[p.dtype]
        if current and sum(q.nbytes for q in current) + p.nbytes > cap:
            yield open_lists.pop(p.dtype)
            current = open_lists[p.dtype]
        current.append(p)
    yield from open_lists.values()


class DDPBucketed(torch.nn.Module):
    def __init__(self, module, bucket_size_mb):
        super().__init__()
        self.module = module
        tensors = defaultdict(list)
        for t in [*module.parameters(), *module.buffers()]:
            tensors[t.dtype].append(t.detach())
        for group in tensors.values():  # one broadcast per dtype
            flat = torch.cat([t.reshape(-1) for t in group])
            dist.broadcast(flat, src=0)
            for t, values in zip(group, flat.split([t.numel() for t in group]), strict=True):
                t.copy_(values.view(t.shape))

        trainable = [p for p in module.parameters() if p.requires_grad]
        cap = math.inf if bucket_size_mb is None else bucket_size_mb * MIB
        self.buckets = list(fill(trainable[::-1], cap))
        self.waiting = [set(bucket) for bucket in self.buckets]
        self.flying = []
        for p in trainable:
            p.register_post_accumulate_grad_hook(self.arrived)

    def arrived(self, p):
        for waiting in self.waiting:
            waiting.discard(p)
        self.take_off()

    def take_off(self):
        for bucket, waiting in zip(self.buckets[len(self.flying) :], self.waiting[len(self.flying) :], strict=True):
            if waiting:
                return
            grads = [torch.zeros(p.shape, dtype=p.dtype) if p.grad is None else p.grad.contiguous() for p in bucket]
            flat = _flatten_dense_tensors(grads)
            self.flying.append((flat, dist.all_reduce(flat, op=dist.ReduceOp.AVG, async_op=True)))

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        for waiting in self.waiting:
            waiting.clear()
        self.take_off()
        for bucket, (flat, work) in zip(self.buckets, self.flying, strict=True):
            work.wait()
            for p, mean in zip(bucket, _unflatten_dense_tensors(flat, bucket), strict=True):
                p.grad = mean.clone()
        self.waiting = [set(bucket) for bucket in self.buckets]
        self.flying = []
