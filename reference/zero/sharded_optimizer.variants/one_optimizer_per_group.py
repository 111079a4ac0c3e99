"""A separate optimizer for each group in which this rank owns something; one flat broadcast per owner."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer


class ShardedOptimizer(Optimizer):
    def __init__(self, params: Iterable[Tensor | dict], optimizer_cls: type[Optimizer], **kwargs: Any) -> None:
        self._optimizer_cls = optimizer_cls
        self._kwargs = kwargs
        self._world_size = dist.get_world_size()
        self._rank = dist.get_rank()
        self._num_elements = defaultdict(int)
        self._params_of_rank = [[] for _ in range(self._world_size)]
        self._optimizers: dict[int, Optimizer] = {}  # index of the group -> its optimizer
        placeholder = torch.nn.Parameter(torch.empty(0))
        super().__init__(params, optimizer_cls([placeholder], **kwargs).defaults)

    def add_param_group(self, param_group: dict) -> None:
        super().add_param_group(param_group)
        index = len(self.param_groups) - 1
        mine = []
        for param in self.param_groups[index]["params"]:
            rank = min(range(self._world_size), key=lambda r: (self._num_elements[r], r))
            self._num_elements[rank] += param.numel()
            self._params_of_rank[rank].append(param)
            if rank == self._rank:
                mine.append(param)
        if mine:
            self._optimizers[index] = self._optimizer_cls(mine, **self._kwargs)
            self._optimizers[index].state = self.state  # one dict for all of them

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for index, optimizer in self._optimizers.items():
            (inner_group,) = optimizer.param_groups
            for key in self.param_groups[index]:
                if key != "params":
                    inner_group[key] = self.param_groups[index][key]
            optimizer.step(**kwargs)
        for rank in range(self._world_size):
            self._broadcast_from(rank)
        return loss

    def _broadcast_from(self, rank: int) -> None:
        params = [param.data for param in self._params_of_rank[rank]]
        if not params:
            return
        flat = torch.cat([param.reshape(-1) for param in params])
        dist.broadcast(flat, src=rank)
        if rank != self._rank:
            pieces = flat.split([param.numel() for param in params])
            for param, piece in zip(params, pieces, strict=True):
                param.copy_(piece.view_as(param))
