"""Programs whose layers the deciding process evaluates."""

from __future__ import annotations

import torch
import torch.distributed as dist

from kit.world import inside


def scaled(inputs):
    """y = service(x) on every rank, twice; the second time from a tensor that travels in a segment."""
    small = inside.call("scale", inputs, "small")
    large = inside.call("scale", torch.full((300_000,), float(dist.get_rank() + 1)), "large")
    return {"small": small, "large": (large[0], large[-1], len(large))}


def between_operations():
    x = torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    inside.call("work", 0)
    work.wait()
    inside.call("work", 1)


def wrong_call(inputs):
    try:
        inside.call(inputs["service"], *inputs["arguments"])
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]
