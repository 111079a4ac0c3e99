"""What a user did wrong, and what to do next."""

from __future__ import annotations


class KitError(Exception):
    """A user's mistake: the command prints message and hint and ends with exit code 2."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
