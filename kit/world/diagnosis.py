"""Why a run stopped, in words: a table of ranks, then the sentence that explains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kit.world.operations import Issued
from kit.world.rank_state import RankState, Slot
from kit.world.served_store import StoreRequest
from kit.world.switchboard import Switchboard


@dataclass(frozen=True, slots=True)
class Explanation:
    """kind is a WorldError kind; rank the one at fault where there is one."""

    kind: str
    message: str
    details: str
    rank: int | None = None
    site: str = ""


def explain_standstill(board: Switchboard) -> Explanation:
    """What a state is, in which every live rank waits and nothing can move."""
    return _explain_misfit(board) or _explain_message_misfit(board) or _explain_polling(board) or _explain_hang(board)


def explain_races(board: Switchboard) -> Explanation | None:
    """The races that ranks saw in their own memory, if there are any; the first rank's first is the cause."""
    races = [finding for finding in board.findings if finding.kind == "race"]
    if not races:
        return None
    first = min(races, key=lambda finding: finding.rank)
    same = sorted({f.rank for f in races if f.message == first.message} - {first.rank})
    others = [f"  {f}" for f in races if f.message != first.message][:6]
    details = [f"  (the same on {_names(same)})"] if same else []
    return Explanation(
        "race", f"race on rank {first.rank}: {first.message}", "\n".join(details + others), first.rank, first.site
    )


def leftover_misfit(board: Switchboard) -> Explanation | None:
    """A misfit among operations that nobody waited for, when all ranks have returned."""
    return _explain_misfit(board) or _explain_message_misfit(board)


# -- the table -------------------------------------------------------------------------------------------


def table(board: Switchboard, stuck_at: Callable[[int], str] = lambda rank: "") -> str:
    """One row a rank: what it waits in or did last, group, tensor, line."""
    rows = [_row(state, stuck_at(state.rank)) for state in board.ranks]
    titles = ("rank", "state", "operation", "group", "tensor", "at")
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [titles, *rows]
    )


def _row(state: RankState, stuck_at: str) -> tuple[str, str, str, str, str, str]:
    rank = str(state.rank)
    op, request = blocked_on(state), _store_wait(state)
    if op is not None:
        return rank, "waits in", op.title(), op.group_label, op.tensor_text(), _wait_site(state) or op.site
    if request is not None:
        return rank, "waits in", request.title(), "", "", request.site
    status = (
        "returned"
        if state.returned
        else "killed"
        if state.killed
        else "left"
        if state.gone
        else "runs"
        if not state.finished
        else "ended"
    )
    last = state.issued[-1] if state.issued else None
    if last is None:
        return rank, status, "no operation yet", "", "", stuck_at
    at = stuck_at or last.site
    return rank, status, f"after {last.title()}", last.group_label, last.tensor_text(), at


def blocked_on(state: RankState) -> Issued | None:
    """The first operation that the rank's wait is for."""
    for wait in state.waits.values():
        return state.open[wait.seqs[0]]
    return None


def _wait_site(state: RankState) -> str:
    for wait in state.waits.values():
        return wait.site or state.open[wait.seqs[0]].site
    return ""


def _store_wait(state: RankState) -> StoreRequest | None:
    return next(iter(state.store_waits.values()), None)


# -- misfits ---------------------------------------------------------------------------------------------


def _explain_misfit(board: Switchboard) -> Explanation | None:
    partial = _partial_misfits(board)
    slots = [*board.misfits, *partial]
    if not slots:
        return None
    slot = min(slots, key=lambda s: min(op.clock for op in s.calls.values()))
    ops = [slot.calls[i] for i in sorted(slot.calls)]
    first = ops[0]
    odd = _odd_one_out(ops)
    lines = [f"  rank {op.rank}: {op.name}{_arguments(op)}  {op.tensor_text()}  {op.site}".rstrip() for op in ops]
    message = f"mismatch at operation {first.index} of group {first.group_label}: {slot.misfit}"
    details = "\n".join(lines)
    missing = [m for i, m in enumerate(slot.members) if i not in slot.calls]
    if missing:
        details += f"\n  {_names(missing)} had not come yet"
    blame = odd if odd is not None else None
    return Explanation(
        "mismatch",
        message,
        details,
        rank=blame.rank if blame else None,
        site=blame.site if blame else first.site,
    )


def _partial_misfits(board: Switchboard) -> list[Slot]:
    """Slots that wait for members, among whose calls there is a misfit already."""
    from kit.world.collectives import misfit

    found = []
    for slot in board.slots.values():
        ops = [slot.calls[i] for i in sorted(slot.calls)]
        if len(ops) > 1 and len({op.name for op in ops}) > 1:
            slot.misfit = misfit(ops)
            found.append(slot)
    return found


def _arguments(op: Issued) -> str:
    parts = [f"op={op.reduce_op}"] if op.reduce_op else []
    parts += [f"root={op.global_root}"] if op.root is not None else []
    return f"({', '.join(parts)})" if parts else ""


def _odd_one_out(ops: Sequence[Issued]) -> Issued | None:
    """The single call that differs from all the others, which agree."""
    looks = [(op.name, op.reduce_op, op.root, op.dtype, sum(m.numel for m in op.metas)) for op in ops]
    alone = [op for op, look in zip(ops, looks, strict=True) if looks.count(look) == 1]
    return alone[0] if len(alone) == 1 and len(ops) > 2 else None


