"""One broken rule: where, what, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """`line` is 0 where the whole file is meant; `advice` may be empty where the message says it all."""

    path: str
    line: int
    message: str
    advice: str = ""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}" + (f"; {self.advice}" if self.advice else "")
