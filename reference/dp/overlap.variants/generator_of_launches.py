"""A right answer: a generator launches in turn, and is sent the index of each gradient that is ready."""

import torch
import torch.distributed as dist
from torch import nn


def launcher(params):
    """A generator that is sent indices as they become ready, and starts reductions in turn; None ends a backward."""
    while True:
        ready, works = set(), []
        while (index := (yield)) is not None:
            ready.add(index)
            while len(works) in ready:
                grad = params[len(works)].grad
                works.append((grad, dist.all_reduce(grad, async_op=True)))
        for grad, work in works:
            work.wait()
            grad /= dist.get_world_size()


class DDPIndividualParameters(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        works = [dist.broadcast(t.data, 0, async_op=True) for t in (*module.parameters(), *module.buffers())]
        for work in works:
            work.wait()
        self._params = tuple(p for p in module.parameters() if p.requires_grad)[::-1]
        self._launcher = launcher(self._params)
        next(self._launcher)
        self._fired = set()
        for index, param in enumerate(self._params):
            param.register_post_accumulate_grad_hook(lambda _, index=index: self._fire(index))

    def _fire(self, index):
        self._fired.add(index)
        self._launcher.send(index)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self):
        for index, param in enumerate(self._params):
            if index not in self._fired:
                param.grad = torch.zeros_like(param) if param.grad is None else param.grad
                self._launcher.send(index)
        self._launcher.send(None)
        self._fired.clear()
