"""The schedule as clock ticks: at tick t stage s works on microbatch t - s, then neighbours exchange in one batch."""

import torch
import torch.distributed as dist


def exchange(outgoing, to_peer, incoming, from_peer, group):
    """Send one tensor and receive another; either may be absent (None)."""
    world = group or dist.group.WORLD
    operations = []
    if outgoing is not None:
        operations.append(dist.P2POp(dist.isend, outgoing, dist.get_global_rank(world, to_peer), group))
    if incoming is not None:
        operations.append(dist.P2POp(dist.irecv, incoming, dist.get_global_rank(world, from_peer), group))
    if operations:
        for work in dist.batch_isend_irecv(operations):
            work.wait()


def run_gpipe(stage, microbatches, targets, loss_fn, group=None):
    s, p, m = dist.get_rank(group), dist.get_world_size(group), stage.num_microbatches
    ticks = m + p - 1

    # Forward: tick t runs microbatch t - s here and microbatch t - s - 1 on the right.
    x, ys, shapes = (microbatches[0] if s == 0 else None), [], []
    for t in range(-1, ticks):
        mb = t - s
        y = None
        if 0 <= mb < m:
            y = stage.forward(mb, x)
            shapes.append(y.shape)
            if s == p - 1:
                ys.append(y)  # the others' outputs are gone when they are sent
        following, x = mb + 1, None
        if 0 <= following < m:
            x = microbatches[following] if s == 0 else torch.empty(stage.input_shape(following), dtype=stage.dtype)
        exchange(
            y if s < p - 1 else None,
            s + 1,
            x if s > 0 else None,
            s - 1,
            group,
        )

    # The whole batch's loss at once: its gradient with respect to one microbatch's output is that microbatch's share.
    loss = None
    if s == p - 1:
        sizes = torch.tensor([len(target) for target in targets], dtype=stage.dtype)
        means = torch.stack([loss_fn(y, target) for y, target in zip(ys, targets, strict=True)])
        loss = (means * sizes).sum() / sizes.sum()

    # Backward: the same clock, read from the other end of the chain.
    gy = None
    for t in range(-1, ticks):
        mb = t - (p - 1 - s)
        gx = None
        if 0 <= mb < m:
            gx = stage.loss_backward(mb, loss) if s == p - 1 else stage.backward(mb, gy)
        following, gy = mb + 1, None
        if 0 <= following < m and s < p - 1:
            gy = torch.empty(shapes[following], dtype=stage.dtype)
        exchange(gx if s > 0 else None, s - 1, gy, s + 1, group)

    return loss.detach() if s == p - 1 else None
