"""As Megatron lays it out: mappings, a column-parallel and a row-parallel layer, an MLP of the two."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn import Module, Parameter


class _CopyToRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_, group):
        ctx.group = group
        return input_

    @staticmethod
    def backward(ctx, grad_output):
        grad_input = grad_output.contiguous()
        dist.all_reduce(grad_input, group=ctx.group)
        return grad_input, None


class _ReduceFromRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_, group):
        input_ = input_.contiguous()
        dist.all_reduce(input_, group=group)
        return input_

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class ColumnParallelLinear(Module):
    def __init__(self, input_size, output_size_per_partition, bias, group):
        super().__init__()
        self.group = group
        self.weight = Parameter(torch.empty(output_size_per_partition, input_size))
        torch.nn.init.normal_(self.weight, std=0.02)
        if bias:
            self.bias = Parameter(torch.zeros(output_size_per_partition))
        else:
            self.register_parameter("bias", None)

    def forward(self, input_):
        return F.linear(_CopyToRegion.apply(input_, self.group), self.weight, self.bias)


class RowParallelLinear(Module):
    def __init__(self, input_size_per_partition, output_size, bias, group):
        super().__init__()
        self.group = group
        self.weight = Parameter(torch.empty(output_size, input_size_per_partition))
        torch.nn.init.normal_(self.weight, std=0.02)
        if bias:
            self.bias = Parameter(torch.zeros(output_size))
        else:
            self.register_parameter("bias", None)

    def forward(self, input_parallel):
        output_parallel = F.linear(input_parallel, self.weight)
        output = _ReduceFromRegion.apply(output_parallel, self.group)
        if self.bias is not None:
            output = output + self.bias
        return output


class ParallelMLP(Module):
    def __init__(self, hidden_size, ffn_hidden_size, *, bias=True, group=None):
        super().__init__()
        ffn_hidden_size_per_partition = ffn_hidden_size // dist.get_world_size(group)
        self.fc1 = ColumnParallelLinear(hidden_size, ffn_hidden_size_per_partition, bias, group)
        self.fc2 = RowParallelLinear(ffn_hidden_size_per_partition, hidden_size, bias, group)

    def forward(self, hidden_states):
        return self.fc2(F.gelu(self.fc1(hidden_states)))
