"""
An optimizer whose state is spread over the ranks: each rank owns some of the parameters and steps only those.

Under data parallelism every rank holds the same parameters and, after the all-reduce, the same gradients.
With Adam every rank then also holds the same two moments, twice the size of the parameters. Once is enough:

    own        each parameter, as a whole tensor, belongs to one rank; all ranks know who owns what
    step       the owner's inner optimizer updates it; the state is created there and nowhere else
    broadcast  the owner sends the new value to the others

For n = 2 and AdamW, with parameters of 6, 1, 4 and 2 elements in this order:

            owns             moments        step        then
    rank 0  6                6 x 2          param 0     broadcasts param 0
    rank 1  1, 4, 2          7 x 2          the rest    broadcasts params 1, 2, 3

The one subtle thing is who owns what. Each parameter goes to the rank that has the fewest elements so far,
so no rank gets more than total/n + the largest tensor. Taking turns (i % n) has no such bound: in [weight,
bias, weight, bias, ...] and for n = 2 all weights fall to rank 0. The loads are kept when a group is added
later, and a tensor never changes its owner, for its state would be left behind.

Source: Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, SC 2020,
section 5.1; the whole-tensor form is that of torch.distributed.optim.ZeroRedundancyOptimizer.
Left out: flat shards of equal size and reduce-scattered gradients (zero/zero1), saving and loading, one
broadcast for many small tensors, process groups other than WORLD.
"""

import torch
import torch.distributed as dist


class ShardedOptimizer(torch.optim.Optimizer):
    """Steps like `optimizer_cls(params, **kwargs)`, but each rank holds the state of its own parameters only.

    `param_groups` lists all parameters, as in any optimizer, and its hyperparameters rule.
    `state` has an entry for each parameter that this rank owns.
    Construction, add_param_group and step are called by every rank, in the same order.
    """

    def __init__(self, params, optimizer_cls, **kwargs):
        self.rank = dist.get_rank()
        self.owner = {}  # parameter -> the rank that owns it; the same on every rank
        self.owned_numel = [0] * dist.get_world_size()

        # The optimizer that does the work. It begins with an empty group: optimizer_cls([]) would raise,
        # and a rank may own nothing. That group goes; those of owned parameters come in add_param_group.
        self.inner = optimizer_cls([{"params": []}], **kwargs)
        self.inner.param_groups.clear()

        # The base class walks `params`, which may be a generator or hold dicts, and calls add_param_group
        # for each group. The defaults are all of the inner optimizer's, also those that kwargs do not name:
        # a scheduler looks for "lr" in the outer groups.
        super().__init__(params, self.inner.defaults)
        self.state = self.inner.state

    def add_param_group(self, param_group):
        """Give every parameter of the group an owner. Called by the base class's __init__, and later."""
        super().add_param_group(param_group)  # validates, fills in the defaults, appends to param_groups
        group = self.param_groups[-1]
        for param in group["params"]:
            owner = self.owned_numel.index(min(self.owned_numel))
            self.owner[param] = owner
            self.owned_numel[owner] += param.numel()

        # Also where this rank owns none of it, so that the k-th inner group belongs to the k-th outer one.
        owned = [param for param in group["params"] if self.owner[param] == self.rank]
        self.inner.add_param_group({**group, "params": owned})

    def step(self, closure=None, **kwargs):
        """Update every parameter on every rank; return the closure's loss. Gradients are already averaged."""
        # Schedulers and users write to the outer groups; what stands there now is what counts.
        for outer, inner in zip(self.param_groups, self.inner.param_groups, strict=True):
            inner.update({key: value for key, value in outer.items() if key != "params"})

        loss = self.inner.step(closure, **kwargs)

        # All ranks go through all parameters in one order: the k-th broadcast here meets the k-th there.
        for group in self.param_groups:
            for param in group["params"]:
                dist.broadcast(param.detach(), src=self.owner[param])
        return loss
