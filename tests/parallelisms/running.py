"""What a rank does: the cases of a family one after another, each after a barrier at which the trace is cut."""

from __future__ import annotations

import importlib

import torch.distributed as dist


def run_cases(cases):
    """cases: [(module, function, label, its input on this rank)]; returns what each function returned."""
    seen = []
    for module, name, label, given in cases:
        dist.barrier()
        print(name, label, flush=True)
        seen.append(getattr(importlib.import_module(module), name)(given))
    return seen
