"""What gloo lacks or gets wrong and the switchboard does, and calls that have no meaning."""

from __future__ import annotations

import random
import threading

import torch
import torch.distributed as dist

from kit.world import binding


def me():
    return dist.get_rank()


def there():
    return dist.get_world_size()


# Beyond gloo ----------------------------------------------------------------------------------------------------------


def uneven_all_gather():
    """Rank r gives r + 1 rows."""
    outputs = [torch.zeros(r + 1, 2) for r in range(there())]
    dist.all_gather(outputs, torch.full((me() + 1, 2), float(me())))
    return outputs


def all_to_all_of_any_shapes():
    """Rank i sends a tensor of i * 10 + j to rank j, as many rows as i, as many columns as j."""
    inputs = [torch.full((me(), j + 1), me() * 10.0 + j) for j in range(there())]
    outputs = [torch.zeros(i, me() + 1) for i in range(there())]
    dist.all_to_all(outputs, inputs)
    return outputs


def stacked_buffers():
    """[world_size, n] buffers, which NCCL takes and gloo refuses."""
    gathered = torch.zeros(there(), 3)
    dist.all_gather_into_tensor(gathered, torch.arange(3.0) + 10 * me())
    scattered = torch.zeros(3)
    dist.reduce_scatter_tensor(scattered, gathered.clone())
    return [gathered, scattered]


FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
UNKNOWN_TO_GLOO = (*FP8, torch.int16, torch.uint16, torch.uint32, torch.uint64)


def pattern(dtype, rank, numel=64):
    generator = torch.Generator().manual_seed(rank)
    return torch.randint(0, 256, (numel * dtype.itemsize,), dtype=torch.uint8, generator=generator).view(dtype)


def moves_what_gloo_does_not():
    """Every movement of every dtype that gloo does not know, as raw bytes."""
    seen = {}
    for dtype in UNKNOWN_TO_GLOO:
        mine, rank, size = pattern(dtype, me()), me(), there()
        shared = pattern(dtype, me())
        dist.broadcast(shared, size - 1)
        parts = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(parts, mine)
        exchanged = torch.empty_like(mine)
        dist.all_to_all_single(exchanged, mine)
        passed = torch.empty_like(mine)
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, mine, (rank + 1) % size),
            dist.P2POp(dist.irecv, passed, (rank - 1) % size),
        ])  # fmt: skip
        for work in works:
            work.wait()
        seen[str(dtype)] = [shared, parts, exchanged, passed]
    return seen


def polls_a_receive():
    x = torch.zeros(3)
    works = [
        dist.isend(torch.full((3,), float(me())), (me() + 1) % there()),
        dist.irecv(x, (me() - 1) % there()),
    ]
    while not all([work.is_completed() for work in works]):  # noqa: C419 - every one of them has to be asked
        pass
    return x


def future_of_a_reduce_scatter():
    y = torch.zeros(2)
    work = dist.reduce_scatter(y, [torch.full((2,), float(r)) for r in range(there())], async_op=True)
    return work.get_future().then(lambda future: future.value()[0] + 1).wait()


# Rounding -------------------------------------------------------------------------------------------------------------


def addends(dtype, rank, numel):
    generator = torch.Generator().manual_seed(17 + rank)
    return torch.randn(numel, generator=generator, dtype=torch.float64).mul(10).to(dtype)


