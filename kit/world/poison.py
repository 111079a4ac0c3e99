"""What is written into a result before it has arrived, so that reading it too early cannot go unnoticed.

Floating dtypes get a signalling NaN whose payload is the operation's number. A quiet NaN would miss `x.add_(1)`, which
leaves its bits as they are; a signalling one turns quiet at the first arithmetic. The payload survives additions,
products and matrix products in float32 and float64, so a wrong result can name the operation that was read too early.
Integers get a sentinel; bool, whose every value is a legal one, is left alone.
"""

from __future__ import annotations

import torch

from kit.world.tensors import unnoticed_by_autograd

# dtype -> (integer view, signalling NaN without payload, payload bits that hold the operation's number)
_NANS: dict[torch.dtype, tuple[torch.dtype, int, int]] = {
    torch.float32: (torch.int32, 0x7FA00000, 21),
    torch.float64: (torch.int64, 0x7FF4000000000000, 32),
    torch.bfloat16: (torch.int16, 0x7FA0, 5),
    torch.float16: (torch.int16, 0x7D00, 8),
}
_QUIET = {torch.float32: 0x00400000, torch.float64: 0x0008000000000000}
_SENTINEL = 0x25  # repeated in every byte of an integer


def pattern(dtype: torch.dtype, number: int) -> tuple[torch.dtype, int] | None:
    """(integer dtype to look through, value of every element) for the poison of operation `number`."""
    if dtype in _NANS:
        view, nan, bits = _NANS[dtype]
        return view, nan | (number & ((1 << bits) - 1))
    if dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        return dtype, int.from_bytes(bytes([_SENTINEL]) * dtype.itemsize, "little")
    return None


def poison(tensor: torch.Tensor, number: int) -> bool:
    """Overwrite every element; False where the dtype has no poison. Autograd's version counter does not move."""
    filling = pattern(tensor.dtype, number)
    if filling is None or not tensor.numel():
        return False
    view, value = filling
    with unnoticed_by_autograd(tensor):
        tensor.detach().view(view).fill_(value)
    return True


def is_intact(tensor: torch.Tensor, number: int) -> bool:
    """Whether every element still is the poison of operation `number`."""
    filling = pattern(tensor.dtype, number)
    assert filling is not None
    view, value = filling
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        return bool((tensor.detach().view(view) == value).all())


def source_of(tensor: torch.Tensor) -> int | None:
    """The number of the operation whose poison (quiet by now, or untouched) is in a float32 or float64 tensor."""
    if tensor.dtype not in _QUIET or not tensor.numel():
        return None
    view, nan, bits = _NANS[tensor.dtype]
    flat = tensor.detach().contiguous().view(view).flatten()
    sign = ~torch.iinfo(view).min  # all bits but the sign
    marks = ((flat & sign) & ~_QUIET[tensor.dtype]) - nan
    found = marks[(marks > 0) & (marks < (1 << bits))]
    return int(found[0]) if found.numel() else None
