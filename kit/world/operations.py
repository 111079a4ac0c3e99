"""One operation of one rank as the deciding process holds it, read from a message with bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch

from kit.world.segments import Segment
from kit.world.tensors import DTYPES
from kit.world.wire import ProtocolError

COLLECTIVES = frozenset(
    (
        "all_reduce",
        "reduce",
        "broadcast",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "gather",
        "scatter",
        "barrier",
        "monitored_barrier",
    )
)
POINT_TO_POINT = frozenset(("send", "recv"))
REDUCE_OPS = frozenset(["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"])
_MAX_DIMS = 64
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorMeta:
    dtype: torch.dtype
    dtype_name: str
    shape: Shape
    numel: int
    order: tuple[int, ...] = ()  # dimensions from slowest to fastest in memory, where that is not row-major

    @property
    def nbytes(self) -> int:
        return self.numel * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype_name} {list(self.shape)}" + (f" (memory order {list(self.order)})" if self.order else "")


@dataclass(slots=True)
class Delivery:
    """Result bytes for one or more ranks: inline, or the first nbytes of a read-only segment."""

    data: bytes | bytearray | memoryview
    segment: Segment | None = None


@dataclass(slots=True, eq=False)
class Issued:
    """An operation from its issue to its delivery."""

    rank: int
    seq: int
    order: int
    clock: int
    name: str
    group: str
    members: tuple[int, ...]
    group_rank: int
    inputs: tuple[TensorMeta, ...]
    outputs: tuple[TensorMeta, ...]
    parts: tuple[int, ...]
    out_parts: tuple[int, ...]
    root: int | None
    peer: int | None
    tag: int
    reduce_op: str | None
    async_op: bool
    site: str
    by_program: bool
    data: memoryview = field(repr=False)
    index: int = 0  # position among the group's collectives, from 1
    matched: bool = False
    source: int = -1
    sent_bytes: int = 0
    full: tuple[int, int] = (0, 0)  # numel and bytes of the full buffer
    delivery: Delivery | None = field(default=None, repr=False)
    completed_order: int | None = None
    refusal: str | None = None
    given_up: bool = False  # a wait for it ran into its timeout
    meeting: tuple[int, int] | None = None

    @property
    def metas(self) -> tuple[TensorMeta, ...]:
        return self.inputs or self.outputs

    @property
    def in_numel(self) -> int:
        return sum(meta.numel for meta in self.inputs)

    @property
    def out_numel(self) -> int:
        return sum(meta.numel for meta in self.outputs)

    @property
    def dtype(self) -> torch.dtype | None:
        return self.metas[0].dtype if self.metas else None

    @property
    def global_peer(self) -> int | None:
        return None if self.peer is None or self.peer < 0 else self.members[self.peer]

    @property
    def global_root(self) -> int | None:
        return None if self.root is None else self.members[self.root]

    @property
    def group_label(self) -> str:
        return label(self.group, self.members)

    def tensor_text(self) -> str:
        metas = self.metas
        if not metas:
            return ""
        if len(metas) == 1:
            return str(metas[0])
        return (
            f"{metas[0].dtype_name} "
            + ", ".join(str(list(m.shape)) for m in metas[:4])
            + (f", ... ({len(metas)} tensors)" if len(metas) > 4 else "")
        )

    def title(self) -> str:
        """What the program called, as a person says it."""
        if self.name == "send":
            text = f"send to rank {self.global_peer}"
        elif self.name == "recv":
            text = "recv from any rank" if self.global_peer is None else f"recv from rank {self.global_peer}"
        else:
            return f"{self.name} #{self.index}"
        return text + (f" (tag {self.tag})" if self.tag else "")


def label(group: str, members: tuple[int, ...]) -> str:
    return "WORLD" if group.startswith("0:") else f"ranks {list(members)}"


def _integer(value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ProtocolError(f"a number out of its range: {str(value)[:40]}")
    return value


def _metas(items: Any) -> tuple[TensorMeta, ...]:
    metas = []
    for dtype_name, shape, *order in items:
        if len(shape) > _MAX_DIMS or len(order) > len(shape):
            raise ProtocolError("a tensor of too many dimensions")
        numel = 1
        for length in shape:
            numel *= _integer(length, 0, 1 << 48)
        _integer(numel, 0, 1 << 48)
        dims = tuple(_integer(dim, 0, _MAX_DIMS) for dim in order)
        metas.append(TensorMeta(DTYPES[dtype_name], dtype_name, tuple(shape), numel, dims))
    return tuple(metas)


def declared_bytes(header: dict[str, Any]) -> int:
    """Bytes of the input tensors that a header describes."""
    return sum(meta.nbytes for meta in _metas(header["in"]))


def members_of(group: str, rank: int, world_size: int) -> tuple[int, ...]:
    """The global ranks of a group's key ("name:0,2,3"), which must contain `rank`."""
    members = _members(group, world_size)
    if rank not in members:
        raise ProtocolError(f"rank {rank} spoke in a group that it is not in")
    return members


