"""A right answer: owners send point to point, in batches, what had a gradient; the inner optimizer is a subclass."""

import torch
import torch.distributed as dist


class ShardedOptimizer(torch.optim.Optimizer):
    def __init__(self, params, optimizer_cls, **kwargs):
        class Owned(optimizer_cls):
            """The same optimizer, under a name of its own."""

        self.inner, self.owner, self.sums = Owned([{"params": []}], **kwargs), {}, [0] * dist.get_world_size()
        self.inner.param_groups = []
        super().__init__(params, self.inner.defaults)

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in group["params"]:
            self.owner[p] = min(range(len(self.sums)), key=self.sums.__getitem__)
            self.sums[self.owner[p]] += p.numel()
        owned = [p for p in group["params"] if self.owner[p] == dist.get_rank()]
        self.inner.add_param_group({**{k: v for k, v in group.items() if k != "params"}, "params": owned})

    def step(self, closure=None, **kwargs):
        for mine, given in zip(self.inner.param_groups, self.param_groups, strict=True):
            mine.update((k, given[k]) for k in given if k != "params")
        loss = self.inner.step(closure, **kwargs) if closure else self.inner.step(**kwargs)
        self.state = self.inner.state
        ops, copies, me = [], [], dist.get_rank()
        for p, owner in self.owner.items():
            if p.grad is None:
                continue
            flat = p.detach().contiguous().view(-1)
            if owner == me:
                ops += [dist.P2POp(dist.isend, flat, peer) for peer in range(len(self.sums)) if peer != me]
            else:
                ops.append(dist.P2POp(dist.irecv, flat, owner))
                copies.append((p, flat))
        for work in dist.batch_isend_irecv(ops) if ops else ():
            work.wait()
        with torch.no_grad():
            for p, flat in copies:
                p.copy_(flat.view(p.shape))
        return loss
