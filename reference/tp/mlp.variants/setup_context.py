"""A right answer: new-style functions with setup_context, weights as ParameterDicts, the whole stack in one method."""

import math

import torch
import torch.distributed as dist
from torch import nn


class Conjugate(torch.autograd.Function):
    """Sums in forward or in backward; identity the other way."""

    @staticmethod
    def forward(x, group, in_forward):
        return reduced(x, group) if in_forward else x.view_as(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.group, ctx.in_forward = inputs

    @staticmethod
    def backward(ctx, grad):
        return (grad if ctx.in_forward else reduced(grad, ctx.group)), None, None


def reduced(tensor, group):
    flat = tensor.flatten().clone()
    dist.all_reduce(flat, op=dist.ReduceOp.SUM, group=group)
    return flat.view(tensor.shape)


def half(out, inn, bias):
    parameters = {"weight": torch.empty(out, inn).uniform_(-1, 1) / math.sqrt(inn)}
    if bias:
        parameters["bias"] = torch.zeros(out)
    return nn.ParameterDict(parameters)


class ParallelMLP(nn.Module):
    def __init__(self, hidden_size, ffn_hidden_size, *, bias=True, group=None):
        super().__init__()
        share, rest = divmod(ffn_hidden_size, dist.get_world_size(group))
        assert not rest
        self.fc1, self.fc2, self.group = half(share, hidden_size, bias), half(hidden_size, share, bias), group

    def forward(self, x):
        h = nn.functional.linear(Conjugate.apply(x, self.group, False), self.fc1["weight"], self.fc1.get("bias"))
        h = 0.5 * h * (1 + torch.erf(h * math.sqrt(0.5)))
        y = Conjugate.apply(torch.einsum("...f,hf->...h", h, self.fc2["weight"]), self.group, True)
        return y.add(self.fc2["bias"]) if "bias" in self.fc2 else y
