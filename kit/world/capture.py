"""What a rank prints: the beginning and the end are kept, the rest is counted."""

from __future__ import annotations

import os

KEPT_BYTES = 32 << 10
_READ_BYTES = 1 << 16


class Capture:
    """The reading end of a pipe."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.total_bytes = 0
        self._head = bytearray()
        self._tail = bytearray()

    def read(self, most_bytes: int = 1 << 22) -> bool:
        """Take what is there, up to `most_bytes`; False at the end of the pipe."""
        taken = 0
        while taken < most_bytes:
            try:
                data = os.read(self.fd, _READ_BYTES)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            taken += len(data)
            self._keep(data)
        return True

    def _keep(self, data: bytes) -> None:
        self.total_bytes += len(data)
        room = KEPT_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * KEPT_BYTES:
            del self._tail[:-KEPT_BYTES]

    def text(self) -> str:
        head, tail = bytes(self._head), bytes(self._tail[-KEPT_BYTES:])
        dropped = self.total_bytes - len(head) - len(tail)
        middle = f"\n[... {dropped} bytes left out ...]\n".encode() if dropped else b""
        return (head + middle + tail).decode("utf-8", errors="replace")

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
