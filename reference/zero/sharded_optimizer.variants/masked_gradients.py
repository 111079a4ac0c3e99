"""A complete optimizer on every rank, which is not shown the gradients of other ranks' parameters.

torch creates state for parameters that have a gradient in a step, so what is never shown one never gets
state. The group dicts are the inner optimizer's own, so there are no hyperparameters to copy.
"""

import torch
import torch.distributed as dist
from torch.optim import Optimizer


class ShardedOptimizer(Optimizer):
    def __init__(self, params, optimizer_cls, **kwargs):
        self._rank, self._load, self._owner = dist.get_rank(), [0] * dist.get_world_size(), {}
        self._inner = optimizer_cls(params, **kwargs)
        super().__init__(self._inner.param_groups, self._inner.defaults)
        self.state = self._inner.state

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        if not any(group is param_group for group in self._inner.param_groups):
            self._inner.add_param_group(param_group)
        for p in sorted(param_group["params"], key=torch.Tensor.numel, reverse=True):  # largest first, stable
            self._owner[p] = min(range(len(self._load)), key=self._load.__getitem__)
            self._load[self._owner[p]] += p.numel()

    @torch.no_grad()
    def step(self, closure=None, **kwargs):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()

        hidden = {p: p.grad for p, owner in self._owner.items() if owner != self._rank}
        for p in hidden:
            p.grad = None
        self._inner.step(**kwargs)
        for p, grad in hidden.items():
            p.grad = grad

        works = [dist.broadcast(p, src=owner, async_op=True) for p, owner in self._owner.items()]
        for work in works:
            work.wait()
        return loss
