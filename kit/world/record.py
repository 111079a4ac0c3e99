"""The record of a run: its trace, and what is left over when every rank has returned."""

from __future__ import annotations

from collections.abc import Sequence

from kit.world.failure import Finding
from kit.world.operations import Issued
from kit.world.rank_state import RankState
from kit.world.trace import Operation, Trace


def trace_of(ranks: Sequence[RankState]) -> Trace:
    """Everything that was said, by rank and order."""
    return Trace(
        [recorded(op) for state in ranks for op in state.issued],
        [state.events for state in ranks],
    )


def closing_findings(ranks: Sequence[RankState], findings: Sequence[Finding]) -> list[Finding]:
    """What is left over when every rank has returned."""
    found = list(findings)
    for state in ranks:
        for op in state.issued:
            if op.completed_order is not None or not op.by_program:
                continue
            if not op.matched:
                found.append(Finding("incomplete", op.rank, f"{op.title()} never completed", op.site))
            elif op.name == "send":
                found.append(Finding("note", op.rank, f"{op.title()} was never waited for", op.site))
            else:
                found.append(Finding("unwaited", op.rank, _unwaited(op, state), op.site))
    return found + _groups_made_by_some(ranks)


def _groups_made_by_some(states: Sequence[RankState]) -> list[Finding]:
    counts: dict[tuple[int, ...], list[int]] = {}
    sites: dict[tuple[int, ...], str] = {}
    for state in states:
        for ranks, site in state.groups_made:
            counts.setdefault(ranks, [0] * len(states))[state.rank] += 1
            sites.setdefault(ranks, site)
    return [
        Finding(
            "portability",
            rank,
            f"did not call new_group({list(ranks)}), which other ranks called: every rank must call it",
            sites[ranks],
        )
        for ranks, by_rank in counts.items()
        for rank, count in enumerate(by_rank)
        if count < max(by_rank)
    ]


def _unwaited(op: Issued, state: RankState) -> str:
    later = [o for o in state.issued[op.order + 1 :] if o.group == op.group and o.completed_order is not None]
    if not later:
        return f"{op.title()} was never waited for"
    return (
        f"{op.title()} was never waited for; a later wait, for {later[0].title()}, covers it on NCCL's stream "
        "and nowhere else"
    )


def recorded(op: Issued) -> Operation:
    """What is kept of an operation, as it stands now."""
    metas = op.metas
    return Operation(
        rank=op.rank,
        name=op.name,
        group=op.members,
        peer=op.global_peer if op.source < 0 else op.members[op.source],
        root=op.global_root,
        reduce_op=op.reduce_op,
        dtype=metas[0].dtype_name if metas else None,
        shape=metas[0].shape if metas else (),
        numel=op.full[0] if op.matched else sum(m.numel for m in metas),
        nbytes=op.full[1] if op.matched else sum(m.nbytes for m in metas),
        sent_bytes=op.sent_bytes,
        site=op.site,
        async_op=op.async_op,
        waited=op.completed_order is not None,
        order=op.order,
        completed_order=op.completed_order,
        meeting=op.meeting,
        group_name=op.group,
    )
