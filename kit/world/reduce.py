"""Reductions over raw bytes: folded in rank order, in the dtype on the wire, rounded at each addition.

A stacked sum would round bfloat16 once, and a program that has to sum in float32 could not be told from one that
need not. The fold goes block by block, so that a large buffer passes through the cache once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

_BLOCK_NUMEL = 1 << 16
Fold = Callable[[torch.Tensor, torch.Tensor], object]

_FOLDS: dict[str, Fold] = {
    "SUM": lambda out, other: out.add_(other),
    "AVG": lambda out, other: out.add_(other),
    "PRODUCT": lambda out, other: out.mul_(other),
    "MIN": lambda out, other: torch.minimum(out, other, out=out),
    "MAX": lambda out, other: torch.maximum(out, other, out=out),
    "BAND": lambda out, other: out.bitwise_and_(other),
    "BOR": lambda out, other: out.bitwise_or_(other),
    "BXOR": lambda out, other: out.bitwise_xor_(other),
}


def refusal(reduce_op: str, dtype: torch.dtype) -> str | None:
    """Why this reduction is not defined for the dtype; None where it is."""
    name = str(dtype).removeprefix("torch.")
    if reduce_op in ("BAND", "BOR", "BXOR") and (dtype.is_floating_point or dtype.is_complex):
        return f"ReduceOp.{reduce_op} is not defined for {name}"
    if reduce_op == "AVG" and not (dtype.is_floating_point or dtype.is_complex):
        return f"ReduceOp.AVG is not defined for {name}: the mean of integers is not an integer"
    if reduce_op in ("PRODUCT", "MIN", "MAX") and dtype.is_complex:
        return f"ReduceOp.{reduce_op} is not defined for {name}"
    if dtype.itemsize == 1 and dtype.is_floating_point:
        return f"{name} cannot be reduced; cast it first"
    if dtype in (torch.uint16, torch.uint32, torch.uint64):
        return f"{name} cannot be reduced"
    return None


def reduce_into(
    out: bytearray | memoryview,
    buffers: Sequence[memoryview],
    reduce_op: str,
    dtype: torch.dtype,
    numel: int,
    offset: int = 0,
) -> None:
    """out = fold of buffers[i][offset:], `numel` elements of dtype each."""
    if not numel:
        return
    with torch.no_grad():
        result = torch.frombuffer(out, dtype=dtype, count=numel)
        inputs = [torch.frombuffer(b, dtype=dtype, count=numel, offset=offset) for b in buffers]
        fold = _FOLDS[reduce_op]
        for start in range(0, numel, _BLOCK_NUMEL):
            block = result[start : start + _BLOCK_NUMEL]
            if reduce_op in ("SUM", "AVG") and len(inputs) > 1 and dtype is not torch.bool:
                torch.add(
                    inputs[0][start : start + _BLOCK_NUMEL],
                    inputs[1][start : start + _BLOCK_NUMEL],
                    out=block,
                )
                rest = inputs[2:]
            else:
                block.copy_(inputs[0][start : start + _BLOCK_NUMEL])
                rest = inputs[1:]
            for other in rest:
                fold(block, other[start : start + _BLOCK_NUMEL])
            if reduce_op == "AVG":
                block.div_(len(inputs))
