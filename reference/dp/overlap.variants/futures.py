"""Futures with a callback that divides, a cursor for the order, no list of handles."""

from collections import deque
from functools import partial

import torch
import torch.distributed as dist


class DDPIndividualParameters(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.futures = deque()
        self.cursor = 0
        self.state = {}  # parameter -> has its gradient arrived in this backward?
        for tensor in self._everything():
            dist.broadcast(tensor, src=0)
        for param in reversed(tuple(module.parameters())):
            if param.requires_grad:
                self.state[param] = False
                param.register_post_accumulate_grad_hook(self.mark_ready)
        self.order = tuple(self.state)

    def _everything(self):
        for submodule in self.module.modules():
            for tensors in (submodule._buffers, submodule._parameters):
                for tensor in tensors.values():
                    if tensor is not None:
                        yield tensor.data  # a tied tensor is sent twice, which does no harm

    def mark_ready(self, param):
        self.state[param] = True
        while self.cursor < len(self.order) and self.state[self.order[self.cursor]]:
            grad = self.order[self.cursor].grad
            future = dist.all_reduce(grad, async_op=True).get_future()
            self.futures.append(future.then(partial(self.divide, grad)))
            self.cursor += 1

    @staticmethod
    def divide(grad, future):
        future.value()
        return grad.div_(dist.get_world_size())

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        for param in self.order:
            if not self.state[param]:
                if param.grad is None:
                    param.grad = torch.zeros_like(param)
                self.mark_ready(param)
        while self.futures:
            self.futures.popleft().wait()
        self.cursor = 0
        self.state = dict.fromkeys(self.state, False)