def _explain_message_misfit(board: Switchboard) -> Explanation | None:
    if not board.message_misfits:
        return None
    send, recv, problem = min(board.message_misfits, key=lambda pair: (pair[0].clock, pair[0].rank))
    message = f"mismatch between send and recv, rank {send.rank} to rank {recv.rank}: {problem}"
    details = (
        f"  rank {send.rank}: {send.title()}  {send.tensor_text()}  {send.site}\n"
        f"  rank {recv.rank}: {recv.title()}  {recv.tensor_text()}  {recv.site}"
    )
    return Explanation("mismatch", message, details, site=recv.site)


def _explain_polling(board: Switchboard) -> Explanation | None:
    for state in board.ranks:
        for wait in state.waits.values():
            if wait.poll:
                op = state.open[wait.seqs[0]]
                message = f"rank {state.rank} asks is_completed() of {op.title()} for ever ({wait.site or op.site})"
                return Explanation("hang", message, table(board), state.rank, wait.site or op.site)
    return None


# -- hangs -----------------------------------------------------------------------------------------------


def _explain_hang(board: Switchboard) -> Explanation:
    sentences = _cycle(board) or _missing_calls(board) or _lonely_messages(board) or _store_sentences(board)
    if not sentences:
        sentences = ["every rank waits, and nothing that any of them waits for can happen"]
    site = next((s for s in (_wait_site(state) for state in board.ranks) if s), "")
    return Explanation("hang", sentences[0], "\n".join([table(board), *sentences[1:]]), site=site)


def _missing_calls(board: Switchboard) -> list[str]:
    """For each collective that waits for members: who never called it, and what those do instead."""
    sentences = []
    for (_, index), slot in sorted(board.slots.items(), key=lambda item: min(o.clock for o in item[1].calls.values())):
        waiting = [op for op in slot.calls.values() if op.seq in _awaited(board.ranks[op.rank])]
        missing = [m for i, m in enumerate(slot.members) if i not in slot.calls]
        if not waiting or not missing:
            continue
        first = min(waiting, key=lambda op: op.rank)
        others = f"{_names(sorted(op.rank for op in waiting))} {'waits' if len(waiting) == 1 else 'wait'}"
        sentences.append(
            f"{_names(missing)} never called {first.name} #{index} of group {first.group_label} in which {others} "
            f"({first.site}): " + "; ".join(_what_it_does(board.ranks[m], slot) for m in missing[:4])
        )
    return sentences


def _awaited(state: RankState) -> set[int]:
    return {seq for wait in state.waits.values() for seq in wait.seqs}


def _what_it_does(state: RankState, slot: Slot) -> str:
    op, request = blocked_on(state), _store_wait(state)
    if op is not None:
        same = "" if op.members == slot.members else f" of group {op.group_label}"
        if not same and any(call.group != op.group for call in slot.calls.values()):
            same = " of another group of the same ranks"
        return f"rank {state.rank} waits in {op.title()}{same} ({op.site})"
    if request is not None:
        return f"rank {state.rank} waits in {request.title()} ({request.site})"
    count = len(state.issued)
    after = f"after its {count} operation{'s' if count != 1 else ''}" if count else "without any operation"
    return f"rank {state.rank} {'returned' if state.returned else 'was killed' if state.killed else 'left'} {after}"


def _cycle(board: Switchboard) -> list[str]:
    """A cycle of ranks each of which waits for a message to or from the next."""
    edges: dict[int, tuple[int, Issued]] = {}
    for state in board.ranks:
        op = blocked_on(state)
        if op is not None and op.name in ("send", "recv") and op.global_peer is not None:
            edges[state.rank] = (op.global_peer, op)
    for start in sorted(edges):
        path, rank = [], start
        while rank in edges and rank not in path:
            path.append(rank)
            rank = edges[rank][0]
        if rank in path:
            ring = path[path.index(rank) :]
            ops = [edges[r][1] for r in ring]
            links = ", ".join(f"rank {op.rank} waits in {op.title()} ({op.site})" for op in ops)
            advice = (
                "a send waits for its receive: let one side receive first, or use isend or batch_isend_irecv"
                if all(op.name == "send" for op in ops)
                else "let one of them send first, or use batch_isend_irecv"
            )
            if any(_tags_differ(board, op) for op in ops):
                advice = "their tags differ"
            elif {op.name for op in ops} == {"send", "recv"}:
                advice = "the sends and receives do not pair up"
            return [f"a cycle: {links}; {advice}"]
    return []


def _tags_differ(board: Switchboard, op: Issued) -> bool:
    other = blocked_on(board.ranks[op.global_peer]) if op.global_peer is not None else None
    return (
        other is not None
        and other.global_peer == op.rank
        and {op.name, other.name} == {"send", "recv"}
        and op.tag != other.tag
    )


def _lonely_messages(board: Switchboard) -> list[str]:
    """A send or receive whose peer does something else."""
    sentences = []
    for state in board.ranks:
        op = blocked_on(state)
        if op is None or op.name not in ("send", "recv"):
            continue
        if op.global_peer is None:
            sentences.append(f"rank {state.rank} waits in {op.title()} ({op.site}), and no rank sends to it")
            continue
        peer = board.ranks[op.global_peer]
        wanted = "receives it" if op.name == "send" else "sends it"
        does = _what_it_does(peer, Slot(op.members))
        sentences.append(f"rank {state.rank} waits in {op.title()} ({op.site}), but nobody {wanted}: {does}")
    return sentences


def _store_sentences(board: Switchboard) -> list[str]:
    return [
        f"rank {state.rank} waits in {request.title()} ({request.site}), and no rank sets it"
        for state in board.ranks
        if (request := _store_wait(state)) is not None
    ]


def _names(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    return f"ranks {shown}"
