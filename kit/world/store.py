"""The rank's view of the store that the deciding process serves: rendezvous, barriers and counters go through it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from torch._C._distributed_c10d import Store

from kit.world.connection import Connection
from kit.world.sites import call_site


class ServedStore(Store):
    """A torch.distributed Store; waiting in it counts as waiting, so a hang in it is seen like any other."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._timeout = timedelta(seconds=300)

    def _ask(self, what: str, **arguments: Any) -> tuple[dict[str, Any], bytes]:
        site, _ = call_site()
        blob = arguments.pop("blob", b"")
        header, payload, _ = self._connection.request(
            {"op": "store", "what": what, "site": site, **arguments}, [blob] if blob else []
        )
        return header, bytes(payload)

    def set(self, key: str, value: str | bytes) -> None:
        self._ask("set", key=key, blob=_bytes(value))

    def get(self, key: str) -> bytes:
        return self._ask("get", key=key)[1]

    def add(self, key: str, amount: int) -> int:
        return int(self._ask("add", key=key, amount=int(amount))[0]["value"])

    def append(self, key: str, value: str | bytes) -> None:
        self._ask("append", key=key, blob=_bytes(value))

    def check(self, keys: Sequence[str]) -> bool:
        return bool(self._ask("check", keys=list(keys))[0]["value"])

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        limit = {} if timeout is None else {"timeout_s": timeout.total_seconds()}
        self._ask("wait", keys=list(keys), **limit)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        old, new = _bytes(expected), _bytes(desired)
        return self._ask("compare_set", key=key, expected_bytes=len(old), blob=old + new)[1]

    def delete_key(self, key: str) -> bool:
        return bool(self._ask("delete", key=key)[0]["value"])

    def num_keys(self) -> int:
        return int(self._ask("num_keys")[0]["value"])

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        return True

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    @property
    def timeout(self) -> timedelta:
        return self._timeout

    def clone(self) -> ServedStore:
        return self


def _bytes(value: str | bytes | Sequence[int]) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
