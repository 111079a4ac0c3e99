"""Inside a rank: counts the floating-point operations that really ran, forward and backward, and says so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from kit.world.connection import Connection


@contextlib.contextmanager
def counted(connection: Connection, *, wanted: bool) -> Iterator[None]:
    """Post what runs in here as `compute` events, each before the next message of this rank."""
    if not wanted:
        yield
        return
    mode = _Count()
    connection.owed = mode.take
    with mode:
        yield


class _Count(TorchDispatchMode):
    """Sees every operation below autograd; torch's own formulas count it (a multiplication and an addition are two)."""

    def __init__(self) -> None:
        super().__init__()
        self._flops: dict[str, int] = {}

    def take(self) -> list[dict[str, Any]]:
        """What has run since this was last asked for, by dtype."""
        flops, self._flops = self._flops, {}
        return [{"op": "compute", "flops": n, "dtype": dtype, "what": "compute"} for dtype, n in flops.items()]

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if any(issubclass(kind, FakeTensor) for kind in types):  # only shapes are worked out
            return func(*args, **kwargs)
        if types:  # a DTensor and its like: what it does to its local tensors comes by here again
            return NotImplemented
        formula = flop_registry.get(func._overloadpacket)
        if formula is None:
            with self:  # outside of autograd, composite operations come whole
                out = func.decompose(*args, **kwargs)
            return func(*args, **kwargs) if out is NotImplemented else out
        out = func(*args, **kwargs)
        operand = next((a for a in args if isinstance(a, torch.Tensor)), None)
        if operand is None or operand.device.type != "meta":
            dtype = str(operand.dtype).removeprefix("torch.") if operand is not None else ""
            self._flops[dtype] = self._flops.get(dtype, 0) + int(formula(*args, **kwargs, out_val=out))
        return out
