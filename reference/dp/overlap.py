"""
Data parallelism, one gradient at a time: each gradient is on the wire while backward computes the next one.

Every rank holds the whole model and a different part of the batch. After backward the replicas must agree on the
gradient, so each .grad is replaced by its mean over ranks. Doing that after backward leaves the network idle during
backward and the processor idle during the all-reduce. But the gradient of the last layer is final long before
backward reaches the first one, so its all-reduce can start at once:

    backward   | layer 3 | layer 2 | layer 1 |
    network              | grad 3 | grad 2 | grad 1 |  <- only this tail is exposed, and waited for in finish

The one subtle thing is the order. Collectives have no names: the k-th all_reduce of one rank is matched with the
k-th of every other. Which hooks fire, and when, depends on the graph that each rank happened to build, so the order
in which gradients become ready must not decide. Here gradients have an index, fixed at construction, and are launched
strictly in index order; a gradient that is ready early waits for its turn.

Source: Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020, section 3.2.3.
Left out: buckets (dp/bucketed), skipping the synchronisation while accumulating (DDP's no_sync).
"""

import torch
import torch.distributed as dist
from torch import nn


class DDPIndividualParameters(nn.Module):
    """Wraps a module so that every .grad is its mean over all ranks.

    Every rank constructs it, and calls finish_gradient_synchronization() once after every backward:

        ddp = DDPIndividualParameters(module)
        loss_fn(ddp(inputs), targets).backward()   # all-reduces start in here
        ddp.finish_gradient_synchronization()      # and are waited for in here
        optimizer.step()
    """

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module
        self.world_size = dist.get_world_size()

        # All replicas start as rank 0's. Frozen parameters and buffers (BatchNorm's statistics) are state too.
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.detach(), src=0)

        # Index order: backward goes roughly from the last layer to the first. parameters() lists a tied weight once.
        self.params = [param for param in reversed(list(module.parameters())) if param.requires_grad]
        self.is_ready = [False] * len(self.params)
        self.handles = []  # one per launched all_reduce; handles[i] belongs to params[i]
        for index, param in enumerate(self.params):
            param.register_post_accumulate_grad_hook(self.make_hook(index))

    def make_hook(self, index: int):
        """The hook of params[index]; autograd calls it when that .grad is final for this backward."""

        def hook(param: torch.Tensor) -> None:
            self.is_ready[index] = True
            self.launch_ready()

        return hook

    def launch_ready(self) -> None:
        """Start the all_reduce of every gradient whose turn has come: ready, and all before it launched."""
        while len(self.handles) < len(self.params) and self.is_ready[len(self.handles)]:
            param = self.params[len(self.handles)]
            # When gradients accumulate, .grad holds M + g: the mean M of earlier backwards (the same on every rank)
            # and this rank's new g. The mean of M + g over ranks is M + mean(g), so nothing is counted twice.
            self.handles.append(dist.all_reduce(param.grad, async_op=True))

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        """Wait for all all-reduces of this backward; afterwards every .grad is the mean over ranks."""
        # No hook fired for a parameter that this rank's graph did not contain. Other ranks may have used it and are
        # waiting for us: we add zeros (or what earlier backwards left in .grad), and the divisor stays world_size.
        for param in self.params[len(self.handles) :]:
            if param.grad is None:
                param.grad = torch.zeros_like(param)
        self.is_ready = [True] * len(self.params)
        self.launch_ready()

        for param, handle in zip(self.params, self.handles, strict=True):
            handle.wait()
            param.grad.div_(self.world_size)

        self.handles.clear()
        self.is_ready = [False] * len(self.params)
