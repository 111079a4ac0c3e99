"""Runs that give way instead of blocking, so that one process can attend to several of them."""

from __future__ import annotations

import selectors
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before `selector` has something ready, or `limit_s` seconds have passed."""

    selector: selectors.BaseSelector
    limit_s: float


# Is resumed when its last Wait is over, with the seconds in which nobody attended to it: they do not count.
Steps = Generator[Wait, float, T]


def run_alone(steps: Steps[T]) -> T:
    """To the end, blocking where it would wait."""
    try:
        wait = next(steps)
        while True:
            wait.selector.select(max(0.0, wait.limit_s))
            wait = steps.send(0.0)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


@dataclass(slots=True)
class Begun(Generic[T]):
    """Steps that have been begun, and what came of them: a value, an error, or nothing yet."""

    steps: Steps[T]
    wait: Wait | None = None
    value: T | None = None
    error: Exception | None = None
    due: float = 0.0  # on the monotonic clock: when its wait is over, whatever is ready
    unattended_s: float = field(default=0.0)

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


def attend(several: Iterable[Begun[Any]]) -> None:
    """Wait until some of them can go on, and let those make a step."""
    waiting = [one for one in several if one.wait is not None]
    with selectors.DefaultSelector() as selector:
        for one in waiting:
            assert one.wait is not None
            selector.register(one.wait.selector.fileno(), selectors.EVENT_READ, one)  # type: ignore[attr-defined]
        limit = min(one.due for one in waiting) - time.monotonic()
        ready = {id(key.data) for key, _ in selector.select(max(0.0, limit))}
    now = time.monotonic()
    for one in waiting:
        if id(one) in ready or now >= one.due:
            one.step()
