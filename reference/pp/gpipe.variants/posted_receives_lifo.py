"""Backwards from the last microbatch to the first, as the paper draws it; each receive is posted one ahead of need."""

from collections import deque

import torch
from torch import distributed as dist


class Neighbour:
    """One side of this stage. Sends nothing at the end of the chain."""

    def __init__(self, group, peer):
        self.exists = 0 <= peer < dist.get_world_size(group)
        self.group, self.peer = group, peer
        self.leaving = None  # the handle and the tensor of the last send

    def arriving(self, shapes, dtype):
        """Yields a tensor per shape, in the order in which the neighbour sends; keeps none that it has yielded."""
        posted = deque()
        for shape in shapes:
            buffer = torch.empty(shape, dtype=dtype)
            posted.append((dist.irecv(buffer, group=self.group, group_src=self.peer), buffer))
            del buffer
            if len(posted) == 2:
                yield self.first(posted)
        while posted:
            yield self.first(posted)

    @staticmethod
    def first(posted):
        work, buffer = posted.popleft()
        work.wait()
        return buffer

    def send(self, tensor):
        """One send at a time is under way."""
        if self.exists:
            self.flush()
            self.leaving = (dist.isend(tensor, group=self.group, group_dst=self.peer), tensor)

    def flush(self):
        if self.leaving is not None:
            self.leaving[0].wait()
        self.leaving = None


def run_gpipe(stage, microbatches, targets, loss_fn, group=None):
    rank = dist.get_rank(group)
    before, after = Neighbour(group, rank - 1), Neighbour(group, rank + 1)
    indices = list(range(stage.num_microbatches))

    inputs = before.arriving(map(stage.input_shape, indices), stage.dtype) if before.exists else iter(microbatches)
    shapes, parts = [], []
    for i in indices:
        y = stage.forward(i, next(inputs))
        if after.exists:
            shapes.append(y.shape)
            after.send(y)
        else:
            parts.append(loss_fn(y, targets[i]) * targets[i].shape[0])
        del y
    after.flush()

    total = None
    if after.exists:
        gradients = after.arriving(reversed(shapes), stage.dtype)
    else:
        count = sum(t.shape[0] for t in targets)
        total = torch.stack([part.detach() for part in parts]).sum() / count

    for i in reversed(indices):
        before.send(stage.backward(i, next(gradients)) if after.exists else stage.loss_backward(i, parts.pop() / count))
    before.flush()
    return total
