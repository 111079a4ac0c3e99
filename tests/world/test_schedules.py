"""Pipeline schedules in virtual time, against their closed forms and named bounds.

F = 1 and B = 2 for one microbatch on one stage, all stages alike, and messages cost nothing (profile "ideal").
"""

from __future__ import annotations

import pytest

from kit.world import World, WorldError
from tests.world import programs_time as programs


@pytest.fixture
def timeline(zygote):
    def launch(function, size, **inputs):
        return World(size, zygote=zygote, profile="ideal").run(function, inputs=[inputs] * size).timeline

    return launch


HAND_WRITTEN = [(programs.gpipe, "blocking"), (programs.gpipe, "late"), (programs.one_forward_one_backward, "late")]


@pytest.mark.parametrize(("p", "m"), [(2, 3), (3, 3), (4, 8)])
@pytest.mark.parametrize(("program", "sends"), HAND_WRITTEN, ids=["gpipe blocking", "gpipe", "1f1b"])
def test_gpipe_and_1f1b_leave_p_minus_1_of_m_plus_p_minus_1_idle(timeline, program, sends, p, m):
    """GPipe, arXiv 1811.06965, section 2.3: (K-1)/(M+K-1) of the makespan; the same for 1F1B."""
    found = timeline(program, p, m=m, sends=sends)
    assert found.makespan_s == 3 * (m + p - 1)
    for rank in range(p):
        assert found.busy_s(rank) == 3 * m
        assert found.bubble_fraction(rank) == (p - 1) / (m + p - 1)
        assert found.exposed_s(rank) == 0


@pytest.mark.parametrize(("p", "m"), [(4, 8)])
def test_the_bubble_over_the_ideal_time(timeline, p, m):
    """PTD-P, arXiv 2104.04473, section 2.2.1: (p-1)/m of the ideal time, for both schedules."""
    for program in (programs.gpipe, programs.one_forward_one_backward):
        found = timeline(program, p, m=m, sends="late")
        assert found.idle_s(0) / found.busy_s(0) == (p - 1) / m


def test_microbatches_in_flight(timeline):
    """PTD-P, section 2.2.1: m with GPipe; at most p with 1F1B, p - rank on each rank."""
    p, m = 4, 8
    assert [timeline(programs.gpipe, p, m=m, sends="late").in_flight(rank) for rank in range(p)] == [m] * p
    found = timeline(programs.one_forward_one_backward, p, m=m, sends="late")
    assert [found.in_flight(rank) for rank in range(p)] == [4, 3, 2, 1]


def test_1f1b_with_blocking_sends_hangs(zygote):
    """A send waits for its receive, so two neighbours that both send to each other stand still for ever."""
    with pytest.raises(WorldError) as raised:
        World(4, zygote=zygote).run(programs.one_forward_one_backward, inputs=[{"m": 8, "sends": "blocking"}] * 4)
    assert raised.value.kind == "hang"


CLOSED = [("GPipe", 2, 4, 1), ("GPipe", 4, 8, 1), ("1F1B", 2, 4, 1), ("1F1B", 3, 5, 1), ("1F1B", 4, 8, 1),
          ("Interleaved1F1B", 2, 4, 2), ("Interleaved1F1B", 2, 4, 3), ("Interleaved1F1B", 4, 8, 2),
          ("LoopedBFS", 2, 4, 2), ("LoopedBFS", 4, 8, 2)]  # fmt: skip


@pytest.mark.parametrize(("schedule", "p", "m", "v"), CLOSED, ids=lambda value: str(value))
def test_torch_s_schedules_have_their_bubble(timeline, schedule, p, m, v):
    """(p-1)/(vm+p-1) of the makespan: PTD-P, section 2.2.2, prints (p-1)/(vm) of the ideal time.

    LoopedBFS is GPipe over v chunks: arXiv 2211.05953, section 4.
    """
    found = timeline(programs.torch_schedule, p, schedule=schedule, m=m, v=v, costs=(1.0, 2.0), split=False)
    step = found.between("step 2", "step 2 done")
    assert [step.busy_s(rank) for rank in range(p)] == [3 * v * m] * p
    assert [step.bubble_fraction(rank) for rank in range(p)] == [(p - 1) / (v * m + p - 1)] * p


@pytest.mark.parametrize(("schedule", "p", "m"), [("ZBVZeroBubble", 2, 6), ("ZBVZeroBubble", 4, 8)])
def test_zbv_is_better_than_zb_h1(timeline, schedule, p, m):
    """Zero Bubble, arXiv 2401.10241, table 2 (its B is I here): idle (p-1)(F+I-W) with ZB-H1, (p-1)(F+I+W) with 1F1B.

    With F = I = W and two chunks of half a stage each, ZB-V has no bubble in the steady state (section 6): its idle
    time is below ZB-H1's. A worker holds at most 2p chunks of activations, p whole stages' worth.
    """
    costs = (1.0, 1.0, 1.0)
    found = timeline(programs.torch_schedule, p, schedule=schedule, m=m, v=2, costs=costs, split=True)
    step = found.between("step 2", "step 2 done")
    chunk_s, stage_s = 1.0, 2.0
    for rank in range(p):
        assert step.busy_s(rank) == 3 * 2 * m * chunk_s
        assert 0 <= step.idle_s(rank) < (p - 1) * (stage_s + stage_s - stage_s) + 1e-9
        assert step.in_flight(rank, per_label=True) <= 2 * p
        assert {span.what for span in step.of(rank, "compute")} == {"F", "I", "W"}


@pytest.mark.parametrize(("p", "m", "v"), [(2, 4, 2), (4, 8, 2)])
def test_interleaved_zero_bubble_is_better_than_interleaved_1f1b(timeline, p, m, v):
    """The weight gradients fill what interleaved 1F1B leaves idle: (p-1)(F+I+W) of one chunk."""
    costs = (1.0, 1.0, 1.0)
    found = timeline(programs.torch_schedule, p, schedule="InterleavedZeroBubble", m=m, v=v, costs=costs, split=True)
    step = found.between("step 2", "step 2 done")
    for rank in range(p):
        assert step.busy_s(rank) == 3 * v * m
        assert step.idle_s(rank) < (p - 1) * sum(costs)
