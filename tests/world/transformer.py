"""A small decoder, whole and in one process: what the ranks of a 3D mesh must agree with, and how it is cut for them.

Nothing divides evenly: 6 heads and 10 ffn features over 4 ranks, 11 words over 4 ranks, 6 layers over 4 stages.

Shapes: B sequences, T tokens, H hidden, A heads, D head dimension, F ffn features, V words.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

V, T, H, A, D, FFN, LAYERS = 11, 6, 20, 6, 4, 10, 6
LEARNING_RATE = 0.1


def sizes(total, num_parts):
    """10 over 4: [3, 3, 2, 2]."""
    return [total // num_parts + (part < total % num_parts) for part in range(num_parts)]


def layers_of(stage, num_stages):
    """The last stages get the larger shares, where there are any: 6 layers over 4 stages are 1, 1, 2, 2."""
    counts = sizes(LAYERS, num_stages)[::-1]
    start = sum(counts[:stage])
    return range(start, start + counts[stage])


def initial_params(seed):
    """{name: float64}; no bias is zero and no norm is the identity."""
    shapes = {"embedding": (V, H), "position": (T, H), "norm.weight": (H,), "norm.bias": (H,), "head": (V, H)}
    for layer in range(LAYERS):
        shapes |= {
            f"{layer}.norm1.weight": (H,), f"{layer}.norm1.bias": (H,),
            f"{layer}.qkv.weight": (3, A, D, H), f"{layer}.qkv.bias": (3, A, D),
            f"{layer}.out.weight": (H, A, D), f"{layer}.out.bias": (H,),
            f"{layer}.norm2.weight": (H,), f"{layer}.norm2.bias": (H,),
            f"{layer}.up.weight": (FFN, H), f"{layer}.up.bias": (FFN,),
            f"{layer}.down.weight": (H, FFN), f"{layer}.down.bias": (H,),
        }  # fmt: skip
    draw = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=draw, dtype=torch.float64) * 0.3 for name, shape in shapes.items()}


def stage_of(name, num_stages):
    layer = name.partition(".")[0]
    if not layer.isdigit():
        return 0 if name in ("embedding", "position") else num_stages - 1
    return next(stage for stage in range(num_stages) if int(layer) in layers_of(stage, num_stages))


def cut(name, tensor, rank, num_ranks):
    """What tensor-parallel rank `rank` holds of a parameter (or of its gradient): heads, ffn features or words."""
    part = name.partition(".")[2]
    dim = {"qkv.weight": 1, "qkv.bias": 1, "out.weight": 1, "up.weight": 0, "up.bias": 0, "down.weight": 1}.get(part)
    if name == "head":
        dim = 0
    return (tensor if dim is None else tensor.split(sizes(tensor.shape[dim], num_ranks), dim)[rank]).clone()


def make_batches(num_replicas, num_microbatches, seed):
    """batches[replica][microbatch]: (words [B, T], targets [B, T]), all different, of 1 to 3 sequences by replica."""
    draw = torch.Generator().manual_seed(seed)
    return [
        [
            tuple(torch.randint(V, (1 + replica % 3, T), generator=draw) for _ in range(2))
            for _ in range(num_microbatches)
        ]
        for replica in range(num_replicas)
    ]


def whole_loss(params, words, targets):
    """Sum over tokens of the cross entropy."""
    x = params["embedding"][words] + params["position"]
    for layer in range(LAYERS):
        p = {name.partition(".")[2]: value for name, value in params.items() if name.startswith(f"{layer}.")}
        h = F.layer_norm(x, (H,), p["norm1.weight"], p["norm1.bias"])
        q, k, v = torch.einsum("bth,cadh->cbatd", h, p["qkv.weight"]) + p["qkv.bias"][:, None, :, None]
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + torch.einsum("batd,had->bth", seen, p["out.weight"]) + p["out.bias"]
        h = F.layer_norm(x, (H,), p["norm2.weight"], p["norm2.bias"])
        h = F.gelu(F.linear(h, p["up.weight"], p["up.bias"]))
        x = x + F.linear(h, p["down.weight"], p["down.bias"])
    x = F.layer_norm(x, (H,), params["norm.weight"], params["norm.bias"])
    logits = F.linear(x, params["head"])
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")


def whole_step(params, batches):
    """(loss of each replica, gradients of the mean over all tokens, parameters after a step of SGD)."""
    params = {name: value.clone().requires_grad_() for name, value in params.items()}
    num_tokens = sum(words.numel() for replica in batches for words, _ in replica)
    losses = [sum(whole_loss(params, *batch) for batch in replica) / num_tokens for replica in batches]
    sum(losses).backward()
    grads = {name: value.grad for name, value in params.items()}
    after = {name: value.detach() - LEARNING_RATE * grads[name] for name, value in params.items()}
    return [loss.item() for loss in losses], grads, after
