"""A right answer: parameters travel in one padded all_gather per step, of shards that are dealt heaviest first."""

import heapq

import torch
import torch.distributed as dist


class ShardedOptimizer(torch.optim.Optimizer):
    def __init__(self, params, optimizer_cls, **kwargs):
        self._loads = [(0, rank) for rank in range(dist.get_world_size())]
        self._shards = [[] for _ in self._loads]
        self._make = lambda: optimizer_cls([{"params": []}], **kwargs)
        self._inner = self._make()
        del self._inner.param_groups[:]
        super().__init__(params, dict(self._inner.defaults))
        self.state = self._inner.state

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        *_, group = self.param_groups
        mine = []
        for param in group["params"]:
            load, rank = heapq.heappop(self._loads)
            heapq.heappush(self._loads, (load + param.numel(), rank))
            self._shards[rank].append(param)
            if rank == dist.get_rank():
                mine.append(param)
        self._inner.add_param_group(dict(group, params=mine))

    @torch.no_grad()
    def step(self, closure=None, **kwargs):
        for theirs, ours in zip(self._inner.param_groups, self.param_groups, strict=True):
            for key in ours.keys() - {"params"}:
                theirs[key] = ours[key]
        loss = self._inner.step(**kwargs) if closure is None else self._inner.step(closure, **kwargs)
        self._exchange()
        return loss

    def _exchange(self):
        dtype = next(p.dtype for shard in self._shards for p in shard)
        longest = max(sum(p.numel() for p in shard) for shard in self._shards)
        buffers = [torch.zeros(longest, dtype=dtype) for _ in self._shards]
        me = dist.get_rank()
        outgoing = torch.zeros(longest, dtype=dtype)
        if self._shards[me]:
            packed = torch.cat([p.reshape(-1) for p in self._shards[me]])
            outgoing[: len(packed)] = packed
        dist.all_gather(buffers, outgoing)
        for rank, (shard, buffer) in enumerate(zip(self._shards, buffers, strict=True)):
            if rank == me:
                continue
            for p in shard:
                p.copy_(buffer[: p.numel()].view(p.shape))
                buffer = buffer[p.numel() :]
