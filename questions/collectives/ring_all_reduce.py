"""collectives/ring_all_reduce: all-reduce from nothing but send and receive.

Run `shardkit grade collectives/ring_all_reduce THIS_FILE`. You may use torch and the standard library. From
torch.distributed: the point-to-point operations (send, recv, isend, irecv, batch_isend_irecv) and what tells you who
is who (get_rank, get_world_size, get_global_rank), and no collective.
"""

import torch
import torch.distributed as dist


def ring_all_reduce(tensor: torch.Tensor, group: dist.ProcessGroup | None = None) -> None:
    """Overwrite `tensor` with the sum of all ranks' tensors, the same bits on every rank.

    tensor: contiguous, any shape ([] and numel 0 included), any floating dtype, requires no grad; the same shape and
        dtype on every rank. It may be a view into a larger buffer: write into it, do not replace it. Work in its dtype.
    group: None means WORLD. Every rank of the group calls, with its calls in the same order. Peers are counted inside
        the group, while dist.send and dist.recv take global ranks unless you pass group_dst and group_src.

    n ranks, 2(n-1) steps. At each step a rank sends at most one chunk of at most ceil(numel / n) elements to a
    neighbour in the ring 0 -> 1 -> ... -> n-1 -> 0 and receives one from the other. When n divides numel, a rank sends
    exactly 2(n-1)/n of the tensor's bytes. With one rank nothing is sent.

    A send may wait until its receiver has posted the receive: nothing is buffered. On return nothing is in flight.

    At every step all ranks send and receive at the same time, so the whole takes 2(n-1) messages of one chunk. Besides
    the tensor at most two chunks of memory are used at a time, and none is kept after the return. Random numbers, the
    default dtype and the grad mode are left alone.
    """
    raise NotImplementedError
