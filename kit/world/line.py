"""The line between the deciding process and its zygote, and how either starts a Python of this kit."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Line:
    """One end of the pair: messages by line, descriptors in order beside them."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._buffer = bytearray()
        self._fds: deque[int] = deque()

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        data = json.dumps(message).encode() + b"\n"
        if fds:
            data = data[socket.send_fds(self.socket, [data], list(fds)) :]
        self.socket.sendall(data)

    def receive(self) -> list[dict[str, Any]] | None:
        """The complete messages after one blocking read; None when the other end is gone."""
        try:
            data, fds, _, _ = socket.recv_fds(self.socket, 1 << 16, 64)
        except ConnectionResetError:
            return None
        self._fds.extend(fds)
        if not data:
            return None
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        return [json.loads(line) for line in lines]

    def take_fds(self, count: int) -> list[int]:
        return [self._fds.popleft() for _ in range(count)]


def python_running(module: str) -> list[str]:
    """The command that runs `main()` of a module of this kit in a fresh Python, wherever the kit lies."""
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {_ROOT!r}); from {module} import main; main()"]
