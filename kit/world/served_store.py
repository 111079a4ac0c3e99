"""Keys and values that ranks share: the served half of torch.distributed's Store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit.world.wire import ProtocolError

_BLOCKING = frozenset(("get", "wait"))
_RACING = frozenset(("set", "add", "append", "check", "compare_set", "delete", "num_keys"))
_CHANGING = frozenset(("set", "add", "append", "compare_set", "delete"))
_MAX_KEYS = 100_000
_MAX_BYTES = 1 << 28
_NUMBER_BYTES = 64  # room for what a counter grows to


@dataclass(frozen=True, slots=True)
class StoreRequest:
    """One request of a rank to the store."""

    rank: int
    request: int
    what: str
    keys: tuple[str, ...]
    blob: bytes
    amount: int
    expected_bytes: int
    site: str
    clock: int
    timeout_s: float | None

    @classmethod
    def read(cls, header: dict[str, Any], blob: bytes, rank: int, clock: int) -> StoreRequest:
        what = header["what"]
        if what not in _BLOCKING and what not in _RACING:
            raise ProtocolError("a request to the store that does not exist")
        keys = header.get("keys", [header["key"]] if "key" in header else [])
        timeout = header.get("timeout_s")
        return cls(
            rank, int(header["id"]), what, tuple(str(key)[:10_000] for key in keys), blob,
            int(header.get("amount", 0)), int(header.get("expected_bytes", 0)), str(header["site"])[:200], clock,
            float(timeout) if timeout is not None else None,
        )  # fmt: skip

    def title(self) -> str:
        keys = ", ".join(repr(key) for key in self.keys[:3])
        return f"store.{self.what}({keys})"


class ServedKeys:
    """The keys. `decide_at_quiescence` is off under transports whose waits this process cannot see (gloo)."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._bytes = 0
        self._num_promised = self._promised_bytes = 0  # changes that are still to be made
        self._first_writers: dict[str, tuple[int, int]] = {}
        self._last_writers: dict[str, tuple[int, int]] = {}
        self.decide_at_quiescence = True

    def blocks(self, request: StoreRequest) -> bool:
        return request.what in _BLOCKING

    def has_answer(self, request: StoreRequest) -> bool:
        return not self.blocks(request) or self.has(request.keys)

    def has(self, keys: tuple[str, ...]) -> bool:
        return all(key in self._values for key in keys)

    def writers(self, request: StoreRequest) -> tuple[tuple[int, int], ...]:
        """The changes that the answer shows, as (rank, position in the rank's log).

        A wait shows that its keys were made; a set shows nothing; everything else shows what was last done.
        """
        if request.what == "set":
            return ()
        writers = self._first_writers if request.what == "wait" else self._last_writers
        return tuple(writers[key] for key in request.keys if key in writers)

    def note_writer(self, request: StoreRequest, position: tuple[int, int]) -> None:
        """Remember that this request, once applied, is what made or changed its key."""
        key = request.keys[0] if request.keys else ""
        if request.what in _CHANGING:
            self._last_writers[key] = position
            if key in self._values:
                self._first_writers.setdefault(key, position)
            else:
                self._first_writers.pop(key, None)

    def is_free_of_races(self, request: StoreRequest) -> bool:
        """Whether it can be answered as soon as it comes: that a key is there stays true."""
        if self.blocks(request) and not self.has(request.keys):
            return False
        return request.what == "wait" or not self.decide_at_quiescence

    def promise(self, request: StoreRequest) -> None:
        """Take the request in; ProtocolError where its change would be more than ranks may keep here."""
        if request.what in _CHANGING:
            self._num_promised += 1
            self._promised_bytes += len(request.blob) + _NUMBER_BYTES
            if len(self._values) + self._num_promised > _MAX_KEYS or self._bytes + self._promised_bytes > _MAX_BYTES:
                raise ProtocolError("more in the store than ranks may keep there")

    def apply(self, request: StoreRequest) -> tuple[dict[str, Any], bytes]:
        """(fields, bytes) of the answer to a request that was promised."""
        if request.what in _CHANGING:
            self._num_promised -= 1
            self._promised_bytes -= len(request.blob) + _NUMBER_BYTES
        key = request.keys[0] if request.keys else ""
        values = self._values
        if request.what == "get":
            return {}, values[key]
        if request.what == "set":
            self._put(key, request.blob)
        elif request.what == "append":
            self._put(key, values.get(key, b"") + request.blob)
        elif request.what == "add":
            try:
                total = int(values.get(key, b"0")) + request.amount
            except ValueError:
                return {"error": f"store.add: the value of {key!r} is not a number"}, b""
            self._put(key, str(total).encode())
            return {"value": total}, b""
        elif request.what == "check":
            return {"value": self.has(request.keys)}, b""
        elif request.what == "compare_set":
            expected, desired = request.blob[: request.expected_bytes], request.blob[request.expected_bytes :]
            if values.get(key, b"") == expected:
                self._put(key, desired)
            return {}, values.get(key, expected)
        elif request.what == "delete":
            removed = values.pop(key, None)
            self._bytes -= len(removed or b"")
            return {"value": removed is not None}, b""
        elif request.what == "num_keys":
            return {"value": len(values)}, b""
        return {}, b""

    def _put(self, key: str, value: bytes) -> None:
        self._bytes += len(value) - len(self._values.get(key, b""))
        self._values[key] = value
