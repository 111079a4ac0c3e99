"""Launches that are begun ahead: others, and still each in its turn."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.bank.layout import Bank
from kit.grading.entry import load_by_path
from kit.grading.launches import Launches, Subject, Wanted
from kit.world import Zygote

TOY = Bank(Path(__file__).parent / "bank")
CHECKS = TOY.checks("toy/mean").resolve()
RIGHT = TOY.reference("toy/mean").read_text(encoding="utf-8")
LOUD = RIGHT.replace("    total = tensor", "    print('x' * (17 << 20))\n    total = tensor")
FAILS_AT_2 = RIGHT.replace("    total = tensor", "    assert dist.get_world_size() != 2, 'not two'\n    total = tensor")


@pytest.fixture
def launches(zygote: Zygote) -> Iterator[Launches]:
    made = Launches(7, lambda: zygote)
    yield made
    made.close()


KILLS_AT_2 = RIGHT.replace(
    "    total = tensor",
    "    import os, signal\n"
    "    if dist.get_world_size() == 2: os.kill(os.getppid(), 9), signal.pause()\n"
    "    total = tensor",
)


def planned(launches: Launches, text: str, folder: Path, sizes: tuple[int, ...] = (1, 2, 3)) -> list[Wanted]:
    solution = folder / "answer.py"
    solution.write_text(text, encoding="utf-8")
    scenario = load_by_path(str(CHECKS), "_checks_of_launches").MEAN
    coming = [Wanted(Subject(CHECKS, solution), scenario, size, "switchboard") for size in sizes]
    launches.plan(coming)
    return coming


def num_living(zygote: Zygote) -> int:
    zygote.read()
    return len(zygote.rank_pids)


def wait_for(zygote: Zygote, count: int) -> None:
    limit = time.monotonic() + 60
    while num_living(zygote) < count:
        assert time.monotonic() < limit, f"{num_living(zygote)} of {count} ranks were begun ahead"


def test_the_next_ones_are_begun_once_the_first_is_there(launches: Launches, zygote: Zygote, tmp_path: Path) -> None:
    first, second, third = planned(launches, RIGHT, tmp_path)
    assert launches.get(first).run is not None
    wait_for(zygote, third.world_size)  # the second may be over by now
    assert [len(launches.get(wanted).run.ranks) for wanted in (second, third)] == [2, 3]  # type: ignore[union-attr]
    assert [run.world_size for run in launches.runs()] == [1, 2, 3]
    assert num_living(zygote) == 0


def test_what_was_begun_and_never_asked_for_is_ended(launches: Launches, zygote: Zygote, tmp_path: Path) -> None:
    first, _, third = planned(launches, RIGHT, tmp_path)
    launches.get(first)
    wait_for(zygote, third.world_size)
    launches.close()
    assert num_living(zygote) == 0


def test_one_that_cost_too_much_ends_those_that_were_begun(launches: Launches, zygote: Zygote, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    quiet, *_ = planned(launches, RIGHT, tmp_path / "one", (1,))
    launches.get(quiet)
    first, second, third = planned(launches, LOUD, tmp_path)
    error = launches.get(first).error
    assert error is not None and error.kind == "output"
    for wanted in (second, third):
        assert launches.get(wanted).reason == "it printed too much at world_size=1"
    assert num_living(zygote) == 0


def test_a_failure_is_told_in_its_turn(launches: Launches, zygote: Zygote, tmp_path: Path) -> None:
    first, second, third = planned(launches, FAILS_AT_2, tmp_path)
    assert launches.get(first).run is not None
    assert launches.get(third).run is not None, "asked for out of turn"
    error = launches.get(second).error
    assert error is not None and error.kind == "crash" and "not two" in error.message


def test_who_ends_the_zygote_is_told_from_those_beside_it(tmp_path: Path) -> None:
    with Zygote.execute(("kit.grading.entry",)) as own:
        launches = Launches(7, lambda: own)
        first, second, third, again = planned(launches, KILLS_AT_2, tmp_path, (3, 2, 1, 4))
        try:
            assert [launches.get(wanted).error for wanted in (first,)] == [None]
            error = launches.get(second).error
            assert error is not None and error.kind in ("refused", "crash")
            for wanted in (third, again):  # it is not started over and over for a file that ends it
                assert launches.get(wanted).reason == "it ended the process that ranks come from at world_size=2"
        finally:
            launches.close()


@pytest.mark.skipif(sys.platform != "linux", reason="what state a process is in is read from /proc")
def test_whoever_stops_the_zygote_is_refused_at_once(tmp_path: Path) -> None:
    """Also where the launch itself comes to its end: the next ones would wait for ever."""
    stops = RIGHT + "\nimport os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\n"
    with Zygote.execute(("kit.grading.entry",)) as own:
        launches = Launches(7, lambda: own)
        own.wait_ready()
        (only,) = planned(launches, stops, tmp_path, (2,))
        launches.plan([])
        since = time.monotonic()
        error = launches.get(only).error
        assert time.monotonic() - since < 10
        assert error is not None and error.kind == "refused" and "was stopped while they ran" in error.message
        launches.close()