def reductions(inputs):
    """Sums, means and products by each kind of reduction."""
    dtype, seen = inputs["dtype"], {}
    for name in ("SUM", "AVG", "PRODUCT"):
        op, numel = getattr(dist.ReduceOp, name), inputs["numel"]
        x = addends(dtype, me(), numel)
        reduced, scattered, listed = x.clone(), torch.empty(numel // there(), dtype=dtype), None
        dist.all_reduce(reduced, op)
        dist.reduce_scatter_tensor(scattered, x, op)
        listed = torch.empty_like(scattered)
        dist.reduce_scatter(listed, list(x.chunk(there())), op)
        rooted = x.clone()
        dist.reduce(rooted, there() - 1, op)
        seen[name] = [reduced, scattered, listed, rooted if me() == there() - 1 else None]
    return seen


def sums_its_input(inputs):
    x = inputs[me()].clone()
    dist.all_reduce(x)
    return x


def extremes_of_nan():
    """A NaN on one rank; MIN and MAX must not lose it, whichever rank has it."""
    seen = []
    for owner in range(there()):
        for op in (dist.ReduceOp.MIN, dist.ReduceOp.MAX, dist.ReduceOp.SUM):
            x = torch.tensor([1.0, float("nan") if me() == owner else 2.0, float("inf")])
            dist.all_reduce(x, op)
            seen.append(x)
    return seen


# Undefined for every rank alike: the wait raises ----------------------------------------------------------------------


def undefined_reductions():
    """The wait of an undefined reduction raises, every time, and leaves the group in order."""
    x = torch.ones(3, dtype=torch.int64)
    work = dist.all_reduce(x, dist.ReduceOp.AVG, async_op=True)
    said = []
    for _ in range(2):
        try:
            work.wait()
        except RuntimeError as error:
            said.append(str(error))
    future = dist.all_reduce(torch.ones(2), dist.ReduceOp.BOR, async_op=True).get_future()
    try:
        future.wait()
    except RuntimeError as error:
        said.append(str(error))
    polled = dist.all_reduce(pattern(torch.float8_e4m3fn, 0), async_op=True)
    while not polled.is_completed():
        pass
    said.append(str(polled.exception()))
    y = torch.ones(3)
    dist.all_reduce(y)
    return [said, polled.is_success(), y]


# Determinism ----------------------------------------------------------------------------------------------------------


def leans_on_timing():
    """Any-source receives, polls, counters of the store and some idle work of random length."""
    idle = random.SystemRandom()
    rank, size, seen = me(), there(), []
    store = dist.distributed_c10d._get_default_store()
    for turn in range(3):
        for _ in range(idle.randrange(20_000)):
            pass
        seen.append(store.add("counter", 1))
        if rank == 0:
            for _ in range(size - 1):
                x = torch.zeros(2)
                seen.append(dist.recv(x, tag=turn))
                seen.append(x)
        else:
            dist.send(torch.tensor([float(rank), turn]), 0, tag=turn)
        x, polls = torch.full((4,), float(rank)), 0
        work = dist.all_reduce(x, async_op=True)
        while not work.is_completed():
            polls += 1
        seen += [polls, x]
    return seen


# The record ----------------------------------------------------------------------------------------------------------


def every_form_once():
    """Each operation in each of its forms, with 24 float32 as the full buffer (4 ranks)."""
    import torch.distributed._functional_collectives as funcol

    x, part, parts = torch.zeros(24), torch.zeros(6), [torch.zeros(6) for _ in range(4)]
    world, root = dist.group.WORLD, me() == 2
    dist.all_reduce(x)
    funcol.all_reduce(x, "sum", world).sum()
    dist.all_reduce_coalesced([x[:8], x[8:]])
    dist.reduce(x, 2)
    dist.broadcast(x, 2)
    dist.all_gather(parts, part)
    dist.all_gather_into_tensor(x, part)
    funcol.all_gather_tensor(part, 0, world).sum()
    dist.reduce_scatter(part, parts)
    dist.reduce_scatter_tensor(part, x)
    funcol.reduce_scatter_tensor(x, "sum", 0, world).sum()
    dist.all_to_all(parts, [torch.zeros(6) for _ in range(4)])
    dist.all_to_all_single(torch.zeros(24), x)
    dist.gather(part, parts if root else None, dst=2)
    dist.scatter(part, parts if root else None, src=2)
    dist.barrier()
    dist.monitored_barrier()
    if me() == 1:
        dist.send(x, 2)
    if me() == 2:
        dist.recv(x, 1)


# Large tensors --------------------------------------------------------------------------------------------------------


def segments_of_this_rank():
    """Bytes of shared memory that this rank fills, and how many segments it reads."""
    segments = binding._connection.segments
    return [sum(len(mapping) for mapping in segments._mine.values()), len(segments._mine), len(segments._results)]


def large_in_a_row():
    """Many large operations, one at a time: they share their segments."""
    x = torch.zeros(100_000)
    counts = []
    for turn in range(12):
        x.fill_(turn + me())
        dist.all_reduce(x)
        assert bool((x == there() * turn + there() * (there() - 1) / 2).all())
        counts.append(segments_of_this_rank())
    return counts


def large_in_flight():
    """Several large operations at once, of several sizes, waited for in another order; then a second round."""
    counts, seen = [], []
    for turn in range(2):
        xs = [torch.arange(30_000.0 * (i + 1)).add_(me() + i + turn) for i in range(5)]
        works = [dist.all_reduce(x, async_op=True) for x in xs]
        for i in (3, 0, 4, 1, 2):
            works[i].wait()
        n = there()
        for i, x in enumerate(xs):
            expected = n * (torch.arange(30_000.0 * (i + 1)) + i + turn) + n * (n - 1) / 2
            seen.append(bool(torch.equal(x, expected)))
        counts.append(segments_of_this_rank())
    return [seen, counts]


def results_outlive_their_segments():
    """What was received stays as it was while later results use the same shared memory."""
    first = torch.full((50_000,), float(me()))
    parts = [torch.zeros(50_000) for _ in range(there())]
    dist.all_gather(parts, first)
    kept = [part.clone() for part in parts]
    for turn in range(5):
        others = [torch.zeros(50_000) for _ in range(there())]
        dist.all_gather(others, torch.full((50_000,), 100.0 + turn))
    return [all(torch.equal(a, b) for a, b in zip(parts, kept, strict=True)), [part[0].item() for part in parts]]


def large_result():
    return torch.arange(300_000) + me()


def in_threads(target, count):
    threads = [threading.Thread(target=target, args=(which,)) for which in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def threads_with_futures():
    """Each thread waits for its own futures, and so takes what the other one waits for."""
    groups = [dist.new_group() for _ in range(2)]
    wrong = []

    def work(which):
        for turn in range(100):
            x = torch.full((10,), float(me() + turn + 100 * which))
            future = dist.all_reduce(x, group=groups[which], async_op=True).get_future()
            expected = there() * (turn + 100 * which) + there() * (there() - 1) / 2
            if future.wait()[0].tolist() != [expected] * 10:
                wrong.append([which, turn, x.tolist(), expected])

    in_threads(work, 2)
    return wrong


def threads_that_wait_for_one_work():
    """Whoever is told that the operation is done finds its result written."""
    wrong = []
    for turn in range(50):
        x = torch.full((10,), float(turn))
        work = dist.all_reduce(x, async_op=True)

        def look(which, x=x, work=work, turn=turn):
            while which == 2 and not work.is_completed():
                pass
            work.wait()
            if x.tolist() != [float(there() * turn)] * 10:
                wrong.append([which, turn, x.tolist()])

        in_threads(look, 3)
    return wrong


def threads_with_large_tensors():
    """Two threads of a rank, each with large all_reduces in a group of its own."""
    ranks = list(range(there()))
    groups = [dist.new_group(ranks) for _ in range(2)]
    wrong = []

    def work(which):
        for turn in range(30):
            x = torch.full((40_000,), float(me() + 10 * which + turn))
            dist.all_reduce(x, group=groups[which])
            expected = there() * (10 * which + turn) + there() * (there() - 1) / 2
            if not bool((x == expected).all()):
                wrong.append([which, turn, x.unique().tolist(), expected])

    in_threads(work, 2)
    return wrong
