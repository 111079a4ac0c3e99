"""Each hook writes its divided gradient into its slice of a preallocated message; futures bring the result back."""

import torch
import torch.distributed as dist
from torch import Tensor, nn


class _Message:
    def __init__(self, params: list[nn.Parameter]):
        self.params = params
        self.payload = params[0].new_zeros(sum(p.numel() for p in params), requires_grad=False)
        self.slices = dict(zip(params, self.payload.split([p.numel() for p in params]), strict=True))
        self.filled: set[nn.Parameter] = set()

    def write(self, p: nn.Parameter) -> None:
        target = self.slices[p].view(p.shape)
        target.zero_() if p.grad is None else torch.div(p.grad, dist.get_world_size(), out=target)
        self.filled.add(p)

    def read(self) -> None:
        for p in self.params:
            p.grad = self.slices[p].view(p.shape).clone()
        self.filled.clear()


class DDPBucketed(nn.Module):
    def __init__(self, module: nn.Module, bucket_size_mb: float | None) -> None:
        super().__init__()
        self.module = module
        seen: set[int] = set()
        for submodule in module.modules():
            own = [*submodule.parameters(recurse=False), *submodule.buffers(recurse=False)]
            for tensor in own:
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    dist.broadcast(tensor.data, src=0)
        self.messages = self._plan(bucket_size_mb)
        self.home = {p: m for m in self.messages for p in m.params}
        self.futures: list[torch.futures.Future] = []
        for p in self.home:
            p.register_post_accumulate_grad_hook(self._hook)

    def _plan(self, bucket_size_mb: float | None) -> list[_Message]:
        plan: list[list[nn.Parameter]] = []
        room = 0.0
        for p in reversed([p for p in self.module.parameters() if p.requires_grad]):
            if not plan or room <= 0 or plan[-1][0].dtype is not p.dtype:
                plan.append([])
                room = float("inf") if bucket_size_mb is None else bucket_size_mb * 1024**2
            plan[-1].append(p)
            room -= p.numel() * p.dtype.itemsize
        return [_Message(params) for params in plan]

    def _hook(self, p: Tensor) -> None:
        self.home[p].write(p)
        self._send()

    def _send(self) -> None:
        for message in self.messages[len(self.futures) :]:
            if len(message.filled) < len(message.params):
                break
            self.futures.append(dist.all_reduce(message.payload, async_op=True).get_future())

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        for message in self.messages[len(self.futures) :]:
            for p in message.params:
                if p not in message.filled:
                    message.write(p)
        self._send()
        torch.futures.wait_all(self.futures)
        for message in self.messages:
            message.read()
        self.futures.clear()
