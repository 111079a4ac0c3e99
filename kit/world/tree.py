"""Trees of plain values and tensors as a JSON skeleton and raw bytes: nothing is ever pickled.

A tree is None, bool, int, float, str, bytes, torch.dtype, a dense torch.Tensor, or a list, tuple or dict of trees.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

import torch

from kit.world.tensors import DTYPES, copy_from, dtype_name, to_bytes

MAX_DEPTH = 64
MAX_NODES = 1_000_000
Blob = bytearray | memoryview


class TreeError(ValueError):
    """A value that cannot cross between processes, or a skeleton that does not describe one."""


def encode(value: Any) -> tuple[Any, list[tuple[dict[str, Any], Blob]]]:
    """(skeleton, [(descriptor, bytes) of each tensor]). Tensors are copied; strides are lost, values are not."""
    tensors: list[tuple[dict[str, Any], Blob]] = []
    return _encode(value, tensors, "value", 0), tensors


def _encode(value: Any, tensors: list[tuple[dict[str, Any], Blob]], path: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise TreeError(f"{path} is nested more than {MAX_DEPTH} levels deep")
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -(2**53) < value < 2**53 else {"i": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}
    if isinstance(value, torch.Tensor):
        return {"t": _encode_tensor(value, tensors, path)}
    if kind is list or kind is tuple or kind is torch.Size:
        items = [_encode(v, tensors, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
        return {"l" if kind is list else "u": items}
    if isinstance(value, dict):
        pairs = []
        for key, item in value.items():
            if type(key) not in (str, int, bool, tuple):
                raise TreeError(f"{path} has a key of type {type(key).__name__}; use str, int or tuple keys")
            code = _encode(key, tensors, path, depth + 1)
            pairs.append([code, _encode(item, tensors, f"{path}[{key!r}]", depth + 1)])
        return {"d": pairs}
    if kind is bytes:
        return {"b": base64.b64encode(value).decode()}
    if isinstance(value, torch.dtype):
        return {"y": dtype_name(value)}
    if isinstance(value, (bool, int, float, str)):
        return _encode({int: int, float: float, str: str, bool: bool}[_base(kind)](value), tensors, path, depth)
    name = f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__
    raise TreeError(f"{path} is a {name}; use tensors, numbers, str, bytes, None, lists, tuples and dicts")


def _base(kind: type) -> type:
    return next(base for base in (bool, int, float, str) if issubclass(kind, base))


def _encode_tensor(value: torch.Tensor, tensors: list[tuple[dict[str, Any], Blob]], path: str) -> int:
    if type(value) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        hint = "; return .to_local() or .full_tensor()" if type(value).__name__ == "DTensor" else ""
        raise TreeError(f"{path} is a {type(value).__name__}, not a plain tensor{hint}")
    if value.layout is not torch.strided or value.is_quantized or value.device.type != "cpu":
        raise TreeError(f"{path} is a tensor of layout {value.layout} on {value.device}; use dense CPU tensors")
    descriptor = {"dtype": dtype_name(value.dtype), "shape": list(value.shape)}
    tensors.append((descriptor, to_bytes(value)))
    return len(tensors) - 1


def read_tensors(raw: bytearray, descriptors: list[dict[str, Any]]) -> list[torch.Tensor]:
    """The tensors that lie in `raw` one after another, copied; TreeError where they do not make up its bytes."""
    tensors: list[torch.Tensor] = []
    offset = 0
    for descriptor in descriptors:
        dtype, shape = DTYPES[descriptor["dtype"]], descriptor["shape"]
        numel = 1
        for length in shape:
            if type(length) is not int or length < 0:
                raise TreeError("a shape that is none")
            numel *= length
        if offset + numel * dtype.itemsize > len(raw):
            raise TreeError("a tensor longer than its bytes")
        tensors.append(copy_from(raw, dtype, shape, offset))
        offset += numel * dtype.itemsize
    if offset != len(raw):
        raise TreeError("bytes that belong to no tensor")
    return tensors


def decode(skeleton: Any, tensors: list[torch.Tensor]) -> Any:
    """The tree of a skeleton; raises TreeError on anything that `encode` would not have made."""
    budget = [MAX_NODES]
    return _decode(skeleton, tensors, 0, budget)


def _decode(node: Any, tensors: list[torch.Tensor], depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if depth > MAX_DEPTH * 2 or budget[0] < 0:
        raise TreeError("the value is too deep or too large")
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if not isinstance(node, dict) or len(node) != 1:
        raise TreeError("not the skeleton of a value")
    ((tag, body),) = node.items()
    try:
        if tag in ("l", "u"):
            items = [_decode(item, tensors, depth + 1, budget) for item in body]
            return items if tag == "l" else tuple(items)
        if tag == "d":
            return {_key(k, tensors, depth, budget): _decode(v, tensors, depth + 1, budget) for k, v in body}
        return _LEAVES[tag](body, tensors)
    except TreeError:
        raise
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise TreeError(f"not the skeleton of a value: {error}") from None


def _key(node: Any, tensors: list[torch.Tensor], depth: int, budget: list[int]) -> Any:
    key = _decode(node, tensors, depth + 1, budget)
    hash(key)
    return key


def _tensor(index: Any, tensors: list[torch.Tensor]) -> torch.Tensor:
    if type(index) is not int or index < 0:
        raise TreeError("not a tensor's index")
    return tensors[index]


_LEAVES: dict[str, Callable[[Any, list[torch.Tensor]], Any]] = {
    "i": lambda body, _: int(str(body)[:400]),
    "f": lambda body, _: float(body),
    "b": lambda body, _: base64.b64decode(body, validate=True),
    "y": lambda body, _: DTYPES[body],
    "t": _tensor,
}
