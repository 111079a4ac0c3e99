"""What torch itself refuses on a CPU or on gloo, one function each."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as differentiable
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, bf16_compress_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffload, CPUOffloadPolicy, FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parallel.distributed import _MixedPrecision

CPU = torch.device("cpu")


def bf16_hook():
    DistributedDataParallel(nn.Linear(3, 2)).register_comm_hook(None, bf16_compress_hook)


def mixed_precision_of_ddp():
    wrapped = DistributedDataParallel(nn.Linear(3, 2), mixed_precision=_MixedPrecision(torch.bfloat16, torch.float32))
    wrapped(torch.ones(1, 3)).sum().backward()


def sync_batch_norm():
    nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3))(torch.randn(4, 3))


def overlapped_zero():
    wrapped = DistributedDataParallel(nn.Linear(3, 2), static_graph=True)
    optimizer = ZeroRedundancyOptimizer(wrapped.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)
    wrapped.register_comm_hook(None, hook_with_zero_step(allreduce_hook, wrapped, optimizer))


def fsdp1_without_device():
    FullyShardedDataParallel(nn.Linear(3, 2))


def fsdp1_offload():
    wrapped = FullyShardedDataParallel(nn.Linear(3, 2), device_id=CPU, cpu_offload=CPUOffload(offload_params=True))
    wrapped(torch.ones(1, 3)).sum().backward()


def fsdp1_sync_module_states():
    FullyShardedDataParallel(nn.Linear(3, 2), device_id=CPU, sync_module_states=True)


def fsdp1_norm_of_float64():
    wrapped = FullyShardedDataParallel(nn.Linear(3, 2, dtype=torch.float64), device_id=CPU)
    wrapped(torch.ones(1, 3, dtype=torch.float64)).sum().backward()
    wrapped.clip_grad_norm_(1.0)


def fsdp2_pinned_offload():
    model = nn.Linear(3, 2)
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)), offload_policy=CPUOffloadPolicy())
    model(torch.ones(1, 3)).sum().backward()


def context_parallel_as_it_is():
    parts = [torch.randn(1, 2, 8, 4) for _ in range(3)]
    with context_parallel(init_device_mesh("cpu", (2,)), buffers=parts, buffer_seq_dims=[2] * 3):
        nn.functional.scaled_dot_product_attention(*parts, is_causal=True)


def gradient_of_all_gather_base():
    x = torch.ones(2, requires_grad=True)
    differentiable._all_gather_base(torch.empty(4), x).sum().backward()


def tries(name):
    """[the exception's type, its text] of what `name` raises; None where it raises nothing."""
    try:
        globals()[name]()
    except Exception as error:
        return [type(error).__name__, str(error)]
    finally:
        dist.barrier()
    return None
