"""torch's ring attention: its loop over the ring with the CPU's kernel, and context_parallel() taught that kernel."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.distributed.tensor.experimental._context_parallel._attention as ring
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import context_parallel_unshard, set_rotate_method

FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def _forward(query, key, value, is_causal, **_):
    return FORWARD(query, key, value, 0.0, is_causal)


def _backward(grad_out, query, key, value, out, logsumexp, is_causal, **_):
    return BACKWARD(grad_out, query, key, value, out, logsumexp, 0.0, is_causal)


def attends(given):
    """given: {"query", "key", "value", "grad": [batch, heads, own time, width], "causal", "balanced", "rotate"}.

    Returns the own part of the output and of the three gradients.
    """
    ring._cp_options.enable_load_balance = given["balanced"]
    set_rotate_method(given["rotate"])
    parts = [given[name] for name in ("query", "key", "value")]
    causal = given["causal"]
    out, logsumexp = ring._templated_ring_attention(dist.group.WORLD, 2, _forward, *parts, is_causal=causal)
    grads = ring._templated_ring_attention_backward(
        dist.group.WORLD, 2, _backward, given["grad"], "grad_out", *parts, out, logsumexp, is_causal=causal
    )
    return [out, *grads[:3]]


def _handle(op, args, kwargs):
    """What context_parallel() does for CUDA's kernels, for the CPU's."""
    unwrapped = DTensor._op_dispatcher.unwrap_to_op_info(op, args, kwargs)
    group = unwrapped.compute_mesh.get_group()
    local = unwrapped.local_args
    like = args[0]

    def wrapped(tensor):
        return DTensor.from_local(tensor, like.device_mesh, like.placements, run_check=False)

    if op is FORWARD.default:
        causal = local[4] if len(local) > 4 else unwrapped.local_kwargs.get("is_causal", False)
        results = ring._templated_ring_attention(group, 2, _forward, *local[:3], is_causal=causal)
    else:
        grad, query, key, value, out, logsumexp, _, causal = local[:8]
        results = ring._templated_ring_attention_backward(
            group, 2, _backward, grad, "grad_out", query, key, value, out, logsumexp, is_causal=causal
        )
    return tuple(wrapped(result) for result in results[: 2 if op is FORWARD.default else 3])


def shards_buffers(given):
    """context_parallel() over scaled_dot_product_attention; given: whole {"query", "key", "value", "grad"}, "causal".

    Returns the whole output and gradients, put together by context_parallel_unshard.
    """
    ring.custom_ops[FORWARD.default] = ring.custom_ops[BACKWARD.default] = _handle
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    ring._cp_options.enable_load_balance = given["causal"]
    buffers = [given[name].clone() for name in ("query", "key", "value", "grad")]
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2] * 4):
        query, key, value = (buffer.detach().requires_grad_() for buffer in buffers[:3])
        out = F.scaled_dot_product_attention(query, key, value, is_causal=given["causal"])
        out.backward(buffers[3])
        own = [out.detach(), query.grad, key.grad, value.grad]
        return [part + 0 for part in context_parallel_unshard(mesh, own, [2] * 4)]