@lru_cache(maxsize=1024)  # every operation names its group's members, and groups are few
def _members(group: str, world_size: int) -> tuple[int, ...]:
    members = tuple(_integer(int(part), 0, world_size - 1) for part in group.rpartition(":")[2].split(","))
    if len(set(members)) != len(members):
        raise ProtocolError("a group that names a rank twice")
    return members


def read(header: dict[str, Any], payload: memoryview, rank: int, members: tuple[int, ...], order: int) -> Issued:
    """An Issued from a rank's header; ProtocolError, KeyError, TypeError or ValueError on anything malformed."""
    name = header["name"]
    if name not in COLLECTIVES and name not in POINT_TO_POINT:
        raise ProtocolError("an operation that does not exist")
    size = len(members)
    root, peer, reduce_op = header.get("root"), header.get("peer"), header.get("reduce_op")
    if root is not None:
        _integer(root, 0, size - 1)
    if peer is not None:
        _integer(peer, -1 if name == "recv" else 0, size - 1)
    if (name in POINT_TO_POINT) != (peer is not None):
        raise ProtocolError("a peer where none belongs, or none where one does")
    if (name in ("reduce", "broadcast", "gather", "scatter")) != (root is not None):
        raise ProtocolError("a root where none belongs, or none where one does")
    if reduce_op is not None and reduce_op not in REDUCE_OPS:
        raise ProtocolError("a reduction that does not exist")
    if (name in ("all_reduce", "reduce", "reduce_scatter")) != (reduce_op is not None):
        raise ProtocolError("a reduction where none belongs, or none where one does")
    inputs, outputs = _metas(header["in"]), _metas(header["out"])
    if sum(meta.nbytes for meta in inputs) != len(payload):
        raise ProtocolError("a tensor whose bytes do not have the length of its shape")
    if len({meta.dtype for meta in inputs + outputs}) > 1:
        raise ProtocolError("one operation with tensors of several dtypes")
    return Issued(
        rank=rank,
        seq=_integer(header["seq"], 1, 1 << 60),
        order=order,
        clock=order,
        name=name,
        group=header["group"],
        members=members,
        group_rank=members.index(rank),
        inputs=inputs,
        outputs=outputs,
        parts=_parts(header.get("parts"), inputs, size),
        out_parts=_parts(header.get("out_parts"), outputs, size),
        root=root,
        peer=peer,
        tag=_integer(header.get("tag", 0), -(1 << 62), 1 << 62),
        reduce_op=reduce_op,
        async_op=bool(header["async"]),
        site=str(header["site"])[:200],
        by_program=bool(header["program"]),
        data=payload,
    )


def _parts(parts: Any, metas: tuple[TensorMeta, ...], size: int) -> tuple[int, ...]:
    if not parts:
        return ()
    if len(parts) != size or sum(_integer(p, 0, 1 << 48) for p in parts) != sum(m.numel for m in metas):
        raise ProtocolError("parts that do not make up their tensor")
    return tuple(parts)
