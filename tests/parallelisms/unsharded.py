"""Data, and what one process computes from all of it: the oracle of the training families."""

from __future__ import annotations

import torch

from tests.parallelisms.models import MODELS, copied, gradients, load, loss_of, sgd


def initial_state(name, seed=0, **options):
    torch.manual_seed(seed)
    model = MODELS[name](**options)
    with torch.no_grad():
        for param in model.parameters():
            param.copy_(torch.randn(param.shape, dtype=torch.float64) * 0.5)
    return {key: value.clone() for key, value in model.state_dict().items()}


def make_steps(size, num_steps=3, seed=1, wide_in=7, wide_out=5, rows=lambda rank: 3 + rank, dtype=torch.float64):
    """steps[step][rank]: a batch of its own for every rank, of its own length, its loss weighted by its own numbers."""
    draw = torch.Generator().manual_seed(seed)

    def numbers(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64).to(dtype)

    return [
        [
            {
                "x": numbers(rows(rank), wide_in),
                "target": numbers(rows(rank), wide_out),
                "weight": (0.5 + rank + numbers(wide_out).abs()) / rows(rank) / 4,
            }
            for rank in range(size)
        ]
        for _ in range(num_steps)
    ]


def of_rank(steps, rank):
    return [batches[rank] for batches in steps]


def train(name, state, steps, *, scale=None, accumulate=1, clip=None, make_optimizer=sgd, arguments=None, **options):
    """What the ranks must hold after every optimizer step, from one process with all the data.

    The gradient is the sum over ranks of the gradients of their losses, times `scale` (1/size unless given: the mean).
    accumulate: batches of a rank for one optimizer step. clip: the largest norm of the whole gradient.
    arguments(step, rank): what else the network is called with.
    Returns {"losses": [step][rank], "grads": [{name: ...}], "params": [{name: ...}], "norms": [...]}.
    """
    model = load(name, state, **options)
    optimizer = make_optimizer(model.parameters())
    size = len(steps[0])
    seen = {"losses": [], "grads": [], "params": [], "norms": []}
    for number, batches in enumerate(steps):
        if number % accumulate == 0:
            optimizer.zero_grad()
        losses = []
        for rank, batch in enumerate(batches):
            extra = arguments(number, rank) if arguments is not None else ()
            loss = loss_of(model(batch["x"], *extra), batch)
            losses.append(loss.item())
            (loss * (scale if scale is not None else 1 / size)).backward()
        seen["losses"].append(losses)
        if (number + 1) % accumulate:
            continue
        if clip is not None:
            seen["norms"].append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        seen["grads"].append(gradients(model.named_parameters()))
        optimizer.step()
        seen["params"].append(copied(model.named_parameters()))
    return seen


def per_rank(seen, size, keys=("losses", "grads", "params")):
    """What each rank returns: its own losses, and all of the rest."""
    return [
        {key: [losses[rank] for losses in seen[key]] if key == "losses" else seen[key] for key in keys}
        for rank in range(size)
    ]
