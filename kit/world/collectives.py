"""What each collective means: whether the ranks' calls fit together, and what every rank receives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kit.world.costs import sent_bytes
from kit.world.operations import Delivery, Issued, TensorMeta
from kit.world.reduce import reduce_into, refusal

_FOLD_WHOLE_BYTES = 1 << 20  # up to here one fold and a copy are cheaper than a fold for each part
Allocate = Callable[[int, int], Delivery]  # (bytes, number of ranks that will read it)


def misfit(ops: Sequence[Issued]) -> str | None:
    """Why these calls, one of each member in group order (some may be missing), do not fit together."""
    for title, key in (
        ("operation", lambda op: op.name),
        ("reduction", lambda op: op.reduce_op),
        ("root", lambda op: op.global_root),
        ("dtype", lambda op: op.metas[0].dtype_name if op.metas else None),
    ):
        values = {key(op) for op in ops} - {None}
        if len(values) > 1:
            return f"different {title}s: " + _side_by_side(ops, key)
    return _misfit_of_sizes(ops) or _misfit_of_layouts(ops)


def _side_by_side(ops: Sequence[Issued], key: Callable[[Issued], object]) -> str:
    """ "rank 0 and 2: SUM, rank 1: MAX"."""
    by_value: dict[str, list[int]] = {}
    for op in ops:
        by_value.setdefault(str(key(op)), []).append(op.rank)
    return ", ".join(
        f"{'rank' if len(ranks) == 1 else 'ranks'} {_ranks(ranks)}: {value}" for value, ranks in by_value.items()
    )


def _ranks(ranks: Sequence[int]) -> str:
    shown = [str(r) for r in ranks[:6]] + (["..."] if len(ranks) > 6 else [])
    return ", ".join(shown)


def _misfit_of_sizes(ops: Sequence[Issued]) -> str | None:
    name = ops[0].name
    if name in ("all_reduce", "reduce", "broadcast"):
        if len({tuple(m.numel for m in op.metas) for op in ops}) > 1:
            return "different shapes: " + _side_by_side(ops, lambda op: op.tensor_text())
    elif name == "reduce_scatter":
        if len({op.parts for op in ops}) > 1:
            return "different parts: " + _side_by_side(ops, lambda op: f"{list(op.parts)} elements")
        for op in ops:
            if op.out_numel != op.parts[op.group_rank]:
                return f"rank {op.rank} receives {op.out_numel} elements where its part has {op.parts[op.group_rank]}"
    elif name == "all_gather":
        if not all(op.out_parts for op in ops) and len({op.in_numel for op in ops}) > 1:
            return "different shapes: " + _side_by_side(ops, lambda op: str(op.inputs[0]))
        for op in ops:
            for other in ops:
                if op.out_parts and op.out_parts[other.group_rank] != other.in_numel:
                    return (
                        f"rank {other.rank} sends {other.in_numel} elements, rank {op.rank} has room for "
                        f"{op.out_parts[other.group_rank]} of them"
                    )
    elif name == "all_to_all":
        for op in ops:
            for other in ops:
                if op.parts[other.group_rank] != other.out_parts[op.group_rank]:
                    return (
                        f"rank {op.rank} sends {op.parts[other.group_rank]} elements to rank {other.rank}, which "
                        f"expects {other.out_parts[op.group_rank]}"
                    )
    elif name in ("gather", "scatter"):
        return _misfit_at_root(ops)
    return None


def _misfit_at_root(ops: Sequence[Issued]) -> str | None:
    root = next((op for op in ops if op.group_rank == op.root), None)
    if root is None:
        return None
    parts = root.out_parts if root.name == "gather" else root.parts
    for op in ops:
        own = op.in_numel if op.name == "gather" else op.out_numel
        if parts[op.group_rank] != own:
            verb = "sends" if op.name == "gather" else "expects"
            return (
                f"rank {op.rank} {verb} {own} elements, the root (rank {root.rank}) has {parts[op.group_rank]} for it"
            )
    return None


def _misfit_of_layouts(ops: Sequence[Issued]) -> str | None:
    """Tensors that gloo and NCCL move as they lie in memory must lie alike, or elements change places."""
    for metas in _move_as_they_lie(ops):
        if any(meta.order for meta in metas) and len({(meta.shape, meta.order) for meta in metas}) > 1:
            texts = list(dict.fromkeys(str(meta) for meta in metas))
            return f"different memory layouts: {', '.join(texts[:4])}: elements would change places; use .contiguous()"
    return None


def _move_as_they_lie(ops: Sequence[Issued]) -> list[list[TensorMeta]]:
    name = ops[0].name
    if name in ("all_reduce", "reduce", "broadcast"):
        return [list(metas) for metas in zip(*(op.metas for op in ops), strict=False)]
    if name == "reduce_scatter" and len(ops) > 1 and all(len(op.inputs) == len(ops) for op in ops):
        return [[op.inputs[i] for op in ops] + list(ops[i].outputs) for i in range(len(ops))]
    if name == "scatter":
        parts = next((op.inputs for op in ops if op.group_rank == op.root), ())
        return [[part, *op.outputs] for part, op in zip(parts, ops, strict=False)]
    return []


def undefined(op: Issued) -> str | None:
    """Why the reduction of this call is not defined for its dtype."""
    if op.reduce_op is None or op.dtype is None:
        return None
    return refusal(op.reduce_op, op.dtype)


def run(ops: Sequence[Issued], allocate: Allocate) -> None:
    """Do the collective: set delivery, full and sent_bytes of each op. The ops fit together."""
    _RUN[ops[0].name](ops, allocate)
    for op in ops:
        op.matched = True
        op.data = memoryview(b"")


def _charge(ops: Sequence[Issued], parts: Sequence[int], numel: int) -> None:
    """Set the full buffer and the sent bytes of calls with the same parts, in elements."""
    item = ops[0].dtype.itemsize if ops[0].dtype is not None else 0
    parts_bytes = [part * item for part in parts]
    for op in ops:
        op.full = (numel, numel * item)
        op.sent_bytes = sent_bytes(op.name, op.group_rank, op.root, parts_bytes)


def _all_reduce(ops: Sequence[Issued], allocate: Allocate) -> None:
    first = ops[0]
    assert first.reduce_op is not None and first.dtype is not None
    numel = first.in_numel
    readers = [op for op in ops if op.name == "all_reduce" or op.group_rank == op.root]
    delivery = allocate(len(first.data), len(readers))
    reduce_into(_writable(delivery), [op.data for op in ops], first.reduce_op, first.dtype, numel)
    for op in readers:
        op.delivery = delivery
    _charge(ops, [numel] * len(ops), numel)


def _broadcast(ops: Sequence[Issued], allocate: Allocate) -> None:
    root = next(op for op in ops if op.group_rank == op.root)
    delivery = allocate(len(root.data), len(ops) - 1)
    _writable(delivery)[:] = root.data
    for op in ops:
        if op is not root:
            op.delivery = delivery
    _charge(ops, [root.in_numel] * len(ops), root.in_numel)


def _all_gather(ops: Sequence[Issued], allocate: Allocate) -> None:
    readers = [op for op in ops if op.name == "all_gather" or op.group_rank == op.root]
    delivery = allocate(sum(len(op.data) for op in ops), len(readers))
    target, offset = _writable(delivery), 0
    for op in ops:
        target[offset : offset + len(op.data)] = op.data
        offset += len(op.data)
    for op in readers:
        op.delivery = delivery
    parts = [op.in_numel for op in ops]
    _charge(ops, parts, sum(parts))


def _reduce_scatter(ops: Sequence[Issued], allocate: Allocate) -> None:
    first = ops[0]
    assert first.reduce_op is not None and first.dtype is not None
    item, numel = first.dtype.itemsize, sum(first.parts)
    data = [op.data for op in ops]
    whole: memoryview | None = None
    if numel * item <= _FOLD_WHOLE_BYTES:
        whole = memoryview(bytearray(numel * item))
        reduce_into(whole, data, first.reduce_op, first.dtype, numel)
    offset = 0
    for op in ops:
        part = first.parts[op.group_rank]
        op.delivery = allocate(part * item, 1)
        target = _writable(op.delivery)
        if whole is not None:
            target[:] = whole[offset : offset + part * item]
        else:
            reduce_into(target, data, first.reduce_op, first.dtype, part, offset)
        offset += part * item
    _charge(ops, first.parts, numel)


def _all_to_all(ops: Sequence[Issued], allocate: Allocate) -> None:
    item = ops[0].dtype.itemsize if ops[0].dtype is not None else 0
    starts = [0] * len(ops)  # of the next part, in each call's input
    for op in ops:
        op.delivery = allocate(sum(op.out_parts) * item, 1)
        target, offset = _writable(op.delivery), 0
        for other in ops:
            start, count = starts[other.group_rank], other.parts[op.group_rank] * item
            target[offset : offset + count] = other.data[start : start + count]
            offset += count
            starts[other.group_rank] += count
    for op in ops:
        _charge([op], op.parts, op.in_numel)


def _scatter(ops: Sequence[Issued], allocate: Allocate) -> None:
    root = next(op for op in ops if op.group_rank == op.root)
    item, offset = root.dtype.itemsize if root.dtype is not None else 0, 0
    for op in ops:
        count = root.parts[op.group_rank] * item
        op.delivery = allocate(count, 1)
        _writable(op.delivery)[:] = root.data[offset : offset + count]
        offset += count
    _charge(ops, root.parts, root.in_numel)


def _barrier(ops: Sequence[Issued], allocate: Allocate) -> None:
    for op in ops:
        op.delivery = None


def deliver_message(send: Issued, recv: Issued, allocate: Allocate) -> None:
    """Complete a matched send and receive, whose sizes and dtypes agree."""
    recv.delivery = allocate(len(send.data), 1)
    _writable(recv.delivery)[:] = send.data
    recv.source = send.group_rank
    for op in (send, recv):
        op.full = (send.in_numel, len(send.data))
        op.sent_bytes = len(send.data) if op is send else 0
        op.matched = True
    send.data = memoryview(b"")


def _writable(delivery: Delivery) -> memoryview:
    return memoryview(delivery.data)


_RUN: dict[str, Callable[[Sequence[Issued], Allocate], None]] = {
    "all_reduce": _all_reduce,
    "reduce": _all_reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "scatter": _scatter,
    "barrier": _barrier,
    "monitored_barrier": _barrier,
}
