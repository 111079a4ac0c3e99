"""Buffers of operations in flight, watched inside the rank: nobody may touch them before the wait.

At issue the input has been copied and the output is poisoned. At completion every byte of both must be what it was just
after issue; so an input that aliases its own output is legal. Buffers that overlap another operation in flight, one of
which writes, are a race already at issue. What is found is told to the deciding process with both call sites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kit.world.connection import Connection
from kit.world.poison import is_intact, poison
from kit.world.sites import call_site


@dataclass(slots=True)
class Buffer:
    """A tensor of an operation in flight. `expected` are its bytes after issue; None means the operation's poison."""

    tensor: torch.Tensor
    expected: bytearray | memoryview | None
    offset: int
    is_output: bool

    def span(self) -> tuple[int, int]:
        start = self.tensor.data_ptr()
        return start, start + self.tensor.numel() * self.tensor.element_size()


@dataclass(slots=True)
class Flight:
    """One operation in flight."""

    number: int
    title: str
    site: str
    by_program: bool
    buffers: list[Buffer]


class RaceWatch:
    """All operations in flight of one rank. Off (`enabled=False`) it does nothing."""

    def __init__(self, connection: Connection, *, enabled: bool) -> None:
        self._connection = connection
        self._flights: dict[int, Flight] = {}
        self._told: set[tuple[str, str]] = set()
        self.enabled = enabled

    def depart(
        self,
        number: int,
        title: str,
        site: str,
        by_program: bool,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        sent: bytearray | memoryview,
    ) -> None:
        """Begin to watch operation `number`; `sent` holds the inputs' bytes one after another."""
        if not self.enabled:
            return
        outputs = [t for t in outputs if t.numel()]
        written = [(t.data_ptr(), t.data_ptr() + t.numel() * t.element_size()) for t in outputs]
        buffers = [Buffer(t, None, 0, True) for t in outputs if poison(t, number)]
        offset = 0
        for tensor in inputs:
            start = tensor.data_ptr()
            end = start + tensor.numel() * tensor.element_size()
            if tensor.numel() and not any(start < high and low < end for low, high in written):
                buffers.append(Buffer(tensor, sent, offset, False))
            offset += end - start
        flight = Flight(number, title, site, by_program, buffers)
        self._check_overlap(flight)
        self._flights[number] = flight

    def _check_overlap(self, flight: Flight) -> None:
        for other in list(self._flights.values()):
            for mine in flight.buffers:
                for theirs in other.buffers:
                    if not (mine.is_output or theirs.is_output) or _shrunk(theirs.tensor):
                        continue
                    (a, b), (c, d) = mine.span(), theirs.span()
                    if a < d and c < b:
                        self._tell(
                            f"{flight.title} ({flight.site}) uses memory of {other.title} ({other.site}), "
                            "which is in flight and not waited for",
                            flight.site,
                        )

    def arrive(self, number: int) -> None:
        """The operation completes: compare, before its result is written."""
        flight = self._flights.pop(number, None)
        if flight is not None:
            site, _ = call_site()
            self._compare(flight, f"and its wait ({site})" if site else "and its wait")

    def end(self) -> None:
        """The program is over: what was never waited for must still be as it was."""
        for flight in list(self._flights.values()):
            if flight.by_program:
                self._compare(flight, "and the end of the program, which never waits for it")
        self._flights.clear()

    def _compare(self, flight: Flight, until: str) -> None:
        for buffer in flight.buffers:
            which = "output" if buffer.is_output else "input"
            if _shrunk(buffer.tensor):
                problem = f"the {which} of {flight.title} was freed or resized"
            elif not _unchanged(buffer, flight.number):
                problem = f"the {which} of {flight.title} was written"
            else:
                continue
            self._tell(f"{problem} in flight, between its issue ({flight.site}) {until}", flight.site)

    def _tell(self, message: str, site: str) -> None:
        if (message, site) not in self._told and len(self._told) < 20:
            self._told.add((message, site))
            note: dict[str, Any] = {"op": "note", "kind": "race", "message": message, "site": site}
            self._connection.post(note)


def _shrunk(tensor: torch.Tensor) -> bool:
    """Whether the storage has become too small for the tensor; then it must not be touched."""
    with torch._C.DisableTorchFunctionSubclass():
        if not tensor.numel():
            return False
        last = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
        needed = (tensor.storage_offset() + last + 1) * tensor.element_size()
        return tensor.untyped_storage().nbytes() < needed


def _unchanged(buffer: Buffer, number: int) -> bool:
    if buffer.expected is None:
        return is_intact(buffer.tensor, number)
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        tensor = buffer.tensor.detach().contiguous()
        count = tensor.numel() * tensor.element_size()
        sent = torch.frombuffer(buffer.expected, dtype=torch.uint8, count=count, offset=buffer.offset)
        return torch.equal(tensor.reshape(-1).view(torch.uint8), sent)
