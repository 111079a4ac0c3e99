"""What a run of ranks can end with when it does not end well, and what was noticed on the way."""

from __future__ import annotations

from dataclasses import dataclass

from kit.errors import KitError

KINDS = (
    "hang",  # every live rank waits and nothing can move
    "race",  # a buffer of an operation in flight was touched
    "mismatch",  # ranks of one group issued operations that do not fit together
    "crash",  # a rank raised, died or left without returning
    "deadline",  # ranks were still running when the time was up
    "output",  # a rank printed more than it may
    "memory",  # a rank asked for more memory than it may
    "interface",  # the program under test lacks what the caller asked for (exceptions with `kit_kind`)
    "refused",  # a rank broke the protocol or used what is forbidden
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something seen in a run that does not end it.

    kind: "unwaited" (a work nobody waited for), "incomplete" (an operation that never completed), "portability"
    (works here, not everywhere), "autograd" (a plain collective inside a differentiable path), "non_member" (a
    collective on a group that the rank is not in), "killed" (by a fault, as planned), "stranded" (it waited for ever
    for a killed rank), "fault" (one that never struck), "note".
    """

    kind: str
    rank: int
    message: str
    site: str = ""

    def __str__(self) -> str:
        where = f" ({self.site})" if self.site else ""
        return f"rank {self.rank}: {self.message}{where}"


class NotMeasured(KitError):
    """What was asked for was not measured in this run; the message says why."""


class WorldError(Exception):
    """A run that failed; `str(error)` is the whole diagnosis, `message` its one-line cause.

    kind is one of KINDS; rank is the first rank that failed, None where no one rank is the cause; site is the
    program's own line ("solution.py:41") where it is known; traceback is the program's traceback without the frames
    of torch and of this kit (crashes only), frames the same as (file, line, function, text); exception_type is the
    name of what was raised.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        details: str = "",
        rank: int | None = None,
        site: str = "",
        exception_type: str = "",
        traceback: str = "",
        frames: tuple[tuple[str, int, str, str], ...] = (),
        findings: tuple[Finding, ...] = (),
        stdout: tuple[str, ...] = (),
        stderr: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message if not details else f"{message}\n{details}")
        self.kind = kind
        self.message = message
        self.details = details
        self.rank = rank
        self.site = site
        self.exception_type = exception_type
        self.traceback = traceback
        self.frames = frames
        self.findings = findings
        self.stdout = stdout
        self.stderr = stderr
