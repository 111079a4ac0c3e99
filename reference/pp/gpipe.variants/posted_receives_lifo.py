"""Backwards from the last microbatch to the first, as the paper draws it; receives are posted ahead of need."""

import torch
from torch import distributed as dist


class Neighbour:
    """One side of this stage. Does nothing at the end of the chain."""

    def __init__(self, group, peer):
        size = dist.get_world_size(group)
        self.exists = 0 <= peer < size
        self.group, self.peer = group, peer
        self.sent = []

    def expect(self, shapes, dtype):
        """Post one receive per shape, in the order in which the neighbour will send."""
        buffers = [torch.empty(shape, dtype=dtype) for shape in shapes]
        works = [dist.irecv(buffer, group=self.group, group_src=self.peer) for buffer in buffers]
        return iter(zip(works, buffers, strict=True))

    def send(self, tensor):
        self.sent.append((dist.isend(tensor, group=self.group, group_dst=self.peer), tensor))

    def flush(self):
        for work, _ in self.sent:
            work.wait()


def take(expected):
    work, buffer = next(expected)
    work.wait()
    return buffer


def run_gpipe(stage, microbatches, targets, loss_fn, group=None):
    rank = dist.get_rank(group)
    before, after = Neighbour(group, rank - 1), Neighbour(group, rank + 1)
    indices = list(range(stage.num_microbatches))

    inputs = before.expect(map(stage.input_shape, indices), stage.dtype) if before.exists else None
    outputs = {}
    for i in indices:
        x = take(inputs) if before.exists else microbatches[i]
        outputs[i] = stage.forward(i, x)
        if after.exists:
            after.send(outputs[i])

    total = None
    if after.exists:
        backwards = indices[::-1]
        gradients = after.expect((outputs[i].shape for i in backwards), stage.dtype)
    else:
        count = sum(t.shape[0] for t in targets)
        parts = {i: loss_fn(outputs[i], targets[i]) * targets[i].shape[0] for i in indices}
        total = torch.stack([part.detach() for part in parts.values()]).sum() / count

    for i in reversed(indices):
        gx = stage.backward(i, take(gradients)) if after.exists else stage.loss_backward(i, parts[i] / count)
        if before.exists:
            before.send(gx)
    before.flush()
    after.flush()
    return total
