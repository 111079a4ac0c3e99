"""What a user may choose for a grade: the seed of its inputs, and the transport."""

from __future__ import annotations

from kit.errors import KitError

TRANSPORTS = ("both", "switchboard", "gloo")
MAX_SEED = 10**12


def require_choices(seed: int | None, transport: str) -> None:
    """KitError for a seed or a transport that does not exist."""
    if transport not in TRANSPORTS:
        raise KitError(f"no transport {transport!r}; there are {', '.join(TRANSPORTS)}")
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise KitError(f"seed {seed} is not a whole number from 0 to {MAX_SEED}")
