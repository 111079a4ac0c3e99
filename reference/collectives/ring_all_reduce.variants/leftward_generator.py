"""A right answer: the ring goes to the left, its steps are a generator, and each exchange is a functools.partial."""

from functools import partial

import torch
import torch.distributed as dist


def plan(rank, n):
    """(number of the chunk that leaves, of the one that comes, whether what comes is added) for each step."""
    for step in range(2 * (n - 1)):
        yield (rank + step) % n, (rank + step + 1) % n, step < n - 1


def ring_all_reduce(tensor, group=None):
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    if n == 1 or tensor.numel() == 0:
        return
    to_global = partial(dist.get_global_rank, group or dist.group.WORLD)
    send = partial(dist.isend, dst=to_global((rank - 1) % n), group=group)
    receive = partial(dist.irecv, src=to_global((rank + 1) % n), group=group)
    with torch.no_grad():
        flat = tensor.detach().reshape(-1)
        chunks = torch.tensor_split(flat, [(i * flat.numel()) // n for i in range(1, n)])
        landing = flat.new_empty(max(map(len, chunks)))
        for leaving, coming, is_added in plan(rank, n):
            target = chunks[coming]
            place = landing[: len(target)] if is_added else target
            works = [start(piece) for start, piece in ((receive, place), (send, chunks[leaving])) if len(piece)]
            for work in reversed(works):
                work.wait()
            if is_added:
                target += place
