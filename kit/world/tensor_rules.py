"""Which tensors an operation takes, and which of them it takes here though not everywhere."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kit.world.tensors import dtype_name, is_dense

_GLOO_DTYPES = frozenset((
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128,
    torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool,
))  # fmt: skip
# Gloo and the switchboard move these element by element, NCCL as the tensors lie in memory.
_IN_LOGICAL_ORDER = frozenset(("all_gather", "gather", "all_to_all", "reduce_scatter"))


def check(name: str, tensors: Sequence[torch.Tensor]) -> None:
    """Dense CPU tensors of one dtype; ValueError for anything else."""
    for tensor in tensors:
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            raise ValueError(f"{name}: a {tensor.layout} tensor on {tensor.device}; ranks here use dense CPU tensors")
        if tensor.numel() and not is_dense(tensor):
            raise ValueError(
                f"{name}: a tensor of shape {list(tensor.shape)} and strides {list(tensor.stride())} is not dense; "
                "NCCL refuses it and gloo's all_reduce gives wrong values for it: pass .contiguous() and copy back"
            )
    dtypes = list(dict.fromkeys(dtype_name(tensor.dtype) for tensor in tensors))
    if len(dtypes) > 1:
        raise ValueError(f"{name}: tensors of different dtypes: {', '.join(dtypes)}")


def check_contiguous(name: str, tensor: torch.Tensor) -> None:
    if not tensor.is_contiguous():
        raise ValueError(
            f"{name}: a tensor of shape {list(tensor.shape)} and strides {list(tensor.stride())} is not contiguous; "
            "gloo refuses it and NCCL sends memory as it lies: pass .contiguous()"
        )


def portability_note(name: str, sends: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> str | None:
    """Why the operation, which works here, does not work or gives something else elsewhere; None where it does."""
    tensors = (*sends, *outputs)
    if name in _IN_LOGICAL_ORDER and any(not tensor.is_contiguous() for tensor in tensors):
        return f"{name} of a tensor that is not contiguous: NCCL moves memory as it lies, so pass .contiguous()"
    if name not in ("send", "recv"):
        for tensor in tensors:
            if tensor.dtype not in _GLOO_DTYPES or (name == "gather" and tensor.is_complex()):
                return f"{name} of {dtype_name(tensor.dtype)} tensors is unsupported on gloo"
    lists = {"all_gather": (outputs,), "all_to_all": (sends, outputs)}.get(name, ())
    if any(len({tensor.shape for tensor in tensors}) > 1 for tensors in lists):
        return f"{name} of a list of tensors of different shapes is unsupported on gloo"
    return None
