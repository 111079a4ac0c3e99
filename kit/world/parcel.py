"""Trees on a rank's line to the deciding process, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kit.world.connection import Connection
from kit.world.tensors import DTYPES, copy_from
from kit.world.tree import decode, encode
from kit.world.wire import Buffer


def pack(connection: Connection, value: Any) -> tuple[dict[str, Any], Sequence[Buffer]]:
    """(fields of a header, payload) that carry a tree out of a rank; large ones go through a segment.

    Raises TreeError on what cannot leave the rank.
    """
    skeleton, tensors = encode(value)
    total = sum(len(blob) for _, blob in tensors)
    header: dict[str, Any] = {"value": skeleton, "tensors": [d for d, _ in tensors], "bytes": total}
    buffer, where = connection.room(total)
    if not where:
        return header, [blob for _, blob in tensors]
    offset = 0
    for _, blob in tensors:
        memoryview(buffer)[offset : offset + len(blob)] = blob
        offset += len(blob)
    return {**header, **where}, ()


def unpack(skeleton: Any, descriptors: Sequence[dict[str, Any]], payload: bytearray) -> Any:
    """A tree that the deciding process sent to a rank."""
    tensors: list[torch.Tensor] = []
    offset = 0
    for descriptor in descriptors:
        tensor = copy_from(payload, DTYPES[descriptor["dtype"]], descriptor["shape"], offset)
        offset += tensor.numel() * tensor.element_size()
        tensors.append(tensor)
    return decode(skeleton, tensors)
