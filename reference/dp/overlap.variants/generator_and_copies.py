"""A generator walks through the parameters and sends a divided copy of each; finish copies the sums back."""

import torch
import torch.distributed as dist
import torch.nn as nn


class DDPIndividualParameters(nn.Module):
    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module
        state = {id(t): t for t in (*module.parameters(), *module.buffers())}
        pending = [dist.broadcast(t.data, src=0, async_op=True) for t in state.values()]
        for work in pending:
            work.wait()
        self.trainable = [p for p in module.parameters() if p.requires_grad]
        self.trainable.reverse()
        for p in self.trainable:
            p.register_post_accumulate_grad_hook(self._on_gradient)
        self._restart()

    def _restart(self):
        self.done = set()
        self.sent = []
        self.sender = self._send_in_order()
        next(self.sender)

    def _send_in_order(self):
        for p in self.trainable:
            while p not in self.done:
                yield
            grad = torch.zeros_like(p) if p.grad is None else p.grad
            message = grad / dist.get_world_size()
            self.sent.append((p, message, dist.all_reduce(message, async_op=True)))
        while True:
            yield

    def _on_gradient(self, p):
        self.done.add(p)
        next(self.sender)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        self.done.update(self.trainable)
        next(self.sender)
        for p, message, work in self.sent:
            work.wait()
            if p.grad is None:
                p.grad = message
            else:
                p.grad.copy_(message)
        self._restart()
