"""Every schedule of torch.distributed.pipelining equals the whole network on the whole batch."""

from __future__ import annotations

import pytest

from tests.parallelisms import programs_pipeline as programs
from tests.parallelisms.agreement import Case
from tests.parallelisms.models import copied, gradients, load, sgd
from tests.parallelisms.unsharded import initial_state, make_steps

ROWS_OF_A_MICROBATCH = 3


def pipeline_case(size, schedule, *, num_own=1, is_v=False, microbatches):
    """Gradients are those of the sum of the microbatches' losses, divided by their number."""
    num_stages = size * num_own
    widths = (7, *(6 + number % 5 for number in range(num_stages - 1)), 5)
    state = initial_state("mlp", widths=widths)
    rows = ROWS_OF_A_MICROBATCH * microbatches
    steps = [batches[0] for batches in make_steps(1, rows=lambda rank: rows)]
    model = load("mlp", state, widths=widths)
    optimizer = sgd(model.parameters())
    seen = {"losses": [], "outputs": [], "grads": [], "params": []}
    for batch in steps:
        optimizer.zero_grad()
        output = model(batch["x"])
        losses = [
            programs.squares(*pair)
            for pair in zip(output.chunk(microbatches), batch["target"].chunk(microbatches), strict=True)
        ]
        (sum(losses) / microbatches).backward()
        seen["losses"].append([loss.item() for loss in losses])
        seen["outputs"].append(output.detach())
        seen["grads"].append(gradients(model.named_parameters()))
        optimizer.step()
        seen["params"].append(copied(model.named_parameters()))
    owned = [programs.stage_numbers(rank, size, num_own, is_v) for rank in range(size)]
    given = {
        "schedule": schedule,
        "num_own": num_own,
        "is_v": is_v,
        "microbatches": microbatches,
        "widths": widths,
        "state": state,
        "steps": steps,
    }

    def traffic(rank):
        """Every step, activations go down and their gradients up, but between stages of one rank."""
        down = sum(widths[number + 1] for number in owned[rank] if number + 1 not in [*owned[rank], num_stages])
        up = sum(widths[number] for number in owned[rank] if number - 1 not in [*owned[rank], -1])
        return {"send float64": (down + up) * rows * 8 * len(steps)}

    expected = [part_of(seen, owned[rank], num_stages) for rank in range(size)]
    label = f"{schedule}, {microbatches} microbatches"
    return Case(programs.trains, [given] * size, expected, traffic=traffic, label=label)


def part_of(seen, owned, num_stages):
    """What the holder of these stages sees of the whole."""
    names = [f"{2 * number}.{kind}" for number in owned for kind in ("weight", "bias")]
    is_last = num_stages - 1 in owned
    return {
        "losses": seen["losses"] if is_last else [],
        "outputs": seen["outputs"] if is_last else [],
        **{key: [{name: whole[name] for name in names} for whole in seen[key]] for key in ("grads", "params")},
    }


@pytest.mark.parametrize("size", [2, 3])
def test_every_schedule_equals_the_whole_batch(agree, size):
    agree(
        size,
        [
            pipeline_case(size, "GPipe", microbatches=5),
            pipeline_case(size, "1F1B", microbatches=5),
            pipeline_case(size, "LoopedBFS", num_own=2, microbatches=2 * size),
            pipeline_case(size, "Interleaved1F1B", num_own=2, microbatches=2 * size),
            pipeline_case(size, "Interleaved1F1B", num_own=3, microbatches=size),
            pipeline_case(size, "InterleavedZeroBubble", num_own=2, microbatches=2 * size),
            pipeline_case(size, "ZBVZeroBubble", num_own=2, is_v=True, microbatches=2 * size + 1),
            pipeline_case(size, "DualPipeV", num_own=2, is_v=True, microbatches=2 * size + 1),
        ],
    )
