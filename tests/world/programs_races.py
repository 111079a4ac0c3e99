"""Programs that touch buffers of operations in flight, and right ones that look as if they did."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn


def rank_and_size():
    return dist.get_rank(), dist.get_world_size()


# Wrong ---------------------------------------------------------------------------------------------------------------


def writes_an_input_in_flight():
    x = torch.ones(4)
    out = torch.empty(4 * dist.get_world_size())
    work = dist.all_gather_into_tensor(out, x, async_op=True)
    x.add_(1)
    work.wait()


def writes_an_output_in_flight():
    x = torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    x.add_(1)
    work.wait()


def divides_before_the_wait():
    x = torch.ones(4, dtype=torch.bfloat16)
    work = dist.all_reduce(x, async_op=True)
    x.div_(dist.get_world_size())
    work.wait()


def writes_integers_in_flight():
    x = torch.ones(4, dtype=torch.int64)
    work = dist.all_reduce(x, async_op=True)
    x.zero_()
    work.wait()


def overwrites_an_isend():
    rank, size = rank_and_size()
    x, y = torch.ones(4), torch.zeros(4)
    send = dist.isend(x, (rank + 1) % size)
    receive = dist.irecv(y, (rank - 1) % size)
    x.fill_(5)
    receive.wait()
    send.wait()


def overwrites_an_isend_that_is_never_waited_for():
    rank, size = rank_and_size()
    x, y = torch.ones(4), torch.zeros(4)
    dist.isend(x, (rank + 1) % size)
    dist.irecv(y, (rank - 1) % size).wait()
    x.fill_(5)


def two_operations_write_one_buffer():
    x = torch.ones(4)
    works = [dist.all_reduce(x, async_op=True) for _ in range(2)]
    for work in works:
        work.wait()


def receives_into_what_is_being_sent():
    rank, size = rank_and_size()
    x = torch.ones(8)
    send = dist.isend(x[:6], (rank + 1) % size)
    receive = dist.irecv(x[2:], (rank - 1) % size)
    send.wait()
    receive.wait()


def frees_an_output_in_flight():
    out = torch.empty(4 * dist.get_world_size())
    work = dist.all_gather_into_tensor(out, torch.ones(4), async_op=True)
    out.untyped_storage().resize_(0)
    out.untyped_storage().resize_(16 * dist.get_world_size())
    work.wait()


def steps_before_the_wait():
    layer = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    works = []
    for p in layer.parameters():
        p.register_post_accumulate_grad_hook(lambda p: works.append(dist.all_reduce(p.grad, async_op=True)))
    layer(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    for work in works:
        work.wait()
    return layer.weight.detach()


def accumulates_into_a_gradient_in_flight():
    layer, works = nn.Linear(4, 4), []
    for p in layer.parameters():
        p.register_post_accumulate_grad_hook(lambda p: works.append(dist.all_reduce(p.grad, async_op=True)))
    for _ in range(2):
        layer(torch.ones(2, 4)).sum().backward()
    for work in works:
        work.wait()


def waits_only_for_the_last():
    xs = [torch.ones(3) for _ in range(3)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    works[-1].wait()
    return xs


# Right ---------------------------------------------------------------------------------------------------------------


def reads_an_input_in_flight():
    x = torch.ones(4)
    out = torch.empty(4 * dist.get_world_size())
    work = dist.all_gather_into_tensor(out, x, async_op=True)
    seen = x.sum().item()
    work.wait()
    return seen, out


def root_reads_its_broadcast():
    rank, _ = rank_and_size()
    x = torch.ones(4) * (rank + 1)
    work = dist.broadcast(x, 0, async_op=True)
    seen = x.sum().item() if rank == 0 else 0.0
    work.wait()
    return seen, x


def sends_one_buffer_to_all():
    rank, size = rank_and_size()
    x, got = torch.ones(4) * rank, [torch.zeros(4) for _ in range(size)]
    works = [dist.isend(x, peer) for peer in range(size) if peer != rank]
    works += [dist.irecv(got[peer], peer) for peer in range(size) if peer != rank]
    for work in works:
        work.wait()
    return got


def gathers_in_place():
    rank, size = rank_and_size()
    full = torch.zeros(4 * size)
    full[4 * rank : 4 * rank + 4] = rank + 1
    dist.all_gather_into_tensor(full, full[4 * rank : 4 * rank + 4], async_op=True).wait()
    return full


def reduce_scatters_in_place():
    rank, size = rank_and_size()
    full = torch.ones(4 * size)
    mine = full[4 * rank : 4 * rank + 4]
    dist.reduce_scatter_tensor(mine, full, async_op=True).wait()
    return mine


def writes_the_other_half():
    rank, size = rank_and_size()
    x, y = torch.arange(8.0), torch.zeros(4)
    send, receive = dist.isend(x[:4], (rank + 1) % size), dist.irecv(y, (rank - 1) % size)
    x[4:].add_(1)
    receive.wait()
    send.wait()
    return y


def hooks_that_wait_before_the_next_step():
    layer, works = nn.Linear(4, 4), []
    for p in layer.parameters():
        p.register_post_accumulate_grad_hook(lambda p: works.append((p, dist.all_reduce(p.grad, async_op=True))))
    for _ in range(3):
        layer.zero_grad()
        layer(torch.randn(2, 4)).sum().backward()
        for p, work in works:
            work.wait()
            p.grad.div_(dist.get_world_size())
        works.clear()
    return layer.weight.grad


def saved_by_autograd_and_reduced():
    x = torch.ones(4, requires_grad=True)
    h = torch.relu(x * 1.0)
    dist.all_reduce(h.detach(), async_op=True).wait()
    h.sum().backward()
    return x.grad


def reads_before_the_wait(dtype):
    x = torch.ones(4, dtype=dtype)
    first = dist.all_reduce(torch.ones(2, dtype=dtype), async_op=True)
    first.wait()
    work = dist.all_reduce(x, async_op=True)
    early = (x @ torch.eye(4, dtype=dtype)).sum().reshape(1)
    work.wait()
    return early


def any_source_order():
    rank, size = rank_and_size()
    if rank:
        dist.send(torch.ones(1) * rank, 0)
        return None
    got = torch.zeros(1)
    return [dist.recv(got) for _ in range(size - 1)]
