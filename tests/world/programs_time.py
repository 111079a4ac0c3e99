"""Programs whose virtual time has a closed form."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed import pipelining
from torch.nn.functional import linear
from torch.nn.parallel import DistributedDataParallel

from kit.world import inside

# -- pipelines, by hand --------------------------------------------------------------------------------------


class Messages:
    """A stage's messages to its neighbours; sends are waited for at the end, or each at once."""

    def __init__(self, sends: str) -> None:
        self.rank, self.size, self.sends, self.late = dist.get_rank(), dist.get_world_size(), sends, []

    def send(self, to: int) -> None:
        if not 0 <= to < self.size:
            return
        if self.sends == "blocking":
            dist.send(torch.zeros(2), to)
        else:
            self.late.append(dist.isend(torch.zeros(2), to))

    def receive(self, source: int) -> None:
        if 0 <= source < self.size:
            dist.recv(torch.empty(2), source)

    def forward(self, microbatch: int) -> None:
        self.receive(self.rank - 1)
        inside.compute(1, "F", microbatch=microbatch)
        self.send(self.rank + 1)

    def backward(self, microbatch: int) -> None:
        self.receive(self.rank + 1)
        inside.compute(2, "B", microbatch=microbatch)
        self.send(self.rank - 1)

    def end(self) -> None:
        for work in self.late:
            work.wait()


def gpipe(inputs):
    stage, m = Messages(inputs["sends"]), inputs["m"]
    for index in range(m):
        stage.forward(index)
    for index in range(m):
        stage.backward(index)
    stage.end()


def one_forward_one_backward(inputs):
    stage, m = Messages(inputs["sends"]), inputs["m"]
    warmup = min(stage.size - 1 - stage.rank, m)
    for index in range(warmup):
        stage.forward(index)
    for index in range(m - warmup):
        stage.forward(warmup + index)
        stage.backward(index)
    for index in range(m - warmup, m):
        stage.backward(index)
    stage.end()


# -- pipelines of torch ---------------------------------------------------------------------------------------


class WholeCost(torch.autograd.Function):
    """A forward that costs F, a backward that costs B, whatever gradients are asked for."""

    @staticmethod
    def forward(ctx, x, weight, layer, microbatch):
        ctx.save_for_backward(x, weight)
        ctx.cost = layer.backward_s, layer.name, microbatch
        inside.compute(layer.forward_s, "F", label=layer.name, microbatch=microbatch)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        seconds, name, microbatch = ctx.cost
        inside.compute(seconds, "B", label=name, microbatch=microbatch)
        return grad @ weight, grad.t() @ x, None, None


class InputCost(torch.autograd.Function):
    """F on the way forward, I on the way back to the input."""

    @staticmethod
    def forward(ctx, x, layer, microbatch):
        ctx.cost = layer.input_s, layer.name, microbatch
        inside.compute(layer.forward_s, "F", label=layer.name, microbatch=microbatch)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        seconds, name, microbatch = ctx.cost
        inside.compute(seconds, "I", label=name, microbatch=microbatch)
        return grad.clone(), None, None


class WeightCost(torch.autograd.Function):
    """W on the way back to the weight."""

    @staticmethod
    def forward(ctx, weight, layer, microbatch):
        ctx.cost = layer.weight_s, layer.name, microbatch
        return weight.clone()

    @staticmethod
    def backward(ctx, grad):
        seconds, name, microbatch = ctx.cost
        inside.compute(seconds, "W", label=name, microbatch=microbatch)
        return grad.clone(), None, None


class Layer(nn.Module):
    def __init__(self, name, m, costs, *, split):
        super().__init__()
        self.name, self.m, self.split, self.calls = name, m, split, 0
        self.weight = nn.Parameter(torch.randn(4, 4) / 4)
        if split:
            self.forward_s, self.input_s, self.weight_s = costs
        else:
            self.forward_s, self.backward_s = costs

    def forward(self, x):
        microbatch, self.calls = self.calls % self.m, self.calls + 1
        if self.split:
            x = InputCost.apply(x, self, microbatch)
            return linear(x, WeightCost.apply(self.weight, self, microbatch))
        return WholeCost.apply(x, self.weight, self, microbatch)


