"""The way of Horovod and of early DDP: hooks on the AccumulateGrad nodes, ReduceOp.AVG, a heap for the order."""

import heapq

import torch
import torch.distributed as dist


class DDPIndividualParameters(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        with torch.no_grad():
            for p in module.parameters():
                dist.broadcast(p, 0)
            for b in module.buffers():
                dist.broadcast(b, 0)
        self._todo = [p for p in module.parameters() if p.requires_grad][::-1]
        self._nodes = []  # autograd holds them weakly; ours keep the hooks alive
        for i, p in enumerate(self._todo):
            node = p.view_as(p).grad_fn.next_functions[0][0]
            node.register_hook(lambda *_, i=i: self._arrived(i))
            self._nodes.append(node)
        self._heap = []
        self._works = []

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _arrived(self, i):
        heapq.heappush(self._heap, i)
        while self._heap and self._heap[0] == len(self._works):
            p = self._todo[heapq.heappop(self._heap)]
            if p.grad is None:
                p.grad = p.detach().clone().zero_()
            self._works.append(dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, async_op=True))

    def finish_gradient_synchronization(self):
        waiting = set(self._heap)
        for i in range(len(self._works), len(self._todo)):
            if i not in waiting:
                self._arrived(i)
        while self._works:
            self._works.pop().wait()
