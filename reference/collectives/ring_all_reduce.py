"""Ring all-reduce from nothing but send and receive.

Source: P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
J. Parallel Distrib. Comput. 69(2), 2009; A. Gibiansky, "Bringing HPC Techniques to Deep Learning", 2017.

Cut the tensor into n chunks, one per rank, and pass chunks to the right, 2(n-1) times:

    reduce-scatter, n-1 steps: add what arrives. Afterwards rank r holds the whole sum of chunk r+1.
    all-gather,     n-1 steps: overwrite with what arrives. Afterwards every rank holds every sum.

Which chunk each rank sends at each step, for n = 4 (and so which one its right neighbour receives):

                     reduce-scatter    all-gather
              step    0   1   2         0   1   2
            rank 0    0   3   2         1   0   3
            rank 1    1   0   3         2   1   0
            rank 2    2   1   0         3   2   1
            rank 3    3   2   1         0   3   2

Every message is one chunk, so a rank sends 2(n-1)/n of the tensor, whatever n is: no algorithm sends less.
The price is latency: 2(n-1) messages one after the other, where a tree needs 2 log2(n).

Left out: cutting chunks further so that adding overlaps with sending, two rings at once, and the choice of
another algorithm for small tensors. NCCL does all three.
"""

import torch
import torch.distributed as dist


def ring_all_reduce(tensor, group=None):
    """Overwrite `tensor` with the sum of all ranks' tensors, bit for bit the same on every rank.

    tensor: contiguous, any shape, any floating dtype, requires no grad; same shape and dtype on every rank.
    group: None means WORLD. Every rank of the group must call, and calls must be in the same order.
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)  # both inside the group
    if world_size == 1:
        return
    right, left = (rank + 1) % world_size, (rank - 1) % world_size

    def exchange(outgoing, incoming):
        # A blocking send may return only when the receiver has posted its receive. If all ranks sent first,
        # all would wait for ever; so the send is started, the receive done, and then the send is waited for.
        sending = dist.isend(outgoing, group=group, group_dst=right)
        dist.recv(incoming, group=group, group_src=left)
        sending.wait()

    # Views, so that writing a chunk writes the tensor. numel=10, world_size=4 -> 3, 3, 2, 2; numel=2 -> 1, 1, 0, 0.
    chunks = tensor.view(-1).tensor_split(world_size)
    arriving = torch.empty_like(chunks[0])  # the first chunk is the longest; the dtype is the tensor's own

    # Reduce-scatter. At step s rank r sends chunk r-s, which it has just finished adding to (at s = 0: its own part).
    for step in range(world_size - 1):
        outgoing = chunks[(rank - step) % world_size]
        target = chunks[(rank - step - 1) % world_size]
        part = arriving[: target.numel()]
        exchange(outgoing, part)
        target.add_(part)  # each chunk is summed in one order, along the ring: hence the same bits everywhere

    # All-gather. Rank r starts with the chunk that it finished, r+1, and then passes on what came last.
    for step in range(world_size - 1):
        exchange(chunks[(rank + 1 - step) % world_size], chunks[(rank - step) % world_size])