def torch_schedule(inputs):
    """Two steps of a schedule of torch.distributed.pipelining; the first one also infers shapes."""
    rank, p = dist.get_rank(), dist.get_world_size()
    name, m, v = inputs["schedule"], inputs["m"], inputs["v"]
    mine = [rank, 2 * p - 1 - rank] if name in ("ZBVZeroBubble", "DualPipeV") else [rank + p * i for i in range(v)]
    stages = []
    for index in mine:
        layer = Layer(str(index), m, inputs["costs"], split=inputs["split"])
        stages.append(pipelining.PipelineStage(layer, index, v * p, torch.device("cpu")))
    make = getattr(pipelining, f"Schedule{name}")
    schedule = make(stages if v > 1 or name == "InterleavedZeroBubble" else stages[0], n_microbatches=m,
                    loss_fn=lambda out, target: (out - target).pow(2).mean())  # fmt: skip
    # The first stage, too, is asked for its input's gradient, so that all stages cost the same.
    x, target = torch.randn(2 * m, 4, requires_grad=True), torch.randn(2 * m, 4)
    for step in (1, 2):
        dist.barrier()
        inside.mark(f"step {step}")
        schedule.step(*([x] if 0 in mine else []), **({"target": target} if v * p - 1 in mine else {}))
        inside.mark(f"step {step} done")


# -- collectives ----------------------------------------------------------------------------------------------


def collective(inputs):
    name, numel = inputs["name"], inputs["numel"]
    n = dist.get_world_size()
    whole, part = torch.zeros(numel * n), torch.zeros(numel)
    if name == "all_reduce":
        dist.all_reduce(whole)
    elif name == "all_gather":
        dist.all_gather_into_tensor(whole, part)
    elif name == "reduce_scatter":
        dist.reduce_scatter_tensor(part, whole)
    elif name == "all_to_all":
        dist.all_to_all_single(torch.empty_like(whole), whole)
    elif name == "broadcast":
        dist.broadcast(whole, 0)
    elif name == "reduce":
        dist.reduce(whole, 0)
    elif name == "gather":
        dist.gather(part, list(whole.chunk(n)) if dist.get_rank() == 0 else None, 0)
    elif name == "scatter":
        dist.scatter(part, list(whole.chunk(n)) if dist.get_rank() == 0 else None, 0)
    else:
        dist.barrier()


def ring_all_reduce(numel):
    """Reduce-scatter, then all-gather, with sends alone."""
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [torch.full((numel,), float(rank)) for _ in range(n)]
    for step in range(2 * (n - 1)):
        out, into = (rank - step) % n, (rank - step - 1) % n
        received = torch.empty(numel)
        work = dist.isend(chunks[out], (rank + 1) % n)
        dist.recv(received, (rank - 1) % n)
        work.wait()
        chunks[into] = chunks[into] + received if step < n - 1 else received
    return torch.cat(chunks)


def built_in_all_reduce(numel):
    n = dist.get_world_size()
    x = torch.full((numel * n,), float(dist.get_rank()))
    dist.all_reduce(x)
    return x


def tree_broadcast(numel):
    """Rounds of 1, 2, 4, ... senders."""
    rank, n, x, reached = dist.get_rank(), dist.get_world_size(), torch.zeros(numel), 1
    while reached < n:
        if rank < reached and rank + reached < n:
            dist.send(x, rank + reached)
        elif reached <= rank < 2 * reached:
            dist.recv(x, rank - reached)
        reached *= 2


def one_after_the_other(numel):
    """Two messages out of one port, in two groups, to two ranks."""
    rank = dist.get_rank()
    first, second = dist.new_group([0, 1]), dist.new_group([0, 2])
    if rank == 0:
        works = [dist.isend(torch.zeros(numel), 1, first), dist.isend(torch.zeros(numel), 2, second)]
        for work in works:
            work.wait()
    else:
        dist.recv(torch.empty(numel), 0, first if rank == 1 else second)


def two_groups_of_the_same_ranks(numel):
    groups = [dist.new_group([0, 1]) for _ in range(2)]
    works = [dist.all_reduce(torch.zeros(numel), group=group, async_op=True) for group in groups]
    for work in works:
        work.wait()


def both_ways(numel):
    """Out and in are two ports."""
    rank = dist.get_rank()
    work = dist.isend(torch.zeros(numel), 1 - rank)
    dist.recv(torch.empty(numel), 1 - rank)
    work.wait()


def overlapped(inputs):
    """An all_reduce under a compute, waited for after it."""
    work = dist.all_reduce(torch.zeros(inputs["numel"]), async_op=True)
    inside.compute(inputs["compute_s"], "B")
    work.wait()


def in_order(inputs):
    """A late operation of the group holds up the one behind it, though that one is ready before."""
    rank = dist.get_rank()
    first = dist.all_reduce(torch.zeros(1), async_op=True)
    second = dist.all_reduce(torch.zeros(1), async_op=True)
    inside.compute(inputs[rank], "F")
    first.wait()
    second.wait()


def across(pairs):
    """Messages between the given pairs of ranks, one after the other."""
    rank = dist.get_rank()
    for source, target in pairs:
        dist.barrier()
        inside.mark(f"{source} to {target}")
        if rank == source:
            dist.send(torch.zeros(25_000), target)
        elif rank == target:
            dist.recv(torch.empty(25_000), source)
        dist.barrier()
        inside.mark(f"{source} to {target} done")


# -- what timing decides --------------------------------------------------------------------------------------


