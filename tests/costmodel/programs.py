"""Small training programs whose traffic is compared with the cost model's; a barrier stands before what counts."""

from __future__ import annotations

import contextlib
import importlib.util

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

WIDTH = 12


def model_of(num_layers=3):
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH, dtype=torch.float64) for _ in range(num_layers)))


def batch():
    return torch.randn(2, WIDTH, dtype=torch.float64)


def ddp(given):
    """given: {"k": microbatches, "no_sync": bool}."""
    wrapped = DistributedDataParallel(model_of())
    for _ in range(2):  # the second forward orders the buckets anew, and rank 0 says how
        wrapped(batch()).sum().backward()
    dist.barrier()
    for number in range(given["k"]):
        is_quiet = given["no_sync"] and number < given["k"] - 1
        with wrapped.no_sync() if is_quiet else contextlib.nullcontext():
            wrapped(batch()).sum().backward()


def sharded_optimizer(given):
    """torch's own: whole gradients reduced, whole tensors owned, stepped and broadcast."""
    model = nn.ParameterList(nn.Parameter(torch.ones(WIDTH, dtype=torch.float64)) for _ in range(2 * given["n"]))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    dist.barrier()
    for param in model:
        param.grad = torch.ones_like(param)
        dist.all_reduce(param.grad)
    optimizer.step()


