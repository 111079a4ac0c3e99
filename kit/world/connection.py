"""A rank's line to the deciding process: requests, posts and notes, from any number of threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kit.world.segments import INLINE_BYTES, RankSegments
from kit.world.wire import Buffer, RankEnd

Reply = tuple[dict[str, Any], bytearray, list[int]]


class Connection:
    """Posts go out at once; a request blocks its thread until its own reply is there.

    Whichever waiting thread holds the read lock reads for all; the others sleep until their reply was put down.
    """

    def __init__(self, end: RankEnd) -> None:
        self._end = end
        self._send_lock = threading.Lock()
        self._turn = threading.Condition()
        self._reading = False
        self._replies: dict[int, Reply] = {}
        self._next_id = 0
        self._next_seq = 0
        self.segments = RankSegments()
        self._segment_lock = threading.Lock()

    def _send(self, header: dict[str, Any], blobs: Sequence[Buffer]) -> None:
        for said in self.owed() if self.owed is not None else ():
            self._end.send(said, ())
        read = self.segments.take_read()
        self._end.send({**header, "read": read} if read else header, blobs)

    def post(self, header: dict[str, Any], blobs: Sequence[Buffer] = ()) -> None:
        if self.paced and header["op"] == "mark":
            self.request(header, blobs)
            return
        with self._send_lock:
            self._send(header, blobs)

    def issue(self, header: dict[str, Any], blobs: Sequence[Buffer] = ()) -> int:
        """Post an operation; returns its sequence number."""
        with self._send_lock:
            self._next_seq += 1
            seq = self._next_seq
            header = {**header, "op": "issue", "seq": seq}
            if not self.paced:
                self._send(header, blobs)
                return seq
            self._next_id += 1
            mine = self._next_id
            self._send({**header, "id": mine}, blobs)
        self._await(mine)
        return seq

    def request(self, header: dict[str, Any], blobs: Sequence[Buffer] = ()) -> Reply:
        """Send and wait for the reply. An "error" in it is raised as RuntimeError, TimeoutError or by its name."""
        with self._send_lock:
            self._next_id += 1
            mine = self._next_id
            self._send({**header, "id": mine, "threads": threading.active_count()}, blobs)
        reply = self._await(mine)
        if "error" in reply[0]:
            raise _ERRORS.get(reply[0].get("type", ""), RuntimeError)(reply[0]["error"])
        return reply

    def _await(self, mine: int) -> Reply:
        while True:
            with self._turn:
                while self._reading and mine not in self._replies:
                    self._turn.wait()
                if mine in self._replies:
                    return self._replies.pop(mine)
                self._reading = True
            try:
                reply = self._end.receive()
            except (EOFError, OSError):
                os._exit(70)  # nobody is left to report to
            with self._turn:
                self._reading = False
                self._replies[reply[0].get("id", 0)] = reply
                self._turn.notify_all()

    def read_one(self) -> Reply:
        """The next frame, before any request was made (the job)."""
        return self._end.receive()

    def room(self, nbytes: int) -> tuple[bytearray | memoryview, dict[str, Any]]:
        """A buffer for nbytes of an outgoing tensor, and how the header names it."""
        if nbytes <= INLINE_BYTES or not self.has_segments:
            return bytearray(nbytes), {}
        with self._segment_lock:
            taken = self.segments.take(nbytes)
            if taken is None:
                header, _, fds = self.request({"op": "segment", "bytes": nbytes})
                if "none" in header:
                    self.has_segments = False
                    return bytearray(nbytes), {}
                taken = header["segment"], self.segments.adopt(header["segment"], fds[0], header["bytes"])
        index, mapping = taken
        return memoryview(mapping)[:nbytes], {"segment": index}

    has_segments = True
    # Headers that have to go out before anything else does: what the rank has done since its last message.
    owed: Callable[[], Iterable[dict[str, Any]]] | None = None
    paced = False  # go on from a mark or an issue only when told to: a fault may end this rank there


class StoreTimeout(RuntimeError):
    """A store's wait that ran into its timeout."""


_ERRORS: dict[str, type[Exception]] = {
    "NotImplementedError": NotImplementedError,
    "ValueError": ValueError,
    "StoreTimeout": StoreTimeout,
}
