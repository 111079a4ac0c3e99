"""Chunks are cut by explicit offsets; each blocking send comes after a posted receive, so nobody waits for nothing."""

import torch
import torch.distributed as dist


def offsets(numel, parts):
    """Ceil-sized chunks, the last ones short or empty. numel=10, parts=4 -> [(0, 3), (3, 6), (6, 9), (9, 10)]."""
    length = -(-numel // parts)
    return [(min(i * length, numel), min((i + 1) * length, numel)) for i in range(parts)]


def ring_all_reduce(tensor, group=None):
    group = group if group is not None else dist.group.WORLD
    n = dist.get_world_size(group)
    me = dist.get_rank(group)
    # dist.send and dist.irecv take global ranks unless told otherwise.
    next_global = dist.get_global_rank(group, (me + 1) % n)
    prev_global = dist.get_global_rank(group, (me + n - 1) % n)
    flat = tensor.view(-1)
    bounds = offsets(flat.numel(), n)

    for step in range(2 * (n - 1)):
        is_reducing = step < n - 1
        # One formula for both halves: rank r sends chunk r - step, and the all-gather is just more steps.
        start, stop = bounds[(me - step) % n]
        into_start, into_stop = bounds[(me - 1 - step) % n]
        target = flat[into_start:into_stop]
        buffer = torch.empty_like(target)
        receiving = None
        if into_stop > into_start:
            receiving = dist.irecv(buffer, prev_global, group=group)
        if stop > start:
            dist.send(flat[start:stop], next_global, group=group)
        if receiving is not None:
            receiving.wait()
        if is_reducing:
            target += buffer
        else:
            target[:] = buffer