def zero(given):
    """Stages 1 to 3 of ZeRO on one flat parameter; given: {"stage", "k"}."""
    n, numel = dist.get_world_size(), 5 * dist.get_world_size()
    whole, shard = torch.zeros(numel), torch.ones(numel // n)
    dist.barrier()
    for number in range(given["k"]):
        if given["stage"] == 3:
            dist.all_gather_into_tensor(whole, shard)  # forward
            dist.all_gather_into_tensor(whole, shard)  # backward
        if given["stage"] > 1 or number == given["k"] - 1:
            dist.reduce_scatter_tensor(torch.empty(numel // n), torch.ones(numel))
    if given["stage"] < 3:
        dist.all_gather_into_tensor(whole, shard)


class Rooted(nn.Module):
    """Layers, and a parameter of the root's own."""

    def __init__(self):
        super().__init__()
        self.layers = model_of()
        self.scale = nn.Parameter(torch.ones(WIDTH, dtype=torch.float64))

    def forward(self, x):
        return self.layers(x * self.scale)


def fsdp(given):
    """given: {"k", "reshard", "sync_all", "mesh"}: fully_shard on each layer and on the root, which stays gathered."""
    names = ("replicate", "shard")[-len(given["mesh"]) :]
    mesh = init_device_mesh("cpu", given["mesh"], mesh_dim_names=names)
    model = Rooted()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, reshard_after_forward=given["reshard"])
    fully_shard(model, mesh=mesh)
    dist.barrier()
    for number in range(given["k"]):
        model.set_requires_gradient_sync(given["sync_all"] or number == given["k"] - 1)
        model(batch()).sum().backward()


def tensor_parallel_layer(given):
    """Two column-row pairs, as a layer has; given: {"path" of the reference, "recompute"}."""
    spec = importlib.util.spec_from_file_location("mlp", given["path"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    blocks = nn.Sequential(*(module.ParallelMLP(WIDTH, WIDTH) for _ in range(2)))
    x = torch.randn(given["b"], given["s"], WIDTH, requires_grad=True)
    dist.barrier()
    y = checkpoint(blocks, x, use_reentrant=True) if given["recompute"] else blocks(x)
    y.sum().backward()


class Column(torch.autograd.Function):
    """Gathers the sequence, multiplies by its columns; backward gathers again unless the whole input was saved."""

    @staticmethod
    def forward(ctx, x, weight, saves_gathered):
        gathered = _gather(x)
        ctx.saves_gathered = saves_gathered
        ctx.save_for_backward(gathered if saves_gathered else x, weight)
        return gathered @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        gathered = x if ctx.saves_gathered else _gather(x)
        return _scatter(grad @ weight), grad.t() @ gathered, None


class Row(torch.autograd.Function):
    """Multiplies by its rows, sums and scatters the sequence; backward gathers."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return _scatter(x @ weight.t())

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        gathered = _gather(grad)
        return gathered @ weight, gathered.t() @ x


def _gather(x):
    whole = x.new_empty(x.shape[0] * dist.get_world_size(), *x.shape[1:])
    dist.all_gather_into_tensor(whole, x.contiguous())
    return whole


def _scatter(x):
    part = x.new_empty(x.shape[0] // dist.get_world_size(), *x.shape[1:])
    dist.reduce_scatter_tensor(part, x.contiguous())
    return part


def sequence_parallel_layer(given):
    """given: {"s", "saves_gathered"}."""
    n = dist.get_world_size()
    x = torch.randn(given["s"] // n, WIDTH, requires_grad=True)
    dist.barrier()
    for _ in range(2):
        hidden = Column.apply(x, torch.randn(WIDTH // n, WIDTH, requires_grad=True), given["saves_gathered"])
        x = Row.apply(hidden, torch.randn(WIDTH, WIDTH // n, requires_grad=True))
    x.sum().backward()


def pipeline(given):
    """torch's 1F1B, or interleaved with chunks; the second step counts. given: {"m", "v"}."""
    rank, p, v = dist.get_rank(), dist.get_world_size(), given["v"]
    stages = [PipelineStage(model_of(1), rank + p * chunk, p * v, torch.device("cpu")) for chunk in range(v)]
    options = {"loss_fn": lambda output, target: output.sum()}
    schedule = (
        Schedule1F1B(stages[0], given["m"], **options)
        if v == 1
        else ScheduleInterleaved1F1B(stages, given["m"], **options)
    )
    x = torch.randn(given["m"] * given["b"], WIDTH, dtype=torch.float64)
    for _ in range(2):
        dist.barrier()
        schedule.step(*([x] if rank == 0 else []), **({"target": x} if rank == p - 1 else {}))


def experts(given):
    """Dispatch and combine of evenly routed copies, forward and backward; given: {"tokens", "k"}."""
    rows = given["tokens"] * given["k"]
    dist.barrier()
    for _ in range(4):
        dist.all_to_all_single(torch.empty(rows, WIDTH), torch.ones(rows, WIDTH))


def ring(given):
    """K and V round a ring, then K, V and their gradients, and the gradients' last hop home; given: {"numel"}."""
    rank, n = dist.get_rank(), dist.get_world_size()

    def hop(tensors):
        received = [torch.empty_like(tensor) for tensor in tensors]
        works = [
            work
            for tensor, into in zip(tensors, received, strict=True)
            for work in (dist.isend(tensor, (rank + 1) % n), dist.irecv(into, (rank - 1) % n))
        ]
        for work in works:
            work.wait()
        return received

    own = [torch.ones(given["numel"]) for _ in range(2)]
    dist.barrier()
    held = own
    for _ in range(n - 1):
        held = hop(held)
    held, grads = own, [torch.zeros_like(tensor) for tensor in own]
    for step in range(n):
        if step < n - 1:
            held = hop(held)
        grads = hop([grad + 1 for grad in grads])
    assert all(torch.equal(grad, torch.full_like(grad, n)) for grad in grads)


def one_collective(given):
    """given: {"operation", "numel" of the whole buffer}."""
    n, numel = dist.get_world_size(), given["numel"]
    whole, part = torch.ones(numel), torch.ones(numel // n)
    {
        "all_reduce": lambda: dist.all_reduce(whole),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
        "all_to_all": lambda: dist.all_to_all_single(torch.empty(numel), whole),
        "broadcast": lambda: dist.broadcast(whole, 0),
    }[given["operation"]]()