def any_source(seconds):
    """Rank 0 hears from everyone, in the order of their clocks."""
    rank, heard = dist.get_rank(), []
    if rank == 0:
        for _ in range(dist.get_world_size() - 1):
            x = torch.empty(1)
            dist.recv(x)
            heard.append(int(x))
    else:
        inside.compute(seconds[rank], "F")
        dist.send(torch.tensor([float(rank)]), 0)
    return heard


def counter(seconds):
    """Ranks take numbers from the store, in the order of their clocks."""
    rank = dist.get_rank()
    inside.compute(seconds[rank], "F")
    return dist.distributed_c10d._get_default_store().add("tickets", 1)


def key(seconds):
    """Rank 1 waits for what rank 0 sets at its 5th second."""
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 0:
        inside.compute(seconds, "F")
        store.set("ready", "yes")
        inside.compute(1, "F")
    else:
        store.wait(["ready"])
        inside.mark("let go")


def same_key(seconds):
    """Everyone sets one key; what is there in the end is the latest one's."""
    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    inside.compute(seconds[rank], "F")
    store.set("who", str(rank))
    dist.barrier()
    return store.get("who").decode()


def told_in_order(inputs):
    """Ranks set one key one after the other, each told by a barrier that the one before is done."""
    rank, store, seen = dist.get_rank(), dist.distributed_c10d._get_default_store(), []
    for who in inputs["ranks"]:
        if rank == who:
            store.set("who", str(rank))
        dist.barrier()
        if inputs["read_each"]:
            seen.append(store.get("who").decode())
            dist.barrier()
    return seen or [store.get("who").decode()]


def spin_on_the_store(_):
    """A rank that asks all the time does not keep the others from answering."""
    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    if rank == 1:
        while not store.check(["answer"]):
            pass
    else:
        inside.compute(1000, "F")
        store.add("steps", 1)
        store.set("answer", "42")


def polls(numel):
    """Asks until it is there, then goes on."""
    rank = dist.get_rank()
    if rank == 0:
        inside.compute(3, "F")
    work = dist.all_reduce(torch.zeros(numel), async_op=True)
    asked = 1
    while not work.is_completed():
        asked += 1
    inside.mark("there")
    return asked


def any_of(seconds):
    """The future that comes first in virtual time is not the one that was asked for first."""
    rank, order = dist.get_rank(), []
    groups = [dist.new_group([0, 1]), dist.new_group([0, 2])]
    if rank:
        inside.compute(seconds[rank], "F")
        dist.all_reduce(torch.ones(1), group=groups[rank - 1])
        return order
    futures = [dist.all_reduce(torch.ones(1), group=group, async_op=True).get_future() for group in groups]
    for index, future in enumerate(futures):
        future.then(lambda _, index=index: order.append(index))
    for future in futures:
        future.wait()
    return order


def timeouts(limits):
    """Everyone waits for rank 0, which never comes; whose limit is up first hears so first."""
    from datetime import timedelta

    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    if rank:
        start_s, limit_s = limits[rank]
        inside.compute(start_s, "F")
        try:
            store.wait(["never"], timedelta(seconds=limit_s))
        except RuntimeError:
            inside.mark("gave up")
            return store.add("gave up", 1)
    return 0


def distributed_data_parallel(_):
    torch.manual_seed(0)
    model = nn.Sequential(*[Layer(str(i), 1, (1.0, 2.0), split=False) for i in range(6)])
    wrapped = DistributedDataParallel(model, bucket_cap_mb=0.0002)
    for _ in range(3):
        wrapped(torch.randn(4, 4)).sum().backward()
    return [param.grad.clone() for param in model.parameters()]


def flops(_):
    """2mnk for a product, twice that for its backward; an operation in between closes the account."""
    layer = nn.Linear(8, 16, bias=False)
    out = layer(torch.randn(4, 8, requires_grad=True))
    dist.barrier()
    out.sum().backward()
    dist.barrier()
    torch.randn(4, 8, dtype=torch.bfloat16) @ torch.randn(8, 2, dtype=torch.bfloat16)


def sharded_flops(_):
    """A DTensor counts what its rank computes; shapes that are only worked out, and meta tensors, cost nothing."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(nn.Linear(8, 16, bias=False), nn.Linear(16, 8, bias=False))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
    model(torch.ones(4, 8))
    torch.empty(8, 8, device="meta") @ torch.empty(8, 8, device="meta")


def polls_between_computes(_):
    """Rank 0 asks once a second whether a message is there that comes after 3.5 s."""
    received = torch.zeros(8)
    if dist.get_rank() == 0:
        work, answers = dist.irecv(received, 1), []
        for _ in range(6):
            inside.compute(1.0)
            answers.append(work.is_completed())
        return answers
    inside.compute(3.5)
    dist.send(received + 1, 0)
    return []
