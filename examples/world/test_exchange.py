"""Testing code of your own with the fixture `world`; needs nothing but an installed shardkit."""

import pytest
import torch
import torch.distributed as dist


def pass_right():
    """Every rank sends its number to the right and receives the left neighbour's."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    received = torch.empty(1)
    sending = dist.isend(torch.tensor([float(rank)]), (rank + 1) % world_size)
    dist.recv(received, (rank - 1) % world_size)
    sending.wait()
    return received


def pass_right_and_hang():
    """The same, but every rank first waits for its left neighbour."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    received = torch.empty(1)
    dist.recv(received, (rank - 1) % world_size)
    dist.send(torch.tensor([float(rank)]), (rank + 1) % world_size)
    return received


@pytest.mark.world_size(2, 3)
def test_every_rank_gets_its_left_neighbour_s_number(world):
    result = world.run(pass_right)
    for rank, received in enumerate(result.ranks):
        assert received.item() == (rank - 1) % world.size
    assert result.trace.sent_bytes(rank=0) == 4


@pytest.mark.world_size(3)
def test_this_one_deadlocks(world):
    world.run(pass_right_and_hang)
