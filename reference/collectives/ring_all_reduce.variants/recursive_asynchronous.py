"""Recursion over the remaining hops, receive posted before send, both handles waited for."""

import torch
import torch.distributed as dist


def ring_all_reduce(tensor, group=None):
    n = dist.get_world_size(group)
    rank = dist.get_rank(group)
    pieces = list(torch.chunk(tensor.reshape(-1), n)) if tensor.numel() else []
    pieces += [tensor.new_empty(0)] * (n - len(pieces))  # torch.chunk may give fewer than n

    def pass_on(chunk, hops, combine):
        """Send `chunk` on, take the one before it, and go on with that until no hop is left."""
        if hops == 0:
            return
        previous = (chunk - 1) % n
        inbox = torch.empty_like(pieces[previous])
        handles = []
        if inbox.numel():
            handles.append(dist.irecv(inbox, group=group, group_src=(rank - 1) % n))
        if pieces[chunk].numel():
            handles.append(dist.isend(pieces[chunk], group=group, group_dst=(rank + 1) % n))
        for handle in handles:
            handle.wait()
        combine(pieces[previous], inbox)
        del inbox, handles  # else every hop keeps its own until the last one is over
        pass_on(previous, hops - 1, combine)

    pass_on(rank, n - 1, lambda piece, inbox: piece.add_(inbox))
    pass_on((rank + 1) % n, n - 1, lambda piece, inbox: piece.copy_(inbox))
