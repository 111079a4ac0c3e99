"""Virtual time while the ranks still run: which of several things that may happen comes first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kit.hardware import Profile, profile
from kit.world.rank_state import RankState
from kit.world.record import recorded
from kit.world.replay import EventLoop, Moment


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that may happen now: at the latest of `moments`, plus `extra_s`.

    Ties go to the lower (rank, number), then to what was first by the last of the moments, then to the lower source.
    is_late: it comes after everything that is not.
    has_happened: others may know of it already; ties go to it, and among its like to what came first.
    """

    rank: int
    number: int
    moments: tuple[Moment, ...]
    act: Callable[[], None]
    extra_s: float = 0.0
    source: tuple[int, int] = (-1, -1)
    is_late: bool = False
    has_happened: bool = False


class Clocks:
    """A replay that is fed with the logs when something has to be decided, and at no other time.

    It goes no further than the earliest choice: what a rank will do later cannot reach back before that, so its
    moments are those of the finished timeline.
    """

    def __init__(self, ranks: Sequence[RankState], hardware: Profile | None = None) -> None:
        self.hardware = hardware
        self._ranks = ranks
        self._loop: EventLoop | None = None
        self._positions: dict[Moment, int] = {}

    def earliest(self, choices: Sequence[Choice]) -> Choice:
        """The choice that comes first in virtual time."""
        punctual = [choice for choice in choices if not choice.is_late] or list(choices)
        if len(punctual) == 1:
            return punctual[0]
        loop = self._resumed()
        missing: dict[Moment, list[int]] = {}
        num_missing = [0] * len(punctual)
        best_s = math.inf
        for index, choice in enumerate(punctual):
            for moment in choice.moments:
                if loop.moment_s(moment) is None:
                    missing.setdefault(moment, []).append(index)
                    num_missing[index] += 1
            if not num_missing[index]:
                best_s = min(best_s, self._at_s(loop, choice))
        while loop.next_s <= best_s and missing:
            loop.step()
            for moment in self._news(loop):
                for index in missing.pop(moment, ()):
                    num_missing[index] -= 1
                    if not num_missing[index]:
                        best_s = min(best_s, self._at_s(loop, punctual[index]))
        known = [choice for choice, count in zip(punctual, num_missing, strict=True) if not count]
        return min(known or punctual, key=lambda choice: self._key(loop, choice))

    def is_over(self, rank: int, order: int, within_s: float) -> bool:
        """Whether that operation of a waiting rank is complete when the rank's clock has gone on by `within_s`."""
        loop = self._resumed()
        clock: Moment = ("clock", rank, 0)
        while loop.next_s < math.inf:
            now_s = loop.moment_s(clock)
            if now_s is not None and loop.next_s > now_s + within_s:
                break
            loop.step()
            self._news(loop)
        done_s = loop.moment_s(("done", rank, order))
        return done_s is not None and done_s <= _known(loop.moment_s(clock)) + within_s

    def _resumed(self) -> EventLoop:
        if self._loop is None:
            hardware = self.hardware if self.hardware is not None else profile("ideal")
            self._loop = EventLoop(
                hardware,
                [state.events for state in self._ranks],
                lambda rank, order: recorded(self._ranks[rank].issued[order]),
            )
        self._loop.resume()
        self._news(self._loop)
        return self._loop

    def _news(self, loop: EventLoop) -> list[Moment]:
        """What has come since it was last asked for; the order is one of cause and effect."""
        news, loop.news = loop.news, []
        for moment in news:
            if moment[0] in ("issued", "stored"):
                self._positions[moment] = len(self._positions)
        return news

    def _at_s(self, loop: EventLoop, choice: Choice) -> float:
        return max(_known(loop.moment_s(moment)) for moment in choice.moments) + choice.extra_s

    def _key(self, loop: EventLoop, choice: Choice) -> tuple[Any, ...]:
        last = choice.moments[-1]
        position = self._positions.get(last, -1)
        at_s, last_s = self._at_s(loop, choice), _known(loop.moment_s(last))
        if choice.has_happened:
            return at_s, 0, position
        return at_s, 1, choice.rank, choice.number, last_s, position, choice.source


def _known(moment_s: float | None) -> float:
    return math.inf if moment_s is None else moment_s
