"""A padded copy as a matrix of n rows, one batch_isend_irecv per step, and a ring that turns to the left."""

from torch.distributed import P2POp, batch_isend_irecv, get_rank, get_world_size, irecv, isend


class LeftTurningRing:
    def __init__(self, group):
        self.group = group
        self.world_size = get_world_size(group)
        self.rank = get_rank(group)

    def row(self, offset):
        return (self.rank + offset) % self.world_size

    def shift(self, outgoing, incoming):
        operations = [
            P2POp(irecv, incoming, group=self.group, group_peer=self.row(1)),
            P2POp(isend, outgoing, group=self.group, group_peer=self.row(-1)),
        ]
        for work in batch_isend_irecv(operations):
            work.wait()


def ring_all_reduce(tensor, group=None):
    ring = LeftTurningRing(group)
    n = ring.world_size
    if n == 1 or tensor.numel() == 0:
        return
    columns = (tensor.numel() + n - 1) // n
    rows = tensor.new_zeros(n, columns)
    rows.view(-1)[: tensor.numel()] = tensor.flatten()

    for step in range(n - 1):
        incoming = rows.new_empty(columns)
        ring.shift(rows[ring.row(step)], incoming)
        rows[ring.row(step + 1)] += incoming
    # Rank r now owns row r - 1, having added up r, r + 1, ..., r + n - 1.
    for step in range(n - 1):
        ring.shift(rows[ring.row(step - 1)], rows[ring.row(step)])

    tensor.copy_(rows.view(-1)[: tensor.numel()].view_as(tensor))
