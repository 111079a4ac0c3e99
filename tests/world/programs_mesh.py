"""One training step of the decoder of tests/world/transformer.py on a mesh pp x dp x tp, written out by hand."""

from __future__ import annotations

import math

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional as F

from tests.world.transformer import LEARNING_RATE, H, T, V, layers_of, sizes


class Enter(torch.autograd.Function):
    """Where a whole activation enters the shards: identity, and the gradients of all shards are added up."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=ctx.group)
        return total, None


class Leave(torch.autograd.Function):
    """Where the shards' partial results are added up: the gradient passes as it is."""

    @staticmethod
    def forward(ctx, partial, group):
        total = partial.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class VocabularyLoss(torch.autograd.Function):
    """Sum over tokens of the cross entropy, from logits whose words are cut over the ranks of a group."""

    @staticmethod
    def forward(ctx, logits, targets, first_word, group):
        """logits [B, T, own words] -> a number"""
        largest = logits.amax(-1)
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
        shifted = logits - largest[..., None]
        own = (targets >= first_word) & (targets < first_word + logits.shape[-1])
        at = torch.where(own, targets - first_word, 0)[..., None]
        sums = torch.stack([shifted.exp().sum(-1), torch.where(own, shifted.gather(-1, at)[..., 0], 0.0)])
        dist.all_reduce(sums, group=group)
        ctx.save_for_backward(shifted.exp() / sums[0][..., None], own, at)
        return (sums[0].log() - sums[1]).sum()

    @staticmethod
    def backward(ctx, grad):
        probabilities, own, at = ctx.saved_tensors
        wanted = torch.zeros_like(probabilities).scatter_(-1, at, own[..., None].to(probabilities.dtype))
        return grad * (probabilities - wanted), None, None, None


def _layer(p, x, group):
    """x [B, T, H], whole on every rank of the group, to the same; p holds this rank's heads and features."""
    h = Enter.apply(F.layer_norm(x, (H,), p["norm1.weight"], p["norm1.bias"]), group)
    q, k, v = torch.einsum("bth,cadh->cbatd", h, p["qkv.weight"]) + p["qkv.bias"][:, None, :, None]
    scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    ahead = torch.ones(T, T, dtype=torch.bool).triu(1)
    seen = scores.masked_fill(ahead, -math.inf).softmax(-1) @ v
    x = x + Leave.apply(torch.einsum("batd,had->bth", seen, p["out.weight"]), group) + p["out.bias"]
    h = Enter.apply(F.layer_norm(x, (H,), p["norm2.weight"], p["norm2.bias"]), group)
    h = F.gelu(F.linear(h, p["up.weight"], p["up.bias"]))
    return x + Leave.apply(F.linear(h, p["down.weight"]), group) + p["down.bias"]


class Stage:
    """One rank's part of the model: its stage's layers, its shard of each."""

    def __init__(self, params, mesh):
        self.params = {name: value.requires_grad_() for name, value in params.items()}
        self.group = mesh.get_group("tp")
        self.stage, self.num_stages = mesh.get_local_rank("pp"), mesh.size(0)
        self.layers = list(layers_of(self.stage, self.num_stages))
        self.first_word = sum(sizes(V, mesh.size(2))[: mesh.get_local_rank("tp")])

    def of(self, layer):
        return {name.partition(".")[2]: v for name, v in self.params.items() if name.startswith(f"{layer}.")}

    def forward(self, x, batch):
        """Activations of the stage before (None at the first), to those of this one; at the last, to the loss."""
        words, targets = batch
        if self.stage == 0:
            x = self.params["embedding"][words] + self.params["position"]
        for layer in self.layers:
            x = _layer(self.of(layer), x, self.group)
        if self.stage < self.num_stages - 1:
            return x
        x = F.layer_norm(x, (H,), self.params["norm.weight"], self.params["norm.bias"])
        logits = F.linear(Enter.apply(x, self.group), self.params["head"])
        return VocabularyLoss.apply(logits, targets, self.first_word, self.group)


