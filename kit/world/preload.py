"""What a zygote imports once, so that no rank has to."""

from __future__ import annotations

import contextlib
import importlib
import os
import warnings
from collections.abc import Sequence

PRELOAD = (
    "torch",
    "torch._dynamo",
    "torch.distributed",
    "torch.distributed.checkpoint",
    "torch.distributed.device_mesh",
    "torch.distributed.fsdp",
    "torch.distributed.nn",
    "torch.distributed.optim",
    "torch.distributed.pipelining",
    "torch.distributed.tensor",
    "torch.distributed.tensor.parallel",
    "torch.nn.parallel",
    "kit.world.rank",
)


def preload(modules: Sequence[str] = ()) -> None:
    """Import everything that a rank may need; torch is left with one thread."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    warnings.filterwarnings("ignore", message="The given buffer is not writable")
    warnings.filterwarnings("ignore", message="`torch.distributed.*is deprecated", category=FutureWarning)
    for name in (*PRELOAD, *modules):
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    with contextlib.suppress(RuntimeError):
        torch.set_num_interop_threads(1)
    from kit.world import binding

    binding.register_backend()
    # init_process_group empties these caches: in every rank, and every page that it touches is copied there.
    torch._dynamo.trace_rules.clear_lru_cache()
