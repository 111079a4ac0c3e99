"""
Data parallelism in buckets: few large all-reduces, and each of them still starts during backward.

dp/overlap sends one message per gradient. A model has hundreds of tensors, many of them tiny (biases, norms), and an
all-reduce costs a fixed latency before its first byte moves: 2(n-1) steps of alpha each, then 2(n-1)/n S/B for the
bytes S at bandwidth B. One message for everything pays alpha once, but cannot start before the last gradient is
there. Buckets are the middle: S large enough to hide alpha, small enough that the first one leaves early.

    parameters, reversed      8 MB   1 MB   9 MB   30 MB   2 MB          bucket_size_mb = 10
    buckets                  [8      1]    [9]    [30]    [2]            a tensor above the cap is a bucket by itself

Three things keep all ranks in step:
    buckets are decided at construction, from sizes that are the same everywhere, never from what backward does;
    buckets are launched in index order; one that is full early waits for its turn;
    finish flushes what is left, because a bucket with an unused parameter never becomes ready by itself.

Source: Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020, sections 3.2.2
and 3.2.3.
Left out: gradients as views into the bucket (saves one copy of all gradients), rebuilding the buckets in the order
that the first backward showed, one bucket of a smaller size. torch's DDP does all three.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn


@dataclass
class Bucket:
    """Parameters whose gradients travel in one all_reduce. They follow each other in index order, and share a dtype."""

    params: list[nn.Parameter]
    num_pending: int = 0  # gradients that this backward has not produced yet
    flat: torch.Tensor | None = None  # [numel of all params together], from launch to finish
    handle: dist.Work | None = None


def make_buckets(params: list[nn.Parameter], cap_bytes: float) -> list[Bucket]:
    """Cut a list of parameters into buckets of at most cap_bytes; a larger parameter is a bucket by itself.

    Bytes 40, 60, 30, 200, 10 with cap_bytes=100 -> [40, 60], [30], [200], [10]
    """
    buckets: list[Bucket] = []
    open_bytes = 0
    for param in params:
        num_bytes = param.numel() * param.element_size()
        fits = buckets and open_bytes + num_bytes <= cap_bytes and buckets[-1].params[0].dtype == param.dtype
        if not fits:
            buckets.append(Bucket(params=[]))
            open_bytes = 0
        buckets[-1].params.append(param)
        open_bytes += num_bytes
    return buckets


class DDPBucketed(nn.Module):
    """Wraps a module so that every .grad is its mean over all ranks, reduced in buckets of bucket_size_mb.

    One MB is 2**20 bytes; None puts everything (of one dtype) into one bucket. Every rank constructs it, and calls
    finish_gradient_synchronization() once after every backward.
    """

    def __init__(self, module: nn.Module, bucket_size_mb: float | None):
        super().__init__()
        self.module = module
        self.world_size = dist.get_world_size()

        # All replicas start as rank 0's. Frozen parameters and buffers (BatchNorm's statistics) are state too.
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.detach(), src=0)

        # Backward goes roughly from the last layer to the first, so the last parameters fill the first bucket.
        params = [param for param in reversed(list(module.parameters())) if param.requires_grad]
        cap_bytes = float("inf") if bucket_size_mb is None else bucket_size_mb * 2**20
        self.buckets = make_buckets(params, cap_bytes)
        self.num_launched = 0  # buckets[:num_launched] are in flight
        for bucket in self.buckets:
            bucket.num_pending = len(bucket.params)
            for param in bucket.params:
                param.register_post_accumulate_grad_hook(self.make_hook(bucket))

    def make_hook(self, bucket: Bucket):
        """The hook of one parameter of the bucket; autograd calls it when that .grad is final for this backward."""

        def hook(param: torch.Tensor) -> None:
            bucket.num_pending -= 1
            self.launch_ready()

        return hook

    def launch_ready(self) -> None:
        """Start the all_reduce of every bucket whose turn has come: ready, and all before it launched."""
        while self.num_launched < len(self.buckets) and self.buckets[self.num_launched].num_pending == 0:
            bucket = self.buckets[self.num_launched]
            # A copy, in the gradients' dtype. With gradients that accumulate it holds M + g: the mean M of earlier
            # backwards, which is the same on every rank, and this rank's new g. The mean of that is M + mean(g).
            bucket.flat = torch.cat([param.grad.reshape(-1) for param in bucket.params])
            bucket.handle = dist.all_reduce(bucket.flat, async_op=True)
            self.num_launched += 1

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        """Launch what is left, wait for everything; afterwards every .grad is the mean over ranks."""
        # Left are buckets with a parameter that this rank's graph did not contain, and all buckets after them. Other
        # ranks may have used it and are waiting for us: we add zeros, and the divisor stays world_size.
        for bucket in self.buckets[self.num_launched :]:
            bucket.num_pending = 0
            for param in bucket.params:
                if param.grad is None:
                    param.grad = torch.zeros_like(param)
        self.launch_ready()

        for bucket in self.buckets:
            bucket.handle.wait()
            bucket.flat.div_(self.world_size)
            chunks = bucket.flat.split([param.numel() for param in bucket.params])
            for param, chunk in zip(bucket.params, chunks, strict=True):
                param.grad.copy_(chunk.view_as(param))  # back into .grad: the bucket was only a copy

        self.num_launched = 0
        for bucket in self.buckets:
            bucket.num_pending = len(bucket.params)
            bucket.flat = bucket.handle = None
