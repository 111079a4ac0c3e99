"""What a program may call inside a rank of a world, beside torch.distributed.

All of it is silent under a transport that is not seen (gloo) and outside of any world, so that a program which calls
it runs everywhere.
"""

from __future__ import annotations

import math
from typing import Any

from kit.errors import KitError
from kit.world import binding, meter
from kit.world.connection import Connection
from kit.world.heap import settle
from kit.world.limits import shown_memory
from kit.world.parcel import pack, unpack
from kit.world.sites import call_site


def _watched() -> Connection | None:
    """The line to the deciding process, where that process keeps a record."""
    return binding.watched_connection()


def compute(seconds: float, what: str = "compute", *, label: str = "", microbatch: int | None = None) -> None:
    """Declare that this rank now computes for `seconds` of virtual time.

    what: torch's alphabet of pipelining: "F" forward, "B" whole backward, "I" gradient of the input alone, "W" gradient
    of the weights alone (the zero-bubble paper writes B for I); or any other word.
    Raises KitError on a negative or endless time. Advisory in a grade: it is the rank that says it.
    """
    seconds = float(seconds)
    if not (math.isfinite(seconds) and 0 <= seconds <= 1e12):
        raise KitError(f"compute({seconds!r}): not a number of seconds from 0 to 1e12")
    connection = _watched()
    if connection is not None:
        header: dict[str, Any] = {"op": "compute", "seconds": seconds, "what": what, "label": label}
        connection.post({**header, "microbatch": microbatch, "site": call_site()[0]})


def count(flops: int, what: str = "compute", *, label: str = "", dtype: str = "float32") -> None:
    """Declare that this rank now computes `flops` floating-point operations; a hardware profile prices them.

    dtype: by torch's name; the price is the profile's peak for it.
    """
    connection = _watched()
    if connection is not None:
        header: dict[str, Any] = {"op": "compute", "flops": int(flops), "dtype": dtype, "what": what, "label": label}
        connection.post({**header, "site": call_site()[0]})


def mark(name: str) -> None:
    """Name this moment of the rank's virtual time: a step's begin, for instance. See `Timeline.between`."""
    connection = _watched()
    if connection is not None:
        connection.post({"op": "mark", "what": str(name), "site": call_site()[0]})
        meter.tell(connection, str(name))


def hold(label: str) -> None:
    """Stand still while the deciding process counts this rank's memory: `Result.memory` has what it read, by `label`.

    Garbage is collected first, and freed memory given back. Compare a hold with an earlier one, after a warm step:
    what torch and Python make once is then part of both. Raises ValueError for a label that this rank has used.
    """
    connection = _watched()
    if connection is not None:
        settle()
        meter.tell(connection, str(label))
        with shown_memory():
            connection.request({"op": "hold", "label": str(label)})


def call(service: str, *arguments: Any) -> Any:
    """Have the deciding process evaluate one of the world's services: `World(services={name: function})`.

    arguments, result: trees of plain values and tensors; tensors come back without a gradient. Works under every
    transport. Raises what the service raised, and RuntimeError outside of a world.
    """
    connection = binding.connection()
    if connection is None:
        raise RuntimeError(f"inside.call({service!r}): no world is running this program")
    fields, blobs = pack(connection, list(arguments))
    header = {"op": "call", "service": service, "site": call_site()[0], **fields}
    reply, payload, _ = connection.request(header, blobs)
    if "segment" in fields:
        connection.segments.give_back(fields["segment"])
    return unpack(reply["value"], reply["tensors"], payload)
