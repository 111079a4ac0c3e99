"""Several runs that one process attends to."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from typing import Any

import pytest

from kit.world import World, WorldError, Zygote
from kit.world.steps import Begun, attend
from tests.world.programs_starts import add_up_often, stand_still


def finish(several: Sequence[Begun[Any]]) -> None:
    while not all(one.is_done for one in several):
        attend(several)


def test_two_runs_side_by_side_bring_what_each_brings_alone(zygote: Zygote) -> None:
    several = [Begun(World(size, zygote=zygote).steps(add_up_often)) for size in (2, 3)]
    finish(several)
    for one, size in zip(several, (2, 3), strict=True):
        assert one.error is None and one.value is not None
        alone = World(size, zygote=zygote).run(add_up_often)
        assert one.value.ranks == alone.ranks == (10.0 * size,) * size
        assert [str(op) for op in one.value.trace.operations(0)] == [str(op) for op in alone.trace.operations(0)]


def test_one_that_fails_is_no_concern_of_the_other(zygote: Zygote) -> None:
    several = [Begun(World(2, zygote=zygote).steps(program)) for program in (stand_still, add_up_often)]
    finish(several)
    assert isinstance(several[0].error, WorldError) and several[0].error.kind == "hang"
    assert several[1].value is not None and several[1].value.ranks == (20.0, 20.0)


@pytest.mark.parametrize("is_told", [True, False])
def test_time_in_which_nobody_attended_is_no_part_of_the_deadline(zygote: Zygote, is_told: bool) -> None:
    begun = Begun(World(2, deadline_s=1.5, zygote=zygote).steps(add_up_often))
    began = time.monotonic()
    select.select([], [], [], 1.6)  # attends to something else
    begun.unattended_s = time.monotonic() - began if is_told else 0.0
    finish([begun])
    if is_told:
        assert begun.value is not None and begun.value.ranks == (20.0, 20.0)
    else:
        assert isinstance(begun.error, WorldError) and begun.error.kind == "deadline"


def test_one_that_is_closed_leaves_no_rank_and_disturbs_nobody(zygote: Zygote) -> None:
    several = [Begun(World(2, zygote=zygote).steps(add_up_often)) for _ in range(2)]
    while len(zygote.rank_pids) < 4:
        zygote.read()
    ended, kept = zygote.pids(min(job for job, _ in zygote.rank_pids)), several[1]
    several[0].close()
    assert len(ended) == 2 and not any(os.path.exists(f"/proc/{pid}") for pid in ended)
    finish([kept])
    assert kept.value is not None and kept.value.ranks == (20.0, 20.0)
    assert not zygote.rank_pids and not zygote.exits, "what is known of jobs that are over is forgotten"
