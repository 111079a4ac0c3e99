"""Messages between the deciding process and one rank: a JSON header, raw bytes, and now and then a descriptor.

Frame: 4 bytes "SHK1", header length (u32), payload length (u64), header, payload. A header may announce descriptors
("fds": k), which arrive as ancillary data with or before the frame's first byte.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any

MAGIC = b"SHK1"
_FRAME = struct.Struct("<4sIQ")
MAX_HEADER_BYTES = 64 << 20
_READ_BYTES = 1 << 18
_ANCILLARY = socket.CMSG_SPACE(16 * array.array("i").itemsize)
Buffer = bytes | bytearray | memoryview


class ProtocolError(ValueError):
    """What came over the wire is not a frame that this kit sends."""


# What json.dumps and json.loads would make anew, or guess, for each of thousands of messages.
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode
_DECODE = json.JSONDecoder().decode


def frame(header: dict[str, Any], payload_bytes: int) -> bytes:
    """The frame's bytes up to the payload."""
    text = _ENCODE(header).encode()
    return _FRAME.pack(MAGIC, len(text), payload_bytes) + text


def parse_header(text: Buffer) -> dict[str, Any]:
    try:
        header = _DECODE(str(text, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a header that is not JSON: {str(error)[:80]}") from None
    if not isinstance(header, dict):
        raise ProtocolError("a header that is not an object")
    return header


def _descriptors(ancillary: Sequence[tuple[int, int, bytes]]) -> list[int]:
    found = array.array("i")
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(body[: len(body) - len(body) % found.itemsize])
    return list(found)


class Parser:
    """Incremental and bounded: feed bytes, take frames. Large payloads are read in place, once."""

    def __init__(self, max_payload_bytes: int) -> None:
        self._max_payload_bytes = max_payload_bytes
        self._buffer = bytearray()
        self._header: dict[str, Any] | None = None
        self._payload = bytearray()
        self._filled = 0

    def target(self) -> memoryview | None:
        """Where the next bytes of a large payload belong, None while a header is awaited."""
        if self._header is None or self._filled >= len(self._payload):
            return None
        return memoryview(self._payload)[self._filled :]

    def filled(self, count: int) -> None:
        self._filled += count

    def feed(self, data: Buffer) -> None:
        self._buffer += data

    def frames(self) -> list[tuple[dict[str, Any], bytearray]]:
        """Every complete frame."""
        done: list[tuple[dict[str, Any], bytearray]] = []
        while True:
            if self._header is None and not self._start():
                return done
            assert self._header is not None
            missing = len(self._payload) - self._filled
            if missing and self._buffer:
                taken = min(missing, len(self._buffer))
                self._payload[self._filled : self._filled + taken] = self._buffer[:taken]
                del self._buffer[:taken]
                self._filled += taken
                missing -= taken
            if missing:
                return done
            done.append((self._header, self._payload))
            self._header = None

    def _start(self) -> bool:
        if len(self._buffer) < _FRAME.size:
            return False
        magic, header_bytes, payload_bytes = _FRAME.unpack_from(self._buffer)
        if magic != MAGIC:
            raise ProtocolError("bytes that are not a frame")
        if header_bytes > MAX_HEADER_BYTES or payload_bytes > self._max_payload_bytes:
            raise ProtocolError(f"a frame of {header_bytes + payload_bytes} bytes, more than a rank may send")
        if len(self._buffer) < _FRAME.size + header_bytes:
            return False
        text = self._buffer[_FRAME.size : _FRAME.size + header_bytes]
        del self._buffer[: _FRAME.size + header_bytes]
        self._header = parse_header(text)
        self._payload = bytearray(payload_bytes)
        self._filled = 0
        return True


class RankEnd:
    """A rank's blocking end. Not thread-safe; `kit.world.connection` adds the locks."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._parser = Parser(1 << 40)
        self._frames: deque[tuple[dict[str, Any], bytearray]] = deque()
        self._fds: deque[int] = deque()

    def send(self, header: dict[str, Any], blobs: Sequence[Buffer] = ()) -> None:
        total = sum(len(blob) for blob in blobs)
        head = frame(header, total)
        if total <= _READ_BYTES:
            self._socket.sendall(b"".join((head, *blobs)))
            return
        self._socket.sendall(head)
        for blob in blobs:
            self._socket.sendall(blob)

    def receive(self) -> tuple[dict[str, Any], bytearray, list[int]]:
        """The next frame and its descriptors; EOFError when the deciding process is gone."""
        while not self._frames:
            target = self._parser.target()
            if target is not None and len(target) > _READ_BYTES:
                count, ancillary, _, _ = self._socket.recvmsg_into([target], _ANCILLARY)
                self._parser.filled(count)
            else:
                data, ancillary, _, _ = self._socket.recvmsg(_READ_BYTES, _ANCILLARY)
                count = len(data)
                self._parser.feed(data)
            if ancillary:
                self._fds.extend(_descriptors(ancillary))
            if not count:
                raise EOFError("the deciding process is gone")
            self._frames.extend(self._parser.frames())
        header, payload = self._frames.popleft()
        return header, payload, [self._fds.popleft() for _ in range(header.get("fds", 0))]


class DeciderEnd:
    """The deciding process's non-blocking end of one rank's socket. It never trusts what it reads."""

    def __init__(self, sock: socket.socket, max_payload_bytes: int) -> None:
        sock.setblocking(False)
        self.socket = sock
        self._parser = Parser(max_payload_bytes)
        self._out: deque[tuple[memoryview, list[int]]] = deque()

    @property
    def wants_write(self) -> bool:
        return bool(self._out)

    def send(self, header: dict[str, Any], blobs: Sequence[Buffer] = (), fds: Sequence[int] = ()) -> None:
        """Queue a frame and write what fits now. The blobs must stay unchanged until they are written."""
        total = sum(len(blob) for blob in blobs)
        head = frame({**header, "fds": len(fds)} if fds else header, total)
        if total <= _READ_BYTES:
            self._out.append((memoryview(b"".join((head, *blobs))), list(fds)))
        else:
            self._out.append((memoryview(head), list(fds)))
            self._out.extend((memoryview(blob).cast("B"), []) for blob in blobs if len(blob))
        self.flush()

    def flush(self) -> None:
        """Write as much as the socket takes; a rank that is gone is noticed when its end is read."""
        while self._out:
            view, fds = self._out[0]
            try:
                sent = socket.send_fds(self.socket, [view], fds) if fds else self.socket.send(view)
            except BlockingIOError:
                return
            except OSError:
                self._out.clear()
                return
            if sent == len(view):
                self._out.popleft()
            else:
                self._out[0] = (view[sent:], [])

    def receive(self) -> tuple[list[tuple[dict[str, Any], bytearray]], bool]:
        """(complete frames, whether the rank's end is closed). Raises ProtocolError on anything else."""
        for _ in range(64):
            target = self._parser.target()
            try:
                if target is not None and len(target) > _READ_BYTES:
                    count = self.socket.recv_into(target)
                    self._parser.filled(count)
                else:
                    data = self.socket.recv(_READ_BYTES)
                    count = len(data)
                    self._parser.feed(data)
            except BlockingIOError:
                return self._parser.frames(), False
            except OSError:
                count = 0
            if not count:
                return self._parser.frames(), True
            if count < _READ_BYTES and target is None:
                break
        return self._parser.frames(), False

    def close(self) -> None:
        self.socket.close()


def close_quietly(fds: Sequence[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
