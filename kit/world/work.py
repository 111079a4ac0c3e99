"""What an asynchronous operation returns: results are written when it is waited for, never before."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import Work as _Work
from torch.futures import Future

from kit.world.connection import Connection
from kit.world.races import RaceWatch
from kit.world.sites import call_site
from kit.world.tensors import from_bytes, unnoticed_by_autograd

# Operations whose future was handed out and is not complete; Future.wait() looks here. One table a rank process.
_PENDING: dict[int, Work] = {}
# C++ may hold a work of which no Python reference is left; its methods are ours only while the Python object lives.
_IN_FLIGHT: dict[int, Work] = {}
_last_in_backward: Work | None = None
_OTHER_THREAD_S = 0.0005  # how long to leave another thread alone that is writing a result


class Work(_Work):
    """One operation in flight. `outputs` are overwritten at completion, in the order of the delivered bytes."""

    def __init__(
        self,
        connection: Connection,
        races: RaceWatch,
        seq: int,
        outputs: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
        segment: int | None,
        timeout: timedelta | None = None,
    ) -> None:
        super().__init__()
        self._connection = connection
        self._races = races
        self._seq = seq
        self._outputs = list(outputs)
        self._results = list(results)
        self._segment = segment
        self._timeout = timeout
        self._done = False
        self._source = -1
        self._error: RuntimeError | None = None
        self._future: Future[Any] | None = None
        _IN_FLIGHT[seq] = self

    def wait(self, timeout: timedelta | None = None) -> bool:
        while not self._done:
            # torch passes 0 or -1 ms where the program named no timeout.
            limits = [t.total_seconds() for t in (timeout, self._timeout) if t is not None and t > timedelta(0)]
            extra = {"timeout_s": limits[0]} if limits else {}
            _wait_any(self._connection, {self._seq: self}, **extra)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        """Asks the network, and delivers when the answer is yes: polling makes progress."""
        if not self._done:
            site, _ = call_site()
            header, payload, fds = self._connection.request({"op": "poll", "seq": self._seq, "site": site})
            if header.get("done"):
                self.deliver(header, payload, fds)
        return self._done

    def deliver(self, header: dict[str, Any], payload: bytearray, fds: list[int]) -> None:
        """Write the outputs; the network gives each operation out once, to one thread."""
        global _last_in_backward
        # DDP's reducer waits and then asks the same handle for its future.
        _last_in_backward = self if torch._C._current_graph_task_id() != -1 else None
        self._source = int(header.get("source", -1))
        try:
            self._write(header, payload, fds)
        finally:
            self._done = True  # not before: other threads may wait for the same operation
            self._outputs = []
            del _IN_FLIGHT[self._seq]
            _PENDING.pop(self._seq, None)
        if self._future is not None and not self._future.done():
            self._settle(self._future)

    def _write(self, header: dict[str, Any], payload: bytearray, fds: list[int]) -> None:
        raw: Any = payload
        if "result" in header:
            index, size = header["result"]
            raw = self._connection.segments.result(index, fds[0] if fds else None, size)
        self._races.arrive(self._seq)
        if "refused" in header:  # the operation is not defined: its outputs have no value
            self._error, self._outputs = RuntimeError(header["refused"]), []
        offset = 0
        for tensor in self._outputs:
            with unnoticed_by_autograd(tensor):
                tensor.detach().copy_(from_bytes(raw, tensor.dtype, tensor.shape, offset))
            offset += tensor.numel() * tensor.element_size()
        if "result" in header:
            self._connection.segments.have_read(header["result"][0])
        if self._segment is not None:
            self._connection.segments.give_back(self._segment)

    def _settle(self, future: Future[Any]) -> None:
        if self._error is None:
            future.set_result(self._results)
        else:
            future.set_exception(self._error)

    def get_future(self) -> Future[Any]:
        """Never blocks outside a backward pass; inside one, the wait is queued for the end of the pass."""
        if self._future is None:
            self._future = Future()
            if self._done:
                self._settle(self._future)
                return self._future
            _PENDING[self._seq] = self
            if torch._C._current_graph_task_id() != -1:
                if torch._C._current_autograd_node() is None and sys._getframe(1).f_code.co_name != "<module>":
                    self.wait()  # the last callback of a pass (DDP's static graph): nothing runs after it
                else:
                    torch.autograd.Variable._execution_engine.queue_callback(self.synchronize)
        return self._future

    def is_success(self) -> bool:
        return self._done and self._error is None

    def exception(self) -> RuntimeError | None:
        return self._error

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return self._results

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank


class Joined(_Work):
    """Several operations behind one handle (the coalesced collectives)."""

    def __init__(self, works: Sequence[Work]) -> None:
        super().__init__()
        self._works = list(works)

    def wait(self, timeout: timedelta | None = None) -> bool:
        return all(work.wait(timeout) for work in self._works)

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        answers = [work.is_completed() for work in self._works]  # ask all: each answer makes progress
        return all(answers)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def exception(self) -> None:
        return None

    def result(self) -> list[torch.Tensor]:
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(self.result())
        return future


def _wait_any(connection: Connection, works: dict[int, Work], **extra: Any) -> None:
    """Block until one of the works is delivered, by this thread or by another one."""
    site, _ = call_site()
    header, payload, fds = connection.request({"op": "wait", "seqs": list(works), "site": site, **extra})
    if "taken" in header:
        time.sleep(_OTHER_THREAD_S)
    else:
        works[header["seq"]].deliver(header, payload, fds)


def patch_future_wait() -> None:
    """Make `Future.wait()` wait for the operations that futures stand for, whichever comes first."""
    plain_wait = torch._C.Future.wait

    def wait(self: Any) -> Any:
        while not self.done() and _PENDING:
            works = {seq: work for seq, work in list(_PENDING.items()) if not work._done}
            if not works:
                break
            _wait_any(next(iter(works.values()))._connection, works)
        return plain_wait(self)

    torch._C.Future.wait = wait  # type: ignore[method-assign]
