"""Tensors as raw bytes and back, without numpy and without ever touching the tensor's own storage.

`Tensor.numpy()` is never called: it makes a storage that cannot be resized any more, and FSDP resizes its storages.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch.autograd.grad_mode import _unsafe_preserve_version_counter

DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16,
        torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
        torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
        torch.bool, torch.complex64, torch.complex128,
    )
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def dtype_name(dtype: torch.dtype) -> str:
    """torch.float64 -> "float64"; a dtype that cannot be sent is a TypeError."""
    try:
        return _NAMES[dtype]
    except KeyError:
        raise TypeError(f"tensors of {dtype} cannot be sent between processes") from None


def copy_into(target: bytearray | memoryview, tensor: torch.Tensor, offset: int = 0) -> None:
    """Write the tensor's elements, in logical (row-major) order, into `target` from byte `offset`."""
    if tensor.numel() == 0:
        return
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        flat = torch.frombuffer(target, dtype=tensor.dtype, count=tensor.numel(), offset=offset)
        flat.view(tensor.shape).copy_(tensor.detach())


def to_bytes(tensor: torch.Tensor) -> bytearray:
    """A fresh copy of the tensor's elements in logical order."""
    raw = bytearray(tensor.numel() * tensor.element_size())
    copy_into(raw, tensor)
    return raw


def from_bytes(raw: bytearray | memoryview, dtype: torch.dtype, shape: Sequence[int], offset: int = 0) -> torch.Tensor:
    """A tensor over `raw` (shared, not copied); the caller has checked that `raw` is long enough."""
    numel = 1
    for length in shape:
        numel *= length
    if numel == 0:
        return torch.empty(tuple(shape), dtype=dtype)
    return torch.frombuffer(raw, dtype=dtype, count=numel, offset=offset).view(tuple(shape))


def copy_from(raw: bytearray | memoryview, dtype: torch.dtype, shape: Sequence[int], offset: int = 0) -> torch.Tensor:
    """A tensor of its own with the bytes at `offset`, which need not be aligned for the dtype.

    Byte by byte, since torch reads complex128 with instructions that fault on an odd address.
    """
    tensor = torch.empty(tuple(shape), dtype=dtype)
    if tensor.numel():
        flat = tensor.view(-1).view(torch.uint8)
        flat.copy_(torch.frombuffer(raw, dtype=torch.uint8, count=flat.numel(), offset=offset))
    return tensor


@contextlib.contextmanager
def unnoticed_by_autograd(tensor: torch.Tensor) -> Iterator[None]:
    """Inside, the tensor may be written without a trace in autograd, as gloo and NCCL write."""
    with torch._C.DisableTorchFunctionSubclass():
        if tensor.is_inference():  # counts no versions, and may be written in its own mode alone
            with torch.inference_mode():
                yield
        else:
            with torch.no_grad(), _unsafe_preserve_version_counter(tensor):
                yield


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill one block of memory in some order of the dimensions, without overlap."""
    if tensor.is_contiguous():
        return True
    expected = 1
    for length, stride in sorted(zip(tensor.shape, tensor.stride(), strict=True), key=lambda pair: pair[1]):
        if length == 1:
            continue
        if stride != expected:
            return False
        expected *= length
    return True


def memory_order(tensor: torch.Tensor) -> list[int]:
    """The dimensions of a dense tensor from slowest to fastest in memory: [1, 0] for `x.t()`; [] when row-major."""
    if tensor.is_contiguous():
        return []
    return sorted(
        (dim for dim, length in enumerate(tensor.shape) if length > 1), key=lambda dim: tensor.stride(dim), reverse=True
    )
