"""tp/mlp: the tensor-parallel MLP, column-parallel then row-parallel.

Run `shardkit grade tp/mlp THIS_FILE`. You may use torch and the standard library, except what would be the
answer (torch.distributed.tensor and the like).
"""

import torch
import torch.distributed as dist  # noqa: F401
from torch import nn


class ParallelMLP(nn.Module):
    """y = fc2(gelu(fc1(x))), with the hidden features cut over the n ranks of `group`.

    state_dict, and nothing else in it:
        fc1.weight [ffn_hidden_size / n, hidden_size]    the group rank's share of the rows, in rank order
        fc1.bias   [ffn_hidden_size / n]                 likewise
        fc2.weight [hidden_size, ffn_hidden_size / n]    its share of the columns
        fc2.bias   [hidden_size]                         whole on every rank
    Weights arrive by load_state_dict(shard, strict=True); how they are initialised is up to you. Between steps a rank
    keeps these, and less than an eighth of the bytes of the whole weights beside them.

        mlp = ParallelMLP(hidden_size, ffn_hidden_size, group=tp_group).double()
        mlp.load_state_dict(shard)
        y = mlp(x)                   # x and y are whole, and the same on all ranks of the group
        loss_of(y).backward()        # the loss is computed on every rank, and is the same on all of them
    """

    def __init__(self, hidden_size, ffn_hidden_size, *, bias=True, group=None):
        """group: None means WORLD; its size divides ffn_hidden_size. bias=False: neither layer has one."""
        super().__init__()
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [..., hidden_size] -> y of the same shape and dtype. gelu is the exact one (erf); x is unchanged.

        Forward costs one all_reduce of y's size, and backward one of x's size if x requires grad, else none.
        After backward x.grad is whole, and the gradients of the shards are the slices of the whole gradients.
        """
        raise NotImplementedError
