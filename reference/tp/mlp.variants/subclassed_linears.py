"""A right answer: subclasses of Linear, sums that autograd does not see, and a tensor hook."""

import functools

import torch
import torch.distributed as dist
from torch import nn


def summed(tensor, group):
    total = tensor.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group, async_op=True).wait()
    return total


class Column(nn.Linear):
    def __init__(self, wide, narrow, bias, group):
        super().__init__(wide, narrow // dist.get_world_size(group), bias)
        self.reduce = functools.partial(summed, group=group)

    def forward(self, x):
        if x.requires_grad:
            x = x.view_as(x)
            x.register_hook(self.reduce)
        return super().forward(x)


class Row(nn.Linear):
    def __init__(self, wide, narrow, bias, group):
        super().__init__(wide // dist.get_world_size(group), narrow, bias)
        self.reduce = functools.partial(summed, group=group)

    def forward(self, x):
        part = x @ self.weight.mT
        y = part.clone()
        y.data.copy_(self.reduce(part))  # autograd sees an identity
        return y if self.bias is None else y + self.bias


class ParallelMLP(nn.Sequential):
    def __init__(self, hidden_size, ffn_hidden_size, *, bias=True, group=None):
        super().__init__()
        self.add_module("fc1", Column(hidden_size, ffn_hidden_size, bias, group))
        self.add_module("gelu", nn.GELU())
        self.add_module("fc2", Row(ffn_hidden_size, hidden_size, bias, group))
