"""Whether torch is there, without importing it."""

from __future__ import annotations

from kit.errors import KitError


def require_torch(purpose: str, otherwise: str) -> None:
    """Raises KitError where torch is not installed."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise KitError(
            f"{purpose}, and torch is not installed", hint=f"{otherwise}; `shardkit doctor` says what is missing"
        )
