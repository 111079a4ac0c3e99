"""What happens when every live rank waits: one thing that depends on timing is decided, or a timeout fires.

Candidates are any-source matches, waits for any of several operations, requests to the store, and polls. The earliest
in virtual time is taken, so that the operating system's scheduling has no say; or one drawn by a seed, to look for
programs that lean on one order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from kit.world.clocks import Choice, Clocks
from kit.world.operations import Issued
from kit.world.rank_state import RankState, Wait
from kit.world.replay import POLL_S, Moment
from kit.world.served_store import StoreRequest

if TYPE_CHECKING:
    from kit.world.switchboard import Switchboard

MAX_FRUITLESS_POLLS = 10_000
MAX_SPINS = 16  # how many questions in a row are answered by the clock, before it jumps to what is asked for
PATIENCE = 100  # how many questions in a row a rank may ask before others go first


class Quiescence:
    """Decides for one switchboard. `order_seed`: draw among the candidates; None takes the earliest."""

    def __init__(self, board: Switchboard, order_seed: int | None = None) -> None:
        self.clocks = Clocks(board.ranks)
        self._board = board
        self._questions: dict[int, tuple[int, int]] = {}  # by rank: how many in a row, and its log's length after them
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
        """Let the earliest happen of what depends on timing; False where nothing may."""
        sets = list(self._sets())
        if sets and self._order is not None:  # they have happened: there is nothing to draw
            self.clocks.earliest(sets).act()
            return True
        choices = [*sets, *self._receives_from_any(), *self._waits_for_any(), *self._store_requests(), *self._polls()]
        if not choices:
            return False
        self._pick(choices).act()
        return True

    def _pick(self, choices: list[Choice]) -> Choice:
        if self._order is None:
            return self.clocks.earliest(choices)
        choices.sort(key=lambda choice: (choice.rank, choice.number, choice.source))
        return self._order.choice(choices)

    def _receives_from_any(self) -> Iterator[Choice]:
        for key, receives in self._board.receives.items():
            if receives and receives[0].peer == -1:
                recv = receives[0]
                for queue in self._board.sends.get(key, {}).values():
                    if queue:
                        send = queue[0]
                        yield Choice(
                            recv.rank, recv.seq, (("issued", recv.rank, recv.order), ("issued", send.rank, send.order)),
                            partial(self._match_any, key, send), source=(send.rank, send.order),
                        )  # fmt: skip

    def _waits_for_any(self) -> Iterator[Choice]:
        """A wait for several operations is not served as they come, which the operating system would decide."""
        for state in self._board.ranks:
            for wait in state.waits.values():
                for op in [state.open[seq] for seq in wait.seqs] if len(wait.seqs) > 1 else ():
                    if op.matched:
                        # An operation that is not defined never was on the wire.
                        moment: Moment = ("done" if op.refusal is None else "issued", state.rank, op.order)
                        yield Choice(
                            state.rank, wait.request, (("clock", state.rank, 0), moment),
                            partial(self._board.deliver, state, wait, op), source=(state.rank, op.order),
                        )  # fmt: skip

    def _sets(self) -> Iterator[Choice]:
        """Ranks do not wait for what they set: it is seen by whoever asks later in virtual time."""
        for state in self._board.ranks:
            if state.queued_sets:
                request, position = state.queued_sets[0]
                moment: Moment = ("stored", *position)
                act = partial(self._board.apply_set, state)
                yield Choice(state.rank, request.request, (moment,), act, has_happened=True)

    def _store_requests(self) -> Iterator[Choice]:
        for state in self._board.ranks:
            for request in state.store_waits.values():
                if self._board.store.has_answer(request):
                    yield Choice(
                        state.rank, request.request, (("clock", state.rank, 0),),
                        partial(self._answer_store, state, request), is_late=self._has_asked_enough(state),
                    )  # fmt: skip

    def _polls(self) -> Iterator[Choice]:
        for state in self._board.ranks:
            for wait in state.waits.values():
                if wait.poll:
                    is_there = state.open[wait.seqs[0]].matched
                    if is_there or self._board.fruitless_polls < MAX_FRUITLESS_POLLS:
                        yield Choice(
                            state.rank, wait.request, (("clock", state.rank, 0),),
                            partial(self._answer_poll, state, wait), POLL_S,
                            is_late=self._has_asked_enough(state) and not is_there,
                        )  # fmt: skip

    def _match_any(self, key: tuple[str, int, int], send: Issued) -> None:
        board = self._board
        recv = board.receives[key].popleft()
        board.sends[key][send.group_rank].popleft()
        board.exchange(send, recv)
        board.match(key)

    def _answer_store(self, state: RankState, request: StoreRequest) -> None:
        self._note_question(state)
        self._board.answer_and_wake(state, request)

    def _answer_poll(self, state: RankState, wait: Wait) -> None:
        """Yes if the operation is complete in virtual time; a rank that does nothing but ask is taken to its end."""
        op = state.open[wait.seqs[0]]
        count, length = self._questions.get(state.rank, (0, 0))
        is_over = op.matched
        if op.matched and op.refusal is None and self._order is None:
            spins = count >= MAX_SPINS and length == len(state.events)
            is_over = spins or self.clocks.is_over(op.rank, op.order, POLL_S)
        self._note_question(state)
        self._board.answer_poll(state, wait, is_over=is_over)

    def _has_asked_enough(self, state: RankState) -> bool:
        """A rank that asks and asks, its clock hardly moving, would keep those from their turn who could answer."""
        count, length = self._questions.get(state.rank, (0, 0))
        return count >= PATIENCE and length == len(state.events)

    def _note_question(self, state: RankState) -> None:
        count, length = self._questions.get(state.rank, (0, 0))
        self._questions[state.rank] = (count + 1 if length == len(state.events) else 1, len(state.events) + 1)

    def _fire_timeout(self) -> bool:
        """The explicit timeout that runs out first; the same quiescent state a second time is a hang."""
        board = self._board
        seen = frozenset(
            [(w.rank, f"{w.site} {[s.open[q].title() for q in w.seqs]}") for s in board.ranks for w in s.waits.values()]
            + [(r.rank, r.title()) for s in board.ranks for r in s.store_waits.values()]
        )
        timed: list[Choice] = []
        for state in board.ranks:
            now: tuple[Moment, ...] = (("clock", state.rank, 0),)
            for wait in state.waits.values():
                if wait.timeout_s is not None:
                    act = partial(self._time_out, state, wait)
                    timed.append(Choice(state.rank, wait.request, now, act, wait.timeout_s))
            for request in state.store_waits.values():
                if request.timeout_s is not None:
                    act = partial(self._time_out_store, state, request)
                    timed.append(Choice(state.rank, request.request, now, act, request.timeout_s))
        if not timed or seen in self._seen_at_timeout:
            return False
        self._seen_at_timeout.add(seen)
        self.clocks.earliest(timed).act()
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
