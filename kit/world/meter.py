"""A meter inside a rank: bytes of the storages that are alive, by kind. Advisory, since the rank itself says it.

It sees every tensor that passes torch's dispatcher, as an argument or as a result, and follows its storage until that
dies or shrinks. Views, ties and detached aliases are one storage. A storage counts for what it holds: one that was
emptied by `resize_(0)` counts nothing, and one that `p.data = ...` left behind counts as long as autograd keeps it.
Scratch memory inside a kernel is not seen.

The idea of following storages by weak references is that of torch.distributed._tools.mem_tracker (PyTorch 2.13).
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass_type

from kit.world.connection import Connection

KINDS = ("parameter", "gradient", "optimizer_state", "other")


class _Current:
    meter: Meter | None = None


class Meter(TorchDispatchMode):
    """Follows the storages of one thread's tensors while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[int, int] = {}  # key of a storage -> its bytes in memory
        self._alive: dict[int, weakref.ref[torch.UntypedStorage]] = {}
        self._file_bytes = 0
        self._files: dict[int, int] = {}
        self._parameters: weakref.WeakValueDictionary[int, torch.nn.Parameter] = weakref.WeakValueDictionary()
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self.live_bytes = 0
        self.peak_bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        # A tensor made of tensors (DTensor) does its own work first; what it comes to passes here.
        if any(is_traceable_wrapper_subclass_type(kind) for kind in types):
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        for value in (args, (kwargs or {}).values(), (result,)):
            self._see(value)
        return result

    def _see(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                self.follow(value)
            elif isinstance(value, (list, tuple)):
                self._see(value)

    def follow(self, tensor: torch.Tensor) -> None:
        """Count the tensor's storage, if it has one and is not counted yet, at its size of now."""
        if type(tensor) is torch.nn.Parameter:
            self._parameters.setdefault(id(tensor), tensor)
        if tensor.layout is not torch.strided or tensor.is_meta:
            return
        with torch._C.DisableTorchFunctionSubclass():
            storage = tensor.untyped_storage()
        key = storage._cdata
        held = self._sizes.get(key)
        if held is None:
            if key in self._files or storage.device.type != "cpu":  # a fake tensor has shapes and no memory
                return
            self._alive[key] = weakref.ref(storage, functools.partial(self._died, key))
            if storage.filename is not None:
                self._files[key] = storage.nbytes()
                return
            held = 0
        self._set(key, held, storage.nbytes())

    def _set(self, key: int, held: int, nbytes: int) -> None:
        self._sizes[key] = nbytes
        if nbytes != held:
            self.live_bytes += nbytes - held
            self.peak_bytes = max(self.peak_bytes, self.live_bytes)

    def _died(self, key: int, _: object) -> None:
        self._alive.pop(key, None)
        self._files.pop(key, None)
        self.live_bytes -= self._sizes.pop(key, 0)

    def resized(self, storage: torch.UntypedStorage) -> None:
        """A storage that may be counted has changed its size."""
        held = self._sizes.get(storage._cdata)
        if held is not None:
            self._set(storage._cdata, held, storage.nbytes())

    def stepped(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        """Remember whose state to count as such."""
        self._optimizers.add(optimizer)

    # -- snapshots ------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The bytes of now, and the peak since the last snapshot."""
        left = dict(self._sizes)
        by_kind = {kind: sum(left.pop(key, 0) for key in keys) for kind, keys in self._keys_by_kind()}
        by_kind["other"] = sum(left.values())
        peak, self.peak_bytes = self.peak_bytes, self.live_bytes
        return {"live": self.live_bytes, "peak": peak, "file": sum(self._files.values()), "by_kind": by_kind}

    def _keys_by_kind(self) -> Iterator[tuple[str, set[int]]]:
        optimizers = list(self._optimizers)
        parameters = list(self._parameters.values())
        for optimizer in optimizers:
            parameters += [param for group in optimizer.param_groups for param in group["params"]]
        yield "parameter", _keys(parameters)
        yield "gradient", _keys(param.grad for param in parameters if param.grad is not None)
        yield (
            "optimizer_state",
            _keys(
                value for optimizer in optimizers for entry in optimizer.state.values() for value in _tensors_of(entry)
            ),
        )


def _tensors_of(entry: Any) -> list[torch.Tensor]:
    return [value for value in entry.values() if isinstance(value, torch.Tensor)] if isinstance(entry, dict) else []


def _keys(tensors: Iterable[torch.Tensor]) -> set[int]:
    keys: set[int] = set()
    for tensor in tensors:
        local = getattr(tensor, "_local_tensor", tensor)  # of a DTensor, what lies here
        if isinstance(local, torch.Tensor) and local.layout is torch.strided and not local.is_meta:
            keys.add(local.untyped_storage()._cdata)
    return keys


@contextlib.contextmanager
def watching(*, enabled: bool) -> Iterator[None]:
    """Meter everything that this thread computes in the meantime."""
    if not enabled:
        yield
        return
    meter = _Current.meter = Meter()
    plain: Callable[..., Any] = torch.UntypedStorage.resize_

    def resize_(storage: torch.UntypedStorage, size: int) -> Any:
        result = plain(storage, size)
        meter.resized(storage)
        return result

    torch.UntypedStorage.resize_ = resize_  # type: ignore[method-assign,assignment]
    handle = register_optimizer_step_post_hook(meter.stepped)
    try:
        with meter:
            yield
    finally:
        handle.remove()
        torch.UntypedStorage.resize_ = plain  # type: ignore[method-assign]
        _Current.meter = None


def tell(connection: Connection, label: str) -> None:
    """Send the deciding process what the meter says now; nothing where there is none."""
    if _Current.meter is not None:
        connection.post({"op": "meter", "label": label, **_Current.meter.snapshot()})
