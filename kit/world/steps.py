"""Runs that give way instead of blocking, so that one process can attend to several of them."""

from __future__ import annotations

import math
import select
import selectors
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
_LONGEST_S = 86400.0  # of one wait; poll() takes no more than some weeks


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before `selector` has something ready, or `limit_s` seconds have passed."""

    selector: selectors.BaseSelector
    limit_s: float


# Is resumed when its last Wait is over, with the seconds in which nobody attended to it: they do not count.
Steps = Generator[Wait, float, T]


@dataclass(slots=True)
class Begun(Generic[T]):
    """Steps that have been begun, and what came of them: a value, an error, or nothing yet."""

    steps: Steps[T]
    wait: Wait | None = None
    value: T | None = None
    error: Exception | None = None
    due: float = 0.0  # on the monotonic clock: when its wait is over, whatever is ready
    unattended_s: float = 0.0

    def __post_init__(self) -> None:
        self._go_on(lambda: next(self.steps))

    @property
    def is_done(self) -> bool:
        return self.wait is None

    def step(self) -> None:
        unattended_s, self.unattended_s = self.unattended_s, 0.0
        self._go_on(lambda: self.steps.send(unattended_s))

    def _go_on(self, resume: Any) -> None:
        try:
            self.wait = resume()
            self.due = time.monotonic() + self.wait.limit_s
        except StopIteration as end:
            self.wait, self.value = None, end.value
        except Exception as error:
            self.wait, self.error = None, error

    def close(self) -> None:
        """End it where it stands, and all that it has started."""
        self.steps.close()


def attend(several: Sequence[Begun[Any]]) -> bool:
    """Wait until some of them can go on, and let those make a step; whether one came to its end."""
    waiting = {one.wait.selector.fileno(): one for one in several if one.wait is not None}  # type: ignore[attr-defined]
    poll = select.poll()  # it has no descriptor to be opened and closed at every step
    for descriptor in waiting:
        poll.register(descriptor, select.POLLIN)
    limit_s = min(one.due for one in waiting.values()) - time.monotonic()
    ready = {descriptor for descriptor, _ in poll.poll(math.ceil(1e3 * min(max(0.0, limit_s), _LONGEST_S)))}
    now = time.monotonic()
    for descriptor, one in waiting.items():
        if descriptor in ready or now >= one.due:
            one.step()
    return any(one.is_done for one in waiting.values())


def run_alone(steps: Steps[T]) -> T:
    """To the end, blocking where it would wait. Raises what the steps raise."""
    begun = Begun(steps)
    try:
        while not begun.is_done:
            attend([begun])
    finally:
        begun.close()
    if begun.error is not None:
        raise begun.error
    return cast(T, begun.value)
