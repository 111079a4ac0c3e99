"""dp/overlap: data parallelism that all-reduces each gradient while backward still runs.

Run `shardkit grade dp/overlap THIS_FILE`. You may use torch and the standard library, except what would be the
answer (DistributedDataParallel, FSDP and the like).
"""

import torch  # noqa: F401
import torch.distributed as dist  # noqa: F401
from torch import nn


class DDPIndividualParameters(nn.Module):
    """Wraps a module so that every .grad is its mean over all ranks.

    Every rank constructs it with the same architecture, and then, for every backward:

        ddp = DDPIndividualParameters(module)
        loss_fn(ddp(inputs), targets).backward()   # each all_reduce starts in here
        ddp.finish_gradient_synchronization()      # and is waited for in here
        optimizer.step()
    """

    def __init__(self, module: nn.Module):
        """Keep the module as `self.module`, give every rank rank 0's state, and register the hooks.

        Every parameter and every buffer becomes rank 0's: also frozen parameters (requires_grad=False), and buffers
        that state_dict() leaves out (persistent=False). This is the only time that state travels.
        torch.distributed is initialised; the group is WORLD.
        """
        super().__init__()
        raise NotImplementedError

    def forward(self, *inputs, **kwargs):
        """Return exactly what the wrapped module returns for these arguments; no communication."""
        raise NotImplementedError

    def finish_gradient_synchronization(self) -> None:
        """Called once by every rank after every backward, also when gradients accumulate.

        On return all all_reduces are waited for, and the .grad of every parameter with requires_grad=True is the mean
        over ranks, in the parameter's own dtype and shape. A parameter that some ranks did not use in this backward
        counts as zero there, and the divisor is still the world size.
        """
        raise NotImplementedError
