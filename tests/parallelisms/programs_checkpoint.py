"""Distributed checkpoints of sharded models and optimizers: saved by one world, loaded by another."""

from __future__ import annotations

import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from tests.parallelisms.models import load, loss_of, sgd


def sharded(state):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = load("mlp", state)
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def train(model, optimizer, steps):
    for batch in steps:
        optimizer.zero_grad()
        loss_of(model(batch["x"]), batch).backward()
        optimizer.step()
    return {name: param.detach().full_tensor() for name, param in model.named_parameters()}


def saves(given):
    """given: {"state", "steps", "folder", "in_background": bool}; trains, saves, and returns the parameters."""
    model = sharded(given["state"])
    optimizer = sgd(model.parameters())
    params = train(model, optimizer, given["steps"])
    states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    if given["in_background"]:
        checkpoint.async_save(states, checkpoint_id=given["folder"]).result()
    else:
        checkpoint.save(states, checkpoint_id=given["folder"])
    return params


def resumes(given):
    """given: {"state": of another start, "steps", "folder"}; loads, goes on training, and returns the parameters."""
    model = sharded(given["state"])
    optimizer = sgd(model.parameters())
    states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    checkpoint.load(states, checkpoint_id=given["folder"])
    set_state_dict(model, optimizer, model_state_dict=states["model"], optim_state_dict=states["optimizer"])
    return train(model, optimizer, given["steps"])


def gathers_and_hands_out(given):
    """A whole state dict from rank 0 to a sharded model and back; given: {"state", "start"}."""
    model = sharded(given["start"])
    whole = given["state"] if dist.get_rank() == 0 else {}
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, whole, options=options)
    return dict(get_model_state_dict(model, options=StateDictOptions(full_state_dict=True)))
