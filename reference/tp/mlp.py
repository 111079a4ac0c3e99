"""
The tensor-parallel MLP: a column-parallel linear layer, gelu, a row-parallel linear layer, two all-reduces.

    y = gelu(x A + b1) B + b2            A is fc1.weight transposed, B is fc2.weight transposed

Cut A by columns and B by rows over n ranks. A rank then computes some of the hidden features from beginning
to end, and gelu acts on each feature alone, so nothing is exchanged in between. Only the last product sums
over all features, and that sum is the one all-reduce of forward:

    rank r    x [.., H] -> fc1 -> [.., F/n] -> gelu -> fc2 -> partial y [.., H] --all-reduce--> + b2 -> y

Backward turns this round. dL/dy is whole and the same on all ranks, and each rank's partial y takes it as it
is: no communication. But x went into the features of every rank, and a rank finds only its own features' part
of dL/dx: the sum of the parts is the one all-reduce of backward. Megatron calls the two ends f and g:

          forward       backward
    f     identity      all-reduce      where x enters
    g     all-reduce    identity        where y leaves

The subtle line is the bias b2: it is whole on every rank, so it is added after the sum, or it counts n times.
Its gradient then comes out whole, and the same on all ranks, with no communication.

Source: Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3, figure 3a and the operators f and g.
Left out: sequence parallelism, overlap of the backward all-reduce with the weight gradient, dropout, and
initialisation (draw the whole weight and cut it, so that the model does not depend on n).

Shapes: H hidden_size, F ffn_hidden_size, n the size of the group; x may have any leading dimensions.
"""

import torch
import torch.distributed as dist
from torch import nn


class CopyToRanks(torch.autograd.Function):
    """f: every rank uses the whole x, so dL/dx is the sum of what the ranks find."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        # A contiguous copy: what autograd hands us is not ours to overwrite, others may be reading it.
        grad = grad.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class SumOverRanks(torch.autograd.Function):
    """g: y is the sum of the partial products, so each of them gets dL/dy as it is."""

    @staticmethod
    def forward(ctx, partial, group):
        total = partial.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class ParallelMLP(nn.Module):
    """fc1, gelu, fc2, cut over the ranks of `group`; x and y are whole and the same on all of them.

    fc1.weight [F/n, H], fc1.bias [F/n], fc2.weight [H, F/n], fc2.bias [H] whole. Every rank of the group
    calls forward, and backward, in the same order.
    """

    def __init__(self, hidden_size, ffn_hidden_size, *, bias=True, group=None):
        super().__init__()
        num_ranks = dist.get_world_size(group)
        if ffn_hidden_size % num_ranks != 0:
            raise ValueError(f"ffn_hidden_size {ffn_hidden_size} does not divide over {num_ranks} ranks")
        self.group = group
        self.fc1 = nn.Linear(hidden_size, ffn_hidden_size // num_ranks, bias=bias)
        self.fc2 = nn.Linear(ffn_hidden_size // num_ranks, hidden_size, bias=bias)

    def forward(self, x):
        """x [.., H] -> y [.., H]"""
        x = CopyToRanks.apply(x, self.group)
        hidden = nn.functional.gelu(self.fc1(x))  # [.., F/n]
        partial = nn.functional.linear(hidden, self.fc2.weight)  # [.., H], without the bias
        y = SumOverRanks.apply(partial, self.group)
        return y if self.fc2.bias is None else y + self.fc2.bias
