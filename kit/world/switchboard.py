"""The network: matches operations, delivers results, and knows at any moment who waits for what.

Ranks post operations and, later, wait for them. What depends on timing (any-source matches, waits for any of several
operations, `is_completed`, changes and questions to the store) is decided only at quiescence (`kit.world.quiescence`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kit.world import collectives, segments
from kit.world.failure import Finding
from kit.world.operations import COLLECTIVES, Delivery, Issued, declared_bytes, members_of, read
from kit.world.quiescence import Quiescence
from kit.world.rank_state import RankState, Slot, Wait, declared
from kit.world.segments import INLINE_BYTES, SegmentTable
from kit.world.served_store import ServedKeys, StoreRequest
from kit.world.trace import Event
from kit.world.wire import Buffer, ProtocolError

if TYPE_CHECKING:
    from kit.world.strikes import Strikes

_MAX_GROUP_CHARS = 8000  # 1024 ranks take 4010
Reply = Callable[[int, dict[str, Any], Sequence[Buffer], Sequence[int]], None]


class Switchboard:
    """State of one run. `handle` takes a rank's message; `quiescence.resolve` decides one thing when all wait."""

    def __init__(self, world_size: int, table: SegmentTable, reply: Reply, *, order_seed: int | None = None) -> None:
        self.ranks = [RankState(rank) for rank in range(world_size)]
        self.findings: list[Finding] = []
        self.store = ServedKeys()
        self.slots: dict[tuple[str, int], Slot] = {}
        self.misfits: list[Slot] = []
        self.message_misfits: list[tuple[Issued, Issued, str]] = []
        self._segments = table
        self._reply = reply
        self._use_segments = segments.supported()
        # Point to point, by (group, destination, tag): receives in order, and sends in order by source.
        self.receives: dict[tuple[str, int, int], deque[Issued]] = {}
        self.sends: dict[tuple[str, int, int], dict[int, deque[Issued]]] = {}
        self.fruitless_polls = 0
        self.strikes: Strikes | None = None
        # Who answers a rank's other requests, by their name: they are answered at once.
        self.attendants: dict[str, Callable[[RankState, dict[str, Any], bytearray], None]] = {}
        self._threaded = False
        self.quiescence = Quiescence(self, order_seed)

    # -- messages -----------------------------------------------------------------------------------------

    def handle(self, rank: int, header: dict[str, Any], payload: bytearray) -> None:
        """Take one message of a rank. Raises ProtocolError, KeyError, TypeError or ValueError if it is malformed."""
        state = self.ranks[rank]
        self._release(state, header.get("read", ()))
        state.clock += 1
        what = header["op"]
        if "threads" in header:
            state.threads = max(1, int(header["threads"]))
            self._threaded |= state.threads > 1
        if what == "issue":
            self._issue(state, header, payload)
        elif what == "wait":
            self._wait(state, header)
        elif what == "poll":
            self._poll(state, header)
        elif what == "store":
            self._store(state, header, payload)
        elif what == "segment":
            self._give_segment(rank, header)
        elif what == "note":
            finding = Finding(str(header["kind"])[:40], rank, str(header["message"])[:400], str(header["site"])[:200])
            if finding not in self.findings and len(self.findings) < 1000:
                self.findings.append(finding)
        elif what in ("compute", "mark"):
            state.events.append(declared(header))
            if what == "mark" and self.strikes is not None:
                self.strikes.on_mark(state, state.events[-1])
        elif what in self.attendants:
            self.attendants[what](state, header, payload)
        elif what == "group":
            if str(header["name"]).isdigit():
                state.groups_made.append((tuple(int(r) for r in header["ranks"]), str(header["site"])[:200]))
        else:
            raise ProtocolError("a message of no known kind")
        if what in ("issue", "mark") and "id" in header and not state.gone:
            self._reply(rank, {"id": int(header["id"])}, (), ())  # a rank that goes on only when it is told to
        if self._threaded:
            while self.quiescence.decide():
                pass

    def _release(self, state: RankState, read: Sequence[int]) -> None:
        """The rank has copied out what it was given in these segments."""
        for index in read:
            segment = state.reading.pop(int(index))
            segment.readers -= 1

    def _give_segment(self, rank: int, header: dict[str, Any]) -> None:
        nbytes = int(header["bytes"])
        if not self._use_segments:
            self._reply(rank, {"id": header["id"], "none": True}, (), ())
            return
        segment = self._segments.give(rank, nbytes)
        answer = {"id": header["id"], "segment": segment.index, "bytes": segment.nbytes}
        self._reply(rank, answer, (), (segment.fd,))

    def data_of(self, rank: int, header: dict[str, Any], payload: bytearray, nbytes: int) -> memoryview:
        """The bytes that a message refers to: its payload, or the rank's own segment."""
        if "segment" in header:
            return self._segments.view(rank, header["segment"], nbytes)
        return memoryview(payload)

    def _issue(self, state: RankState, header: dict[str, Any], payload: bytearray) -> None:
        group = str(header["group"])[:_MAX_GROUP_CHARS]
        members = members_of(group, state.rank, len(self.ranks))
        # A segment's length is not told by the message, so it is taken from the shapes and checked against them.
        nbytes = declared_bytes(header) if "segment" in header else len(payload)
        data = self.data_of(state.rank, header, payload, nbytes)
        op = read(header, data, state.rank, members, len(state.issued))
        op.clock = state.clock
        if op.seq in state.open:
            raise ProtocolError("a sequence number that is taken")
        if op.name in COLLECTIVES:
            op.index = state.positions[op.group] = state.positions.get(op.group, 0) + 1
        takes_part = self.strikes is None or self.strikes.on_issue(state, op)
        state.issued.append(op)
        state.open[op.seq] = op
        state.events.append(Event("issue", op.order))
        self.fruitless_polls = 0
        if not takes_part:
            return
        if op.name in COLLECTIVES:
            self._join_collective(state, op)
        elif op.name == "send":
            assert op.peer is not None
            key = (op.group, op.peer, op.tag)
            self.sends.setdefault(key, {}).setdefault(op.group_rank, deque()).append(op)
            self.match(key)
        else:
            key = (op.group, op.group_rank, op.tag)
            self.receives.setdefault(key, deque()).append(op)
            self.match(key)

    # -- collectives --------------------------------------------------------------------------------------

    def _join_collective(self, state: RankState, op: Issued) -> None:
        slot = self.slots.setdefault((op.group, op.index), Slot(op.members))
        slot.calls[op.group_rank] = op
        if len(slot.calls) < len(slot.members):
            return
        ops = [slot.calls[i] for i in range(len(slot.members))]
        slot.misfit = collectives.misfit(ops)
        if slot.misfit is not None:
            self.misfits.append(slot)
            return
        del self.slots[op.group, op.index]
        refusal = collectives.undefined(op)
        if refusal is not None:
            for each in ops:
                self._refuse(each, refusal)
            return
        collectives.run(ops, self._allocate)
        for each in ops:
            each.meeting = (ops[0].rank, ops[0].order)
            self._serve_waits(self.ranks[each.rank], each)

    def _refuse(self, op: Issued, message: str) -> None:
        """The operation is not defined: its wait raises in the rank."""
        op.matched = True
        op.refusal = message
        self._serve_waits(self.ranks[op.rank], op)

    def _allocate(self, nbytes: int, readers: int) -> Delivery:
        if nbytes <= INLINE_BYTES or not self._use_segments or not readers:
            return Delivery(bytearray(nbytes))
        segment = self._segments.for_result(nbytes)
        segment.readers += readers
        return Delivery(memoryview(segment.map)[:nbytes], segment)

    # -- point to point -----------------------------------------------------------------------------------

    def match(self, key: tuple[str, int, int]) -> None:
        """Match receives in the order they were posted, up to the first that may take from any rank."""
        receives, sends = self.receives.get(key, deque()), self.sends.get(key, {})
        waiting: deque[Issued] = deque()
        blocked_sources: set[int] = set()
        while receives:
            recv = receives.popleft()
            assert recv.peer is not None
            if recv.peer < 0:
                waiting.append(recv)
                break
            queue = sends.get(recv.peer)
            if queue and recv.peer not in blocked_sources:
                self.exchange(queue.popleft(), recv)
            else:
                blocked_sources.add(recv.peer)
                waiting.append(recv)
        receives.extendleft(reversed(waiting))

    def exchange(self, send: Issued, recv: Issued) -> None:
        self.fruitless_polls = 0
        problem = _misfit_of_message(send, recv)
        if problem is not None:
            self.message_misfits.append((send, recv, problem))
            return
        collectives.deliver_message(send, recv, self._allocate)
        for op in (send, recv):
            op.meeting = (send.rank, send.order)
            self._serve_waits(self.ranks[op.rank], op)

    # -- waiting ------------------------------------------------------------------------------------------

    def _enter(self, state: RankState, wait: Wait) -> bool:
        """Whether the wait begins; it does not where another thread of the rank has taken one of its operations."""
        last = state.issued[-1].seq if state.issued else 0
        if not wait.seqs or any(seq not in state.open and seq > last for seq in wait.seqs):
            raise ProtocolError("a wait for an operation that was never issued")
        if any(seq not in state.open for seq in wait.seqs):
            self._reply(state.rank, {"id": wait.request, "taken": True}, (), ())
            return False
        state.waits[wait.request] = wait
        return True

    def _wait(self, state: RankState, header: dict[str, Any]) -> None:
        timeout = header.get("timeout_s")
        wait = Wait(
            state.rank, int(header["id"]), tuple(int(seq) for seq in header["seqs"]), str(header["site"])[:200],
            state.clock, timeout_s=float(timeout) if timeout is not None else None,
        )  # fmt: skip
        if self._enter(state, wait) and state.open[wait.seqs[0]].matched:
            self._serve_waits(state, state.open[wait.seqs[0]])

    def _poll(self, state: RankState, header: dict[str, Any]) -> None:
        wait = Wait(
            state.rank, int(header["id"]), (int(header["seq"]),), str(header["site"])[:200], state.clock, poll=True
        )
        self._enter(state, wait)

    def _serve_waits(self, state: RankState, op: Issued) -> None:
        """Deliver a matched operation to a wait for it alone. Polls and waits for several wait for quiescence."""
        for wait in state.waits.values():
            if wait.seqs == (op.seq,) and not wait.poll:
                self.deliver(state, wait, op)
                return

    def deliver(self, state: RankState, wait: Wait, op: Issued) -> None:
        """The wait is over: its rank gets what this operation brought."""
        del state.waits[wait.request]
        del state.open[op.seq]
        for other in [other for other in state.waits.values() if op.seq in other.seqs]:
            del state.waits[other.request]
            self._reply(state.rank, {"id": other.request, "taken": True}, (), ())
        op.completed_order = state.completed
        state.completed += 1
        state.events.append(Event("wait", op.order))
        if op.refusal is not None:
            refused = {"id": wait.request, "seq": op.seq, "done": True, "refused": f"{op.name}: {op.refusal}"}
            self._reply(state.rank, refused, (), ())
            return
        answer: dict[str, Any] = {"id": wait.request, "seq": op.seq, "done": True}
        if op.name == "recv":
            answer["source"] = op.source
        delivery, op.delivery = op.delivery, None
        if delivery is None or not len(delivery.data):
            self._reply(state.rank, answer, (), ())
        elif delivery.segment is None:
            self._reply(state.rank, answer, (delivery.data,), ())
        else:
            segment = delivery.segment
            answer["result"] = [segment.index, segment.nbytes]
            fds = () if state.rank in segment.known_to else (segment.fd,)
            segment.known_to.add(state.rank)
            state.reading[segment.index] = segment
            self._reply(state.rank, answer, (), fds)

    def answer_poll(self, state: RankState, wait: Wait, *, is_over: bool) -> None:
        """Whether the operation is complete; if it is, this delivers it."""
        op = state.open[wait.seqs[0]]
        state.events.append(Event("poll", op.order))
        if is_over:
            self.deliver(state, wait, op)
            return
        if not op.matched:
            self.fruitless_polls += 1
        del state.waits[wait.request]
        self._reply(state.rank, {"id": wait.request, "done": False}, (), ())

    def give_up(self, state: RankState, wait: Wait, message: str) -> None:
        """The wait raises in the rank."""
        state.timed_out = message
        state.events.append(Event("timeout", state.open[wait.seqs[0]].order, seconds=wait.timeout_s or 0.0))
        for seq in wait.seqs:
            state.open[seq].given_up = True
        del state.waits[wait.request]
        self._reply(state.rank, {"id": wait.request, "error": message}, (), ())

    # -- the store ----------------------------------------------------------------------------------------

    def _store(self, state: RankState, header: dict[str, Any], payload: bytearray) -> None:
        request = StoreRequest.read(header, bytes(payload), state.rank, state.clock)
        self.store.promise(request)
        if request.what == "set" and self.store.decide_at_quiescence:
            # The rank goes on; what it set is seen from the next quiescence on.
            state.queued_sets.append((request, (state.rank, len(state.events))))
            state.events.append(Event("store", what=request.title(), site=request.site))
            self._reply(state.rank, {"id": request.request}, (), ())
        elif self.store.is_free_of_races(request):
            self._answer_store(state, request)
            self._wake_store_waits()
        else:
            state.store_waits[request.request] = request

    def _answer_store(self, state: RankState, request: StoreRequest) -> None:
        state.store_waits.pop(request.request, None)
        after = self.store.writers(request)
        fields, blob = self.store.apply(request)
        self.store.note_writer(request, (state.rank, len(state.events)))
        state.events.append(Event("store", what=request.title(), after=after, site=request.site))
        self._reply(state.rank, {"id": request.request, **fields}, (blob,) if blob else (), ())
        self.fruitless_polls = 0

    def _wake_store_waits(self) -> None:
        for state in self.ranks:
            for request in list(state.store_waits.values()):
                if self.store.is_free_of_races(request):
                    self._answer_store(state, request)

    def apply_set(self, state: RankState) -> None:
        """The first of what the rank has set is there now."""
        request, position = state.queued_sets.popleft()
        self.store.apply(request)
        self.store.note_writer(request, position)
        self.fruitless_polls = 0
        self._wake_store_waits()

    def answer_and_wake(self, state: RankState, request: StoreRequest) -> None:
        self._answer_store(state, request)
        self._wake_store_waits()

    def give_up_store(self, state: RankState, request: StoreRequest, message: str) -> None:
        """The request raises in the rank."""
        state.timed_out = message
        waited_s = request.timeout_s or 0.0
        state.events.append(Event("store", seconds=waited_s, what=request.title(), site=request.site))
        del state.store_waits[request.request]
        self._reply(state.rank, {"id": request.request, "error": message, "type": "StoreTimeout"}, (), ())


def _misfit_of_message(send: Issued, recv: Issued) -> str | None:
    there, here = send.metas, recv.metas
    if not there or not here:
        return None
    if there[0].dtype is not here[0].dtype:
        return f"different dtypes: {there[0].dtype_name} sent, {here[0].dtype_name} received"
    if send.in_numel != recv.out_numel:
        return f"different sizes: {list(there[0].shape)} sent, {list(here[0].shape)} received"
    return None
