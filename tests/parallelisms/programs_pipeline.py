"""Every schedule of torch.distributed.pipelining over stages of different widths."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed import pipelining
from torch.distributed.pipelining.schedules import ScheduleDualPipeV

from tests.parallelisms.models import copied, gradients, load, sgd

SCHEDULES = {
    "GPipe": pipelining.ScheduleGPipe,
    "1F1B": pipelining.Schedule1F1B,
    "Interleaved1F1B": pipelining.ScheduleInterleaved1F1B,
    "LoopedBFS": pipelining.ScheduleLoopedBFS,
    "InterleavedZeroBubble": pipelining.ScheduleInterleavedZeroBubble,
    "ZBVZeroBubble": pipelining.ScheduleZBVZeroBubble,
    "DualPipeV": ScheduleDualPipeV,
}


def squares(output, target):
    return (output - target).square().sum() / 16


def stage_numbers(rank, size, num_own, is_v):
    """Which stages a rank holds: in a loop (0, 2 | 1, 3) or in a V (0, 3 | 1, 2)."""
    if is_v:
        return [rank, 2 * size - 1 - rank]
    return [rank + size * turn for turn in range(num_own)]


def trains(given):
    """given: {"schedule", "num_own": stages a rank, "is_v", "microbatches", "widths", "state", "steps"}.

    A stage is a linear layer with the tanh after it. Returns the losses of microbatches and outputs where the last
    stage is, and gradients and parameters of the own stages after each step.
    """
    rank, size = dist.get_rank(), dist.get_world_size()
    own = stage_numbers(rank, size, given["num_own"], given["is_v"])
    num_stages = size * given["num_own"]
    model = load("mlp", given["state"], widths=given["widths"])
    parts = [torch.nn.Sequential(*model[2 * number : 2 * number + 2]) for number in own]
    stages = [
        pipelining.PipelineStage(part, number, num_stages, torch.device("cpu"))
        for part, number in zip(parts, own, strict=True)
    ]
    schedule = SCHEDULES[given["schedule"]](
        stages if given["num_own"] > 1 else stages[0], given["microbatches"], loss_fn=squares
    )
    named = [
        (f"{2 * number + int(name.partition('.')[0])}.{name.partition('.')[2]}", param)
        for part, number in zip(parts, own, strict=True)
        for name, param in part.named_parameters()
    ]
    optimizer = sgd([param for _, param in named])
    seen = {"losses": [], "outputs": [], "grads": [], "params": []}
    for batch in given["steps"]:
        optimizer.zero_grad()
        is_last, losses = num_stages - 1 in own, []
        output = schedule.step(
            *([batch["x"]] if 0 in own else []),
            **({"target": batch["target"], "losses": losses} if is_last else {}),
        )
        if is_last:
            seen["losses"].append([loss.item() for loss in losses])
            seen["outputs"].append(output.detach().clone())
        seen["grads"].append(gradients(named))
        optimizer.step()
        seen["params"].append(copied(named))
    return seen
