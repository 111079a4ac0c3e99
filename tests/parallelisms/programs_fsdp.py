"""FullyShardedDataParallel (FSDP1) and fully_shard (FSDP2) around every linear layer; parameters are read whole."""

from __future__ import annotations

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    fully_shard,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor import Shard

from tests.parallelisms.models import load, loss_of, sgd


def trains_fsdp1(given):
    """given: {"state", "steps", "strategy", "accumulate", "clip", "reduce_dtype", "mesh", "options", "model"}."""
    options = dict(given.get("options", {}))
    if "mesh" in given:
        options["device_mesh"] = init_device_mesh("cpu", given["mesh"], mesh_dim_names=("replicate", "shard"))
    if "reduce_dtype" in given:
        options["mixed_precision"] = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=given["reduce_dtype"])
    wrapped = FullyShardedDataParallel(
        load("mlp", given["state"], **given.get("model", {})),
        auto_wrap_policy=ModuleWrapPolicy({nn.Linear}),
        device_id=torch.device("cpu"),
        sharding_strategy=ShardingStrategy[given.get("strategy", "FULL_SHARD")],
        **options,
    )

    def clip(largest):
        return wrapped.clip_grad_norm_(largest)

    def params():
        with FullyShardedDataParallel.summon_full_params(wrapped, writeback=False):
            return {
                name.replace("_fsdp_wrapped_module.", ""): param.detach().clone()
                for name, param in wrapped.named_parameters()
            }

    def syncing(is_last):
        return contextlib.nullcontext() if is_last else wrapped.no_sync()

    seen = _train(given, wrapped, clip, params, syncing)
    seen["own"] = sum(param.numel() for param in wrapped.parameters())
    return seen


def trains_fsdp2(given):
    """given: as above, "reshard", "prefetch": bool, "offload": bool, "dim": which dim of matrices is sharded."""
    model = load("mlp", given["state"], **given.get("model", {}))
    names = ("replicate", "shard") if "mesh" in given else ("shard",)
    options = {
        "mesh": init_device_mesh("cpu", given.get("mesh", (dist.get_world_size(),)), mesh_dim_names=names),
        "reshard_after_forward": given.get("reshard", True),
    }
    if "reduce_dtype" in given:
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=given["reduce_dtype"])
    if given.get("offload"):
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
    if "dim" in given:
        options["shard_placement_fn"] = lambda param: Shard(min(given["dim"], param.dim() - 1))
    layers = [layer for layer in model if isinstance(layer, nn.Linear)]
    for layer in layers:
        fully_shard(layer, **options)
    fully_shard(model, **options)
    if given.get("prefetch"):
        for number in range(len(layers)):
            layers[number].set_modules_to_forward_prefetch(layers[number + 1 : number + 3])
            layers[number].set_modules_to_backward_prefetch(layers[max(0, number - 2) : number][::-1])
    for layer in layers if "divide_by" in given else ():
        layer.set_gradient_divide_factor(given["divide_by"])

    def clip(largest):
        return torch.nn.utils.clip_grad_norm_(model.parameters(), largest).full_tensor()

    def params():
        return {name: param.detach().full_tensor() for name, param in model.named_parameters()}

    @contextlib.contextmanager
    def syncing(is_last):
        model.set_requires_gradient_sync(is_last)
        yield

    seen = _train(given, model, clip, params, syncing)
    seen["grads"] = {name: param.grad.full_tensor() for name, param in model.named_parameters()}
    seen["own"] = sum(param.to_local().numel() for param in model.parameters())
    return seen


def _train(given, model, clip, params, syncing):
    optimizer = sgd(model.parameters())
    accumulate = given.get("accumulate", 1)
    seen = {"losses": [], "params": [], "norms": []}
    for number, batch in enumerate(given["steps"]):
        if number % accumulate == 0:
            optimizer.zero_grad()
        is_last = (number + 1) % accumulate == 0
        with syncing(is_last):
            loss = loss_of(model(batch["x"]), batch)
            loss.backward()
        seen["losses"].append(loss.item())
        if is_last:
            if "clip" in given:
                seen["norms"].append(clip(given["clip"]).item())
            optimizer.step()
            seen["params"].append(params())
    return seen
