"""Why a typed answer is none: an error in English, and the same as a code with values, for screens in any language."""

from __future__ import annotations

from dataclasses import dataclass

from kit.errors import KitError


@dataclass(frozen=True, slots=True)
class Reason:
    """`code` names it. `values` are what goes into its phrase; the same words in every language."""

    code: str
    values: tuple[tuple[str, str], ...] = ()


class Refused(KitError):
    """What was typed is no answer, and does not count."""

    def __init__(self, code: str, message: str, hint: str | None = None, **values: object) -> None:
        super().__init__(message, hint)
        self.reason = Reason(code, tuple((name, str(value)) for name, value in values.items()))


def reason_of(error: KitError) -> Reason | None:
    return error.reason if isinstance(error, Refused) else None
