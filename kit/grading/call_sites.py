"""Lines that may be at fault where values are wrong: what ranks said about themselves, so advice and no proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from kit.world import Operation, Result

_POINT_TO_POINT = ("send", "recv")
_TELLING_FINDINGS = ("unwaited", "incomplete", "autograd", "non_member")


def suspicions(result: Result) -> tuple[str, ...]:
    """Sentences about a run whose values are wrong: swapped collectives, and findings that may explain it."""
    swapped = suspect_swap(result.trace.operations())
    early = early_read(result)
    told = [str(finding) for finding in result.findings if finding.kind in _TELLING_FINDINGS]
    return tuple([sentence for sentence in (early, swapped) if sentence] + list(dict.fromkeys(told))[:3])


def early_read(result: Result) -> str:
    """The operation whose mark a returned tensor carries: its result was used before it had been waited for."""
    from kit.world.poison import source_of

    for rank, value in enumerate(result.ranks):
        operations = result.trace.operations(rank)
        for tensor in _tensors(value):
            number = source_of(tensor)
            if number is not None and number <= len(operations):
                op = operations[number - 1]
                return (
                    f"rank {rank}: the result of {op.name} ({op.site}) was used before it was waited for; "
                    "its mark is in the values"
                )
    return ""


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if hasattr(value, "untyped_storage"):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def suspect_swap(operations: Sequence[Operation]) -> str:
    """The first collective that looks alike on all ranks of its group and was called from lines that are not.

    Matching cannot tell two collectives of one shape apart. Ranks may take different lines on purpose (a branch on
    the rank); a line counts only when both ranks come by it for the same kind of operation.
    """
    groups: dict[tuple[int, ...], dict[int, list[Operation]]] = {}
    for op in operations:
        if op.name not in _POINT_TO_POINT and len(op.group) > 1:
            groups.setdefault(op.group, {}).setdefault(op.rank, []).append(op)
    for by_rank in groups.values():
        ranks = sorted(by_rank)
        for other in ranks[1:]:
            found = _first_difference(by_rank[ranks[0]], by_rank[other])
            if found is not None:
                index, one, two = found
                return (
                    f"suspect: rank {one.rank} called {one.name} at {one.site}, rank {two.rank} at {two.site}, "
                    f"as {_ordinal(index + 1)} operation of their group"
                )
    return ""


def _first_difference(
    ones: Sequence[Operation], others: Sequence[Operation]
) -> tuple[int, Operation, Operation] | None:
    sites_of_ones = {(_look(op), op.site) for op in ones}
    sites_of_others = {(_look(op), op.site) for op in others}
    shared = sites_of_ones & sites_of_others
    for index, (one, other) in enumerate(zip(ones, others, strict=False)):
        if _look(one) != _look(other) or one.site == other.site or not (one.site and other.site):
            continue
        if (_look(one), one.site) in shared or (_look(other), other.site) in shared:
            return index, one, other
    return None


def _look(op: Operation) -> tuple[object, ...]:
    return op.name, op.numel, op.dtype, op.reduce_op, op.root


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{({1: 'st', 2: 'nd', 3: 'rd'}).get(number % 10, 'th')}"
