"""A right answer: generators bring what comes, a send is waited for before the next one, backwards run in reverse."""

from collections import deque

import torch
import torch.distributed as dist


def run_gpipe(stage, microbatches, targets, loss_fn, group=None):
    world = group if group is not None else dist.group.WORLD
    me, p, M = dist.get_rank(world), dist.get_world_size(world), stage.num_microbatches
    peer = {side: dist.get_global_rank(world, me + side) for side in (-1, 1) if 0 <= me + side < p}
    flying = deque()

    def push(tensor, side):
        while flying:
            flying.popleft()[0].wait()
        if side in peer:
            flying.append((dist.isend(tensor.detach(), peer[side], group=world), tensor))

    def arrivals(shapes, side):
        for mb, shape in shapes:
            buffer = torch.empty(shape, dtype=stage.dtype)
            dist.irecv(buffer, peer[side], group=world).wait()
            yield mb, buffer
            del buffer

    shapes, pieces = {}, {}
    inputs = enumerate(microbatches) if me == 0 else arrivals(((mb, stage.input_shape(mb)) for mb in range(M)), -1)
    total = sum(t.shape[0] for t in targets) if me == p - 1 else None
    for mb, x in inputs:
        y = stage.forward(mb, x)
        del x
        shapes[mb] = tuple(y.shape)
        if me == p - 1:
            pieces[mb] = loss_fn(y, targets[mb]) * targets[mb].shape[0] / total
        else:
            push(y, 1)
        del y
    push(None, 0)
    del inputs
    order = list(range(M))[::-1]
    loss = torch.stack([piece.detach() for piece in pieces.values()]).sum() if pieces else None
    source = ((mb, None) for mb in order) if me == p - 1 else arrivals(((mb, shapes[mb]) for mb in order), 1)
    for mb, gy in source:
        gx = stage.loss_backward(mb, pieces.pop(mb)) if me == p - 1 else stage.backward(mb, gy)
        del gy
        push(gx, -1)
        del gx
    push(None, 0)
    return loss
