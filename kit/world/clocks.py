"""Virtual time while the ranks still run: which of several things that may happen comes first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kit.hardware import Profile, profile
from kit.world.rank_state import RankState
from kit.world.record import recorded
from kit.world.replay import EventLoop, Moment


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that may happen now: at the latest of `moments`, plus `extra_s`.

    Ties go to the lower (rank, number), then to whom came first by the last of the moments, then to the lower source.
    is_late: it comes after everything that is not.
    """

    rank: int
    number: int
    moments: tuple[Moment, ...]
    act: Callable[[], None]
    extra_s: float = 0.0
    source: tuple[int, int] = (-1, -1)
    is_late: bool = False


class Clocks:
    """A replay that is fed with the logs when something has to be decided, and at no other time.

    It goes no further than the earliest choice: what a rank will do later cannot reach back before that, so its
    moments are those of the finished timeline.
    """

    def __init__(self, ranks: Sequence[RankState], hardware: Profile | None = None) -> None:
        self.hardware = hardware
        self._ranks = ranks
        self._loop: EventLoop | None = None

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
            for moment in loop.news:
                for index in missing.pop(moment, ()):
                    num_missing[index] -= 1
                    if not num_missing[index]:
                        best_s = min(best_s, self._at_s(loop, punctual[index]))
            loop.news.clear()
        known = [choice for choice, count in zip(punctual, num_missing, strict=True) if not count]
        return min(known or punctual, key=lambda choice: self._key(loop, choice))

    def _resumed(self) -> EventLoop:
        if self._loop is None:
            hardware = self.hardware if self.hardware is not None else profile("ideal")
            self._loop = EventLoop(
                hardware,
                [state.events for state in self._ranks],
                lambda rank, order: recorded(self._ranks[rank].issued[order]),
            )
        self._loop.resume()
        self._loop.news.clear()
        return self._loop

    def _at_s(self, loop: EventLoop, choice: Choice) -> float:
        return max(_known(loop.moment_s(moment)) for moment in choice.moments) + choice.extra_s

    def _key(self, loop: EventLoop, choice: Choice) -> tuple[float, int, int, float, tuple[int, int]]:
        last_s = _known(loop.moment_s(choice.moments[-1]))
        return self._at_s(loop, choice), choice.rank, choice.number, last_s, choice.source


def _known(moment_s: float | None) -> float:
    return math.inf if moment_s is None else moment_s
