"""Gradients live in the buckets: .grad is a view, nothing is copied. A bucket closes upon reaching the cap."""

import torch
import torch.distributed as dist


class DDPBucketed(torch.nn.Module):
    def __init__(self, module, bucket_size_mb):
        super().__init__()
        self.module = module
        for tensor in module.parameters():
            dist.broadcast(tensor.data, src=0)
        for tensor in module.buffers():
            dist.broadcast(tensor, src=0)

        cap = None if bucket_size_mb is None else int(bucket_size_mb * 1024 * 1024)
        groups, size = [[]], 0
        for p in reversed([p for p in module.parameters() if p.requires_grad]):
            if groups[-1] and groups[-1][0].dtype != p.dtype:
                groups.append([])
                size = 0
            groups[-1].append(p)
            size += p.numel() * p.element_size()
            if cap is not None and size >= cap:
                groups.append([])
                size = 0
        groups = [g for g in groups if g]

        self.flats, self.views, self.where, self.members = [], {}, {}, groups
        for i, group in enumerate(groups):
            flat = torch.zeros(sum(p.numel() for p in group), dtype=group[0].dtype)
            self.flats.append(flat)
            for p, piece in zip(group, flat.split([p.numel() for p in group]), strict=True):
                self.views[p] = piece.view(p.shape)
                self.where[p] = i
                p.register_post_accumulate_grad_hook(self.gradient_ready)
        self.new_round()

    def new_round(self):
        self.missing = [len(group) for group in self.members]
        self.work = []

    def put_in_bucket(self, p):
        view = self.views[p]
        if p.grad is None:
            view.zero_()
        elif p.grad.data_ptr() != view.data_ptr():
            view.copy_(p.grad)
        p.grad = view

    def gradient_ready(self, p):
        self.put_in_bucket(p)
        self.missing[self.where[p]] -= 1
        while len(self.work) < len(self.flats) and not self.missing[len(self.work)]:
            self.work.append(dist.all_reduce(self.flats[len(self.work)], async_op=True))

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        for flat, group in list(zip(self.flats, self.members, strict=True))[len(self.work) :]:
            for p in group:
                self.put_in_bucket(p)
            self.work.append(dist.all_reduce(flat, async_op=True))
        for flat, work in zip(self.flats, self.work, strict=True):
            work.wait()
            flat /= dist.get_world_size()
        self.new_round()
