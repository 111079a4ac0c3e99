"""What happens when every live rank waits: one thing that depends on timing is decided, or a timeout fires.

Candidates are any-source matches, questions and counters of the store, and polls. The earliest by (clock, rank,
number) is taken, so that the operating system's scheduling has no say; or one drawn by a seed, to look for programs
that lean on one order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from kit.world.rank_state import RankState, Wait
from kit.world.served_store import StoreRequest

if TYPE_CHECKING:
    from kit.world.switchboard import Switchboard

MAX_FRUITLESS_POLLS = 10_000


class Quiescence:
    """Decides for one switchboard. `order_seed`: draw among the candidates; None takes the earliest."""

    def __init__(self, board: Switchboard, order_seed: int | None = None) -> None:
        self._board = board
        self._order = random.Random(order_seed) if order_seed is not None else None
        self._seen_at_timeout: set[frozenset[tuple[int, str]]] = set()

    @property
    def reached(self) -> bool:
        """Every live rank waits, and none of them has a second thread that may yet act."""
        return all(not s.live or (s.blocked and s.threads == 1) for s in self._board.ranks)

    def resolve(self) -> bool:
        """Decide the next thing that depends on timing, or fire a timeout. False: a hang."""
        return self.decide() or self._fire_timeout()

    def decide(self) -> bool:
        """The earliest of: a receive from any rank, a counter or question to the store, a poll."""
        board = self._board
        choices: list[tuple[int, int, int, Callable[[], None]]] = []
        for key, receives in board.receives.items():
            if receives and receives[0].peer == -1 and any(board.sends.get(key, {}).values()):
                recv = receives[0]
                choices.append((recv.clock, recv.rank, recv.seq, lambda key=key: self._match_any(key)))  # type: ignore[misc]
        for state in board.ranks:
            for request in state.store_waits.values():
                if not board.store.blocks(request):
                    choices.append((
                        request.clock, state.rank, request.request,
                        lambda state=state, request=request: board.answer_and_wake(state, request),  # type: ignore[misc]
                    ))  # fmt: skip
            for wait in state.waits.values():
                if wait.poll and (state.open[wait.seqs[0]].matched or board.fruitless_polls < MAX_FRUITLESS_POLLS):
                    choices.append((
                        wait.clock, state.rank, wait.request,
                        lambda state=state, wait=wait: board.answer_poll(state, wait),  # type: ignore[misc]
                    ))  # fmt: skip
        if not choices:
            return False
        choices.sort(key=lambda choice: choice[:3])
        chosen = choices[0] if self._order is None else self._order.choice(choices)
        chosen[3]()
        return True

    def _match_any(self, key: tuple[str, int, int]) -> None:
        board = self._board
        recv = board.receives[key].popleft()
        queues = [queue for queue in board.sends[key].values() if queue]
        queues.sort(key=lambda q: (q[0].clock, q[0].rank, q[0].seq))
        queue = queues[0] if self._order is None else self._order.choice(queues)
        board.exchange(queue.popleft(), recv)
        board.match(key)

    def _fire_timeout(self) -> bool:
        """The shortest explicit timeout among the waits; the same quiescent state a second time is a hang."""
        board = self._board
        seen = frozenset(
            [(w.rank, f"{w.site} {[s.open[q].title() for q in w.seqs]}") for s in board.ranks for w in s.waits.values()]
            + [(r.rank, r.title()) for s in board.ranks for r in s.store_waits.values()]
        )
        timed: list[tuple[float, int, Callable[[], None]]] = []
        for state in board.ranks:
            for wait in state.waits.values():
                if wait.timeout_s is not None:
                    timed.append((wait.timeout_s, state.rank, lambda s=state, w=wait: self._time_out(s, w)))  # type: ignore[misc]
            for request in state.store_waits.values():
                if request.timeout_s is not None:
                    timed.append((
                        request.timeout_s, state.rank,
                        lambda s=state, r=request: self._time_out_store(s, r),  # type: ignore[misc]
                    ))  # fmt: skip
        if not timed or seen in self._seen_at_timeout:
            return False
        self._seen_at_timeout.add(seen)
        min(timed, key=lambda choice: choice[:2])[2]()
        return True

    def _time_out(self, state: RankState, wait: Wait) -> None:
        op = state.open[wait.seqs[0]]
        assert wait.timeout_s is not None
        message = f"Timed out waiting {wait.timeout_s * 1000:.0f}ms for {op.title()}"
        if op.name == "monitored_barrier":
            slot = self._board.slots.get((op.group, op.index))
            missing = [m for i, m in enumerate(op.members) if slot is None or i not in slot.calls]
            message = (
                f"{'Rank' if len(missing) == 1 else 'Ranks'} {', '.join(map(str, missing))} failed to pass "
                f"monitored_barrier in {wait.timeout_s * 1000:.0f} ms"
            )
        self._board.give_up(state, wait, message)

    def _time_out_store(self, state: RankState, request: StoreRequest) -> None:
        message = f"Timed out after {request.timeout_s} s in {request.title()}"
        self._board.give_up_store(state, request, message)
