"""Bytes on one rank: model state under ZeRO, and the activations of a transformer layer.

Conventions differ by source, so each is named: `model_state_bytes` says which bytes a parameter costs.
"""

from __future__ import annotations

from kit.costmodel.arguments import exact, one_of, quantity, quotient, whole
from kit.errors import KitError

RECOMPUTATIONS = ("none", "selective", "full")


def model_state_bytes(
    num_params: int | float,
    world_size: int,
    stage: int = 0,
    optimizer_bytes_per_param: int | float = 12,
    param_bytes_per_param: int | float = 2,
    grad_bytes_per_param: int | float = 2,
) -> int | float:
    """Parameters, gradients and optimizer state of one rank between two steps.

    The defaults are the convention of ZeRO (arXiv 1910.02054, section 5): 2 bytes of 16-bit parameters, 2 of 16-bit
    gradients, and K = 12 of optimizer state (fp32 parameters, momentum and variance of Adam). Stage 1 shards the
    optimizer state over the ranks, stage 2 also the gradients, stage 3 also the parameters; stage 0 shards nothing.
    `model_state_bytes(7.5e9, 64, stage=1)` -> 31.41e9. Shards are equal: padding is not counted.
    """
    n = whole("world_size", world_size)
    stage = whole("stage", stage, at_least=0, at_most=3)
    psi = exact(quantity("num_params", num_params))
    parts = [
        (3, quantity("param_bytes_per_param", param_bytes_per_param)),
        (2, quantity("grad_bytes_per_param", grad_bytes_per_param)),
        (1, quantity("optimizer_bytes_per_param", optimizer_bytes_per_param)),
    ]
    whole_bytes = sum(each for sharded_from, each in parts if stage < sharded_from)
    sharded_bytes = sum(each for sharded_from, each in parts if stage >= sharded_from)
    return exact(exact(whole_bytes * psi) + quotient(exact(sharded_bytes * psi), n))


def bytes_per_param(
    world_size: int,
    stage: int = 0,
    optimizer_bytes_per_param: int | float = 12,
    param_bytes_per_param: int | float = 2,
    grad_bytes_per_param: int | float = 2,
) -> int | float:
    """Model state of one rank for each parameter of the model: 4 + K/n, 2 + (2+K)/n, (4+K)/n for stages 1, 2, 3."""
    return model_state_bytes(
        1, world_size, stage, optimizer_bytes_per_param, param_bytes_per_param, grad_bytes_per_param
    )


def activation_bytes_per_layer(
    seq_len: int,
    microbatch_size: int,
    hidden_size: int,
    num_heads: int,
    tensor_parallel: int = 1,
    sequence_parallel: bool | int = False,
    recomputation: str = "none",
) -> int | float:
    """What one rank keeps of one transformer layer for its backward, 16-bit activations and 1-byte dropout masks.

    sbh(10 + 24/t + 5as/(ht)) with tensor parallelism, sbh(34 + 5as/h)/t with sequence parallelism too. "selective"
    recomputes attention's core and drops the term with a; "full" keeps the layer's input only, 2sbh, on every rank.
    Source: Korthikanti et al., arXiv 2205.05198, Table 2. No flash attention; the MLP is 4h wide; h/t is whole.
    """
    s, b = whole("seq_len", seq_len), whole("microbatch_size", microbatch_size)
    h, a = whole("hidden_size", hidden_size), whole("num_heads", num_heads)
    t = whole("tensor_parallel", tensor_parallel)
    one_of("recomputation", recomputation, RECOMPUTATIONS)
    if a % t:
        raise KitError(f"num_heads={a} cannot be split over tensor_parallel={t} ranks")
    if recomputation == "full":
        return 2 * s * b * h
    scores = 5 * a * s * s * b if recomputation == "none" else 0
    if sequence_parallel:
        return quotient(34 * s * b * h + scores, t)
    return 10 * s * b * h + quotient(24 * s * b * h + scores, t)
