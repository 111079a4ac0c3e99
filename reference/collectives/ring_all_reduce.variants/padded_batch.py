"""Messages of one length, padded where a chunk is short; one batch_isend_irecv per step, and a ring that turns left."""

from torch.distributed import P2POp, batch_isend_irecv, get_rank, get_world_size, irecv, isend


class LeftTurningRing:
    def __init__(self, group):
        self.group = group
        self.world_size = get_world_size(group)
        self.rank = get_rank(group)

    def peer(self, offset):
        return (self.rank + offset) % self.world_size

    def shift(self, outgoing, incoming):
        operations = [
            P2POp(irecv, incoming, group=self.group, group_peer=self.peer(1)),
            P2POp(isend, outgoing, group=self.group, group_peer=self.peer(-1)),
        ]
        for work in batch_isend_irecv(operations):
            work.wait()


def ring_all_reduce(tensor, group=None):
    ring = LeftTurningRing(group)
    n = ring.world_size
    if n == 1 or tensor.numel() == 0:
        return
    flat = tensor.view(-1)
    length = (flat.numel() + n - 1) // n
    outbox, inbox = tensor.new_zeros(length), tensor.new_empty(length)

    def piece(offset):
        start = ring.peer(offset) * length
        return flat[start : start + length]

    # Rank r first sends piece r, then what it got last; after n - 1 steps it owns piece r - 1, which all have added to.
    for step in range(2 * (n - 1)):
        outgoing, target = piece(step), piece(step + 1)
        outbox[: outgoing.numel()] = outgoing
        ring.shift(outbox, inbox)
        arrived = inbox[: target.numel()]
        if step < n - 1:
            target += arrived
        else:
            target.copy_(arrived)
