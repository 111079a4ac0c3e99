"""Backward by a tensor hook, and every all-reduce in its two halves: reduce-scatter, then all-gather."""

import torch
import torch.distributed as dist
from torch import nn


def summed(tensor, group):
    """The sum over the group, as a new tensor; flat, and padded so that n divides it."""
    n = dist.get_world_size(group)
    flat = torch.zeros(-(-tensor.numel() // n) * n, dtype=tensor.dtype, device=tensor.device)
    flat[: tensor.numel()] = tensor.detach().reshape(-1)
    part = flat.new_empty(flat.numel() // n)
    dist.reduce_scatter_tensor(part, flat, group=group)
    dist.all_gather_into_tensor(flat, part, group=group)
    return flat[: tensor.numel()].view(tensor.shape)


class ParallelMLP(nn.Module):
    def __init__(self, hidden_size, ffn_hidden_size, *, bias=True, group=None):
        super().__init__()
        self.group = group
        width = ffn_hidden_size // dist.get_world_size(group)
        self.fc1 = nn.Linear(hidden_size, width, bias=bias)
        self.fc2 = nn.Linear(width, hidden_size, bias=bias)

    def forward(self, x):
        if x.requires_grad:
            x = x.view_as(x)  # a tensor of our own, so that the hook does not see gradients of x's other uses
            x.register_hook(lambda grad: summed(grad, self.group))
        partial = nn.functional.gelu(self.fc1(x)) @ self.fc2.weight.t()
        y = ValueOf.apply(partial, summed(partial, self.group))
        return y if self.fc2.bias is None else y + self.fc2.bias


class ValueOf(torch.autograd.Function):
    """The value of the second argument, the gradient of the first."""

    @staticmethod
    def forward(ctx, partial, total):
        return total.view_as(total)

    @staticmethod
    def backward(ctx, grad):
        return grad, None
