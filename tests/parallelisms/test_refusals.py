"""What torch refuses on a CPU: the table in docs/world.md, and both transports refuse it in the same words."""

from __future__ import annotations

from tests.parallelisms import programs_refusals as programs
from tests.parallelisms.agreement import Case
from tests.parallelisms.conftest import launch

REFUSALS = {
    "bf16_hook": ("TypeError", "required CUDA 11+ and NCCL"),
    "mixed_precision_of_ddp": ("RuntimeError", "doesn't support events"),
    "sync_batch_norm": ("ValueError", "expected input tensor to be on GPU"),
    "overlapped_zero": ("RuntimeError", "Gloo backend using Overlapping DDP with ZeRO may meet hangs"),
    "fsdp1_without_device": ("RuntimeError", "needs a non-CPU accelerator device"),
    "fsdp1_offload": ("RuntimeError", "Cannot access accelerator device"),
    "fsdp1_sync_module_states": ("ValueError", "requires them to be on GPU"),
    "fsdp1_norm_of_float64": ("RuntimeError", "vector_norm"),
    "fsdp2_pinned_offload": ("RuntimeError", "Cannot access accelerator device"),
    "context_parallel_as_it_is": ("NotImplementedError", "does not have a sharding strategy"),
    "gradient_of_all_gather_base": ("RuntimeError", "Backend not supported"),
}


def test_torch_refuses_on_both_transports(zygote):
    cases = [Case(programs.tries, [name] * 2, (), label=name) for name in REFUSALS]
    for transport in ("switchboard", "gloo"):
        for seen in launch(zygote, 2, transport, cases).ranks:
            for (name, (kind, says)), raised in zip(REFUSALS.items(), seen, strict=True):
                assert raised is not None, f"{name} runs on {transport}: move it from the table to a test"
                assert raised[0] == kind and says in raised[1], (transport, name, raised)
