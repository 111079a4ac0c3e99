# shardkit: dp/bucketed
"""Wrong: bucket_size_mb is compared with bytes, so that nearly every parameter is a bucket of its own."""

import torch
import torch.distributed as dist
from torch import nn


class DDPBucketed(nn.Module):
    def __init__(self, module: nn.Module, bucket_size_mb: float | None):
        super().__init__()
        self.module = module
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, src=0)
        self.plan = []
        sizes = []
        for param in [p for p in module.parameters() if p.requires_grad][::-1]:
            for place, bucket in enumerate(self.plan):
                is_last_of_dtype = all(other[0].dtype != param.dtype for other in self.plan[place + 1 :])
                fits = bucket_size_mb is None or sizes[place] + param.nbytes <= bucket_size_mb
                if bucket[0].dtype == param.dtype and is_last_of_dtype and fits:
                    bucket.append(param)
                    sizes[place] += param.nbytes
                    break
            else:
                self.plan.append([param])
                sizes.append(param.nbytes)
        self.ready = [set() for _ in self.plan]
        self.works = []
        for bucket, ready in zip(self.plan, self.ready, strict=True):
            for param in bucket:
                param.register_post_accumulate_grad_hook(lambda p, ready=ready: self.mark_ready(p, ready))

    def mark_ready(self, param, ready):
        ready.add(param)
        self.advance()

    def advance(self, everything=False):
        for place in range(len(self.works), len(self.plan)):
            if len(self.ready[place]) < len(self.plan[place]) and not everything:
                break
            parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.plan[place]]
            flat = torch.cat([part.reshape(-1) for part in parts]) / dist.get_world_size()
            self.works.append((flat, dist.all_reduce(flat, async_op=True)))

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        self.advance(everything=True)
        for bucket, (flat, work) in zip(self.plan, self.works, strict=True):
            work.wait()
            for param, piece in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                param.grad = piece.reshape(param.shape).clone()
        self.works = []
        for ready in self.ready:
            ready.clear()