def _one_f_one_b(stage, batches, num_tokens, group):
    """Run the microbatches in 1F1B order; returns the loss (the last stage's), leaves gradients in `.grad`."""
    is_first, is_last = stage.stage == 0, stage.stage == stage.num_stages - 1
    sending, held, loss = [], [], 0.0

    def receive(microbatch, peer):
        x = torch.empty(*batches[microbatch][0].shape, H, dtype=torch.float64)
        dist.recv(x, group=group, group_src=peer)
        return x

    def forward(microbatch):
        x = None if is_first else receive(microbatch, stage.stage - 1).requires_grad_()
        y = stage.forward(x, batches[microbatch])
        held.append((microbatch, x, y))
        if not is_last:
            message = y.detach()
            sending.append((dist.isend(message, group=group, group_dst=stage.stage + 1), message))

    def backward():
        nonlocal loss
        microbatch, x, y = held.pop(0)
        if is_last:
            y = y / num_tokens
            loss += y.item()
            y.backward()
        else:
            y.backward(receive(microbatch, stage.stage + 1))
        if not is_first:
            sending.append((dist.isend(x.grad, group=group, group_dst=stage.stage - 1), x.grad))

    warmup = min(stage.num_stages - 1 - stage.stage, len(batches))
    for microbatch in range(warmup):
        forward(microbatch)
    for microbatch in range(warmup, len(batches)):
        forward(microbatch)
        backward()
    for _ in range(warmup):
        backward()
    for work, _ in sending:
        work.wait()
    return loss


def _sum_over_replicas(params, group):
    """One all_reduce for the gradients of each layer (and one for the rest), all in flight at once."""
    buckets = {}
    for name, value in params.items():
        head = name.partition(".")[0]
        buckets.setdefault(head if head.isdigit() else "", []).append(value)
    flying = []
    for values in buckets.values():
        flat = torch.cat([value.grad.reshape(-1) for value in values])
        flying.append((dist.all_reduce(flat, group=group, async_op=True), flat, values))
    for work, flat, values in flying:
        work.wait()
        for value, part in zip(values, flat.split([value.numel() for value in values]), strict=True):
            value.grad = part.view_as(value)


def training_step(given):
    """given: {"mesh": [pp, dp, tp], "params": this rank's, "batches": its replica's, "num_tokens": of all replicas}."""
    mesh = init_device_mesh("cpu", tuple(given["mesh"]), mesh_dim_names=("pp", "dp", "tp"))
    stage = Stage(given["params"], mesh)
    loss = _one_f_one_b(stage, given["batches"], given["num_tokens"], mesh.get_group("pp"))
    _sum_over_replicas(stage.params, mesh.get_group("dp"))
    grads = {name: value.grad.clone() for name, value in stage.params.items()}
    with torch.no_grad():
        for value in stage.params.values():
            value -= LEARNING_RATE * value.grad
    after = {name: value.detach() for name, value in stage.params.items()}
    return {"at": mesh.get_coordinate(), "loss": loss, "grads": grads, "params": after}


def ten_all_reduces():
    """The sum of the ranks' numbers, ten times over; then the process's memory, at a moment when all ranks live."""
    x = torch.full((1024,), float(dist.get_rank()))
    for _ in range(10):
        dist.all_reduce(x)
        x /= dist.get_world_size()
    with open("/proc/self/smaps_rollup") as file:
        own = next(int(line.split()[1]) << 10 for line in file if line.startswith("Private_Dirty:"))
    dist.barrier()
    return {"x": x, "own_bytes": own}


def each_operation(rounds):
    """`rounds` times: every collective once, a message to the right, and a count in the store."""
    rank, size = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    for _ in range(rounds):
        whole, own = torch.ones(4 * size), torch.ones(4)
        dist.all_reduce(own)
        dist.all_gather_into_tensor(whole, own)
        dist.reduce_scatter_tensor(own, whole)
        dist.all_to_all_single(torch.empty(4 * size), whole)
        sending = dist.isend(own, (rank + 1) % size)
        dist.recv(torch.empty(4), (rank - 1) % size)
        sending.wait()
        store.add("count", 1)
        dist.barrier()
