"""No inner optimizer lives: each step builds one around the state that persists. One all_gather a step.

What an optimizer remembers is its state and its groups. Building it from the outer groups at every step means
that changed hyperparameters and late groups need no code at all.
"""

import torch
import torch.distributed as dist


class ShardedOptimizer(torch.optim.Optimizer):
    def __init__(self, params, optimizer_cls, **kwargs):
        self.build = lambda groups: optimizer_cls(groups, **kwargs)
        super().__init__(params, self.build([{"params": []}]).defaults)

    def shards(self):
        """shards()[r]: indices into all_params() of what rank r owns. A pure function of the sizes so far."""
        shards, sizes = [[] for _ in range(dist.get_world_size())], [0] * dist.get_world_size()
        for index, param in enumerate(self.all_params()):
            smallest = sizes.index(min(sizes))
            shards[smallest].append(index)
            sizes[smallest] += param.numel()
        return shards

    def all_params(self):
        return [param for group in self.param_groups for param in group["params"]]

    def step(self, closure=None, **kwargs):
        params, shards = self.all_params(), self.shards()
        mine = {id(params[index]) for index in shards[dist.get_rank()]}
        groups = [{**g, "params": [p for p in g["params"] if id(p) in mine]} for g in self.param_groups]
        inner = self.build(groups)
        inner.state = self.state
        loss = inner.step(closure, **kwargs)
        self.gather(params, shards)
        return loss

    @torch.no_grad()
    def gather(self, params, shards):
        """Every rank puts what it owns into one flat buffer, padded to the longest, and gets all buffers."""
        longest = max(sum(params[index].numel() for index in shard) for shard in shards)
        outgoing = params[0].new_zeros(longest)
        start = 0
        for index in shards[dist.get_rank()]:
            outgoing[start : start + params[index].numel()] = params[index].flatten()
            start += params[index].numel()
        incoming = outgoing.new_empty(longest * len(shards))
        dist.all_gather_into_tensor(incoming, outgoing)
        for shard, flat in zip(shards, incoming.chunk(len(shards)), strict=True):
            start = 0
            for index in shard:
                params[index].copy_(flat[start : start + params[index].numel()].view_as(params[index]))
                start += params[index].numel()
