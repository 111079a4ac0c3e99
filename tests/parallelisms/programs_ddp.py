"""DistributedDataParallel in its variants; every rank but the first starts from parameters of its own."""

from __future__ import annotations

import contextlib

import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from tests.parallelisms.models import copied, gradients, load, loss_of, sgd

SMALL_BUCKET_MB = 0.0005  # 65 numbers of float64: as good as one bucket a tensor


def trains(given):
    """Plain training; given: {"model", "state", "steps", "ddp": options, "accumulate", "hook", "branches"}."""
    model = load(given["model"], given["state"])
    wrapped = DistributedDataParallel(model, **{"bucket_cap_mb": SMALL_BUCKET_MB, **given.get("ddp", {})})
    if "hook" in given:
        HOOKS[given["hook"]](wrapped)
    optimizer = sgd(model.parameters())
    seen = {"losses": [], "grads": [], "params": []}
    accumulate = given.get("accumulate", 1)
    for number, batch in enumerate(given["steps"]):
        if number % accumulate == 0:
            optimizer.zero_grad()
        is_last = (number + 1) % accumulate == 0
        extra = [given["branches"][number]] if "branches" in given else []
        with contextlib.nullcontext() if is_last else wrapped.no_sync():
            loss = loss_of(wrapped(batch["x"], *extra), batch)
            loss.backward()
        seen["losses"].append(loss.item())
        if is_last:
            seen["grads"].append(gradients(model.named_parameters()))
            optimizer.step()
            seen["params"].append(copied(model.named_parameters()))
    if given["model"] == "normed":
        seen["buffers"] = copied(model.named_buffers())
    return seen


def joins(given):
    """Ranks with different numbers of batches; given: {"state", "steps", "join": options}."""
    model = load("mlp", given["state"])
    wrapped = DistributedDataParallel(model, bucket_cap_mb=SMALL_BUCKET_MB)
    optimizer = sgd(model.parameters())
    losses = []
    with wrapped.join(**given["join"]):
        for batch in given["steps"]:
            optimizer.zero_grad()
            loss = loss_of(wrapped(batch["x"]), batch)
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
    return {"losses": losses, "params": copied(model.named_parameters())}


def _bf16(state, bucket):
    # Torch's own hook under another name: register_comm_hook refuses that name without NCCL.
    return default_hooks.bf16_compress_hook(None, bucket)


def _doubled(state, bucket):
    """A hook of one's own with two steps in its future: the mean, doubled."""
    reduced = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True).get_future()
    return reduced.then(lambda future: future.value()[0] * 2)


def _power_sgd(rank):
    def register(wrapped):
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=rank, start_powerSGD_iter=2, min_compression_rate=0.01
        )
        wrapped.register_comm_hook(state, powerSGD_hook.powerSGD_hook)

    return register


HOOKS = {
    "allreduce": lambda wrapped: wrapped.register_comm_hook(None, default_hooks.allreduce_hook),
    "fp16": lambda wrapped: wrapped.register_comm_hook(None, default_hooks.fp16_compress_hook),
    "fp16 wrapper": lambda wrapped: wrapped.register_comm_hook(
        None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    ),
    "bf16": lambda wrapped: wrapped.register_comm_hook(None, _bf16),
    "doubled": lambda wrapped: wrapped.register_comm_hook(None, _doubled),
    "built-in allreduce": lambda wrapped: wrapped._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE),
    "built-in fp16": lambda wrapped: wrapped._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS),
    "PowerSGD of full rank": _power_sgd(16),
    "PowerSGD of rank 1": _power_sgd(1),
}


def power_sgd_alone(given):
    """PowerSGD where one process has the data of all: given is a list of ranks' batches a step."""
    model = load("mlp", given["state"])
    wrapped = DistributedDataParallel(_Summed(model), bucket_cap_mb=1)
    _power_sgd(1)(wrapped)
    optimizer = sgd(model.parameters())
    seen = {"grads": [], "params": []}
    for batches in given["steps"]:
        optimizer.zero_grad()
        (wrapped(batches) / len(batches)).backward()
        seen["grads"].append(gradients(model.named_parameters()))
        optimizer.step()
        seen["params"].append(copied(model.named_parameters()))
    return seen


class _Summed(nn.Module):
    """The sum of all ranks' losses in one forward."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, batches):
        return sum(loss_of(self.model(batch["x"]), batch) for batch in batches)


def powers(given):
    """Training without the losses, to compare with `power_sgd_alone`."""
    seen = trains(given)
    return {"grads": seen["grads"], "params": seen["params"]}
