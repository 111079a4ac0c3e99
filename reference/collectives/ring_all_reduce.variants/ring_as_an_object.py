"""A right answer: a class whose instance is the state of one call, and batched point-to-point operations."""

import torch
import torch.distributed as dist


class _Ring:
    def __init__(self, tensor, group):
        self.group, self.n, self.rank = group, dist.get_world_size(group), dist.get_rank(group)
        self.size = -(-tensor.numel() // self.n)
        self.flat = tensor.view(-1)
        self.spare = torch.empty(self.size, dtype=tensor.dtype)

    def __getitem__(self, index):
        start = (index % self.n) * self.size
        return self.flat[start : start + self.size]

    def swap(self, out, into):
        ops = []
        if out.numel():
            ops.append(dist.P2POp(dist.isend, out, group=self.group, group_peer=(self.rank + 1) % self.n))
        if into.numel():
            ops.append(dist.P2POp(dist.irecv, into, group=self.group, group_peer=(self.rank - 1) % self.n))
        for work in dist.batch_isend_irecv(ops) if ops else ():
            work.wait()
        return into

    def run(self):
        for s in range(self.rank, self.rank - self.n + 1, -1):
            self[s - 1].add_(self.swap(self[s], self.spare[: self[s - 1].numel()]))
        for s in range(self.rank + 1, self.rank + 2 - self.n, -1):
            self.swap(self[s], self[s - 1])


def ring_all_reduce(tensor, group=None):
    if dist.get_world_size(group) > 1:
        _Ring(tensor, group).run()
