"""Blocking calls only: even ranks send first, odd ranks receive first. Chunks are cut by explicit offsets."""

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
    # dist.send and dist.recv take global ranks unless told otherwise.
    next_global = dist.get_global_rank(group, (me + 1) % n)
    prev_global = dist.get_global_rank(group, (me + n - 1) % n)
    flat = tensor.view(-1)
    bounds = offsets(flat.numel(), n)

    def send(index):
        start, stop = bounds[index % n]
        if stop > start:
            dist.send(flat[start:stop], next_global, group=group)

    def receive(index):
        start, stop = bounds[index % n]
        buffer = torch.empty(stop - start, dtype=flat.dtype, device=flat.device)
        if stop > start:
            dist.recv(buffer, prev_global, group=group)
        return start, stop, buffer

    for step in range(2 * (n - 1)):
        is_reducing = step < n - 1
        # One formula for both halves: rank r sends chunk r - step, and the all-gather is just more steps.
        if me % 2 == 0:
            send(me - step)
            start, stop, buffer = receive(me - 1 - step)
        else:
            # With odd n the last rank and rank 0 are both even: the chain still ends at an odd rank.
            start, stop, buffer = receive(me - 1 - step)
            send(me - step)
        if is_reducing:
            flat[start:stop] += buffer
        else:
            flat[start:stop] = buffer
