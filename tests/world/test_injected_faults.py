"""Faults strike where they were aimed, the same on every run, and are named as the cause; what never struck is said."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from kit.errors import KitError
from kit.world import World, WorldError
from kit.world.faults import Delay, Drop, FilesystemEvent, Kill, Operation, Step, Straggler
from tests.world import programs_injected as programs

ROOT = Path(__file__).resolve().parents[2]


def line_of(function, text, nth=0):
    """ "programs_injected.py:N" of the n-th line of a program that contains `text`."""
    source, start = inspect.getsourcelines(function)
    return f"programs_injected.py:{[start + i for i, line in enumerate(source) if text in line][nth]}"


@pytest.fixture
def run(zygote):
    def launch(program, size, *faults, inputs=None, **options):
        return World(size, zygote=zygote, deadline_s=20, faults=faults, **options).run(program, inputs)

    return launch


@pytest.fixture
def failure(run):
    def launch(*arguments, **options):
        with pytest.raises(WorldError) as caught:
            run(*arguments, **options)
        return caught.value

    return launch


def of_kind(result, kind):
    return [finding for finding in result.findings if finding.kind == kind]


# What a fault may be ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: Kill(-1, Step()),
        lambda: Kill(True, Step()),
        lambda: Kill(1, 3),
        lambda: Kill(1, Operation(), torn=True),
        lambda: Step(0),
        lambda: Step(1.0),
        lambda: Step(1, name=3),
        lambda: Operation(1, "allreduce"),
        lambda: Operation(1, group=2),
        lambda: FilesystemEvent(1, "close"),
        lambda: Delay(1, Step(), -1.0),
        lambda: Delay(1, Step(), float("inf")),
        lambda: Delay(1, Step(), 1e13),
        lambda: Delay(1, Step(), True),
        lambda: Drop(1, Step()),
        lambda: Drop(1, FilesystemEvent()),
        lambda: Drop(1, Operation(1, "recv")),
        lambda: Straggler(1),
        lambda: Straggler(1, 0.5),
        lambda: Straggler(1, float("nan")),
        lambda: World(2, faults=[Kill(2, Step())]),
        lambda: World(2, faults=["kill"]),
        lambda: World(2, faults=[Kill(1, Step())], transport="gloo"),
        lambda: World(2).run(programs.three_steps, faults=[Straggler(5, 2.0)]),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(make):
    with pytest.raises(KitError):
        make()


def test_a_fault_is_written_as_it_was_given():
    assert repr(Kill(2, Operation(5))) == "Kill(rank=2, at=Operation(n=5))"
    fault = Kill(1, FilesystemEvent(3, "rename"), torn=True)
    assert repr(fault) == "Kill(rank=1, at=FilesystemEvent(n=3, kind='rename'), torn=True)"
    assert eval(repr(fault)) == fault
    assert Operation(1, group=[0, 2]).group == (0, 2)


# Kill ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault, where",
    [
        (Kill(2, Operation(2)), "at its operation 2, all_reduce #2 ({op})"),
        (Kill(1, Operation(3, "all_reduce")), "at its operation 3, all_reduce #3 ({op})"),
        (Kill(1, Operation(1, group=(0, 1, 2))), "at its operation 1, all_reduce #1 ({op})"),
        (Kill(2, Step(1)), "at its step 1, the mark 'step 0' ({mark})"),
        (Kill(1, Step(name="step 2")), "at its step 3, the mark 'step 2' ({mark})"),
    ],
)
def test_a_killed_rank_is_the_cause_whoever_waits_for_it(failure, fault, where):
    sites = {
        "op": line_of(programs.three_steps, "all_reduce"),
        "mark": line_of(programs.three_steps, "mark"),
    }
    errors = [failure(programs.three_steps, 3, fault) for _ in range(3)]
    error = errors[0]
    assert (error.kind, error.rank) == ("crash", fault.rank)
    assert error.message == f"rank {fault.rank} was killed by the fault {fault!r} " + where.format(**sites)
    assert f"  {fault.rank}     killed    " in error.details
    assert "  0     waits in  all_reduce #" in error.details
    assert {str(again) for again in errors} == {str(error)}


def test_a_group_s_operations_are_counted_by_themselves(failure):
    error = failure(programs.groups_and_messages, 4, Kill(2, Operation(1, group=(1, 2))))
    assert "at its operation 2, all_reduce #1" in error.message
    assert error.site == line_of(programs.groups_and_messages, "group=pair")
    assert re.search(r"1     waits in  all_reduce #1 +ranks \[1, 2\]", error.details)
    assert "0     waits in  barrier #2" in error.details
    error = failure(programs.groups_and_messages, 4, Kill(2, Operation(1, "recv")))
    assert "at its operation 3, recv from rank 1" in error.message


def test_a_rank_that_computes_goes_no_further(failure, tmp_path):
    """The kill strikes at the mark: what comes after it never happens, not even for a moment."""
    note = tmp_path / "note"
    error = failure(
        programs.marks_in_the_middle_of_computing, 3, Kill(1, Step(name="half")), inputs=[{"note": str(note)}] * 3
    )
    assert error.rank == 1 and not note.exists()


def test_a_rank_goes_no_further_than_an_operation_that_does_not_block(failure, tmp_path):
    note = tmp_path / "note"
    inputs = [{"note": str(note)}] * 3
    error = failure(programs.issues_and_writes, 3, Kill(1, Operation(1, "all_reduce")), inputs=inputs)
    assert error.rank == 1 and not note.exists()


def test_ranks_in_a_store_barrier_wait_for_the_killed_one(failure, run):
    error = failure(programs.store_barrier, 3, Kill(1, Step(1)))
    assert error.rank == 1 and "2     waits in  store.wait('0//here/0', '0//here/1'," in error.details
    result = run(programs.store_barrier, 3, Kill(1, Step(1)), allow_killed=True)
    assert result.ranks == (None, None, None)
    assert [(f.rank, f.site) for f in of_kind(result, "stranded")] == [
        (rank, line_of(programs.store_barrier, "store.wait")) for rank in (0, 2)
    ]


def test_ddp_names_the_killed_rank_without_delay(failure):
    """The deadline is a minute; the grace for first causes a second; neither is waited for."""
    started = time.monotonic()
    error = failure(programs.trains_with_ddp, 3, Kill(1, Operation(6)))
    assert time.monotonic() - started < 20
    assert (error.kind, error.rank) == ("crash", 1)
    assert error.message.startswith("rank 1 was killed by the fault Kill(rank=1, at=Operation(n=6)) at its operation 6")


def test_a_kill_is_the_cause_whatever_else_fails(failure):
    """Also where another rank fails at an earlier point of its own log, or would run into a timeout."""
    error = failure(programs.one_error_at_once, 3, Kill(2, Operation(1)))
    assert error.rank == 2 and error.message.startswith("rank 2 was killed by the fault")
    inputs = [{"patient": [1]}] * 3
    error = failure(programs.one_timeout, 3, Kill(2, Operation(1)), inputs=inputs)
    assert error.rank == 2


# A kill that is planned ---------------------------------------------------------------------------------------------


def test_a_planned_kill_is_no_error(run):
    results = [run(programs.chain, 4, Kill(1, Step(1)), allow_killed=True) for _ in range(3)]
    first = results[0]
    assert first.killed == (1,) and first.ranks == (0, None, None, None)
    assert [str(finding) for finding in first.findings] == [
        "rank 1: was killed by the fault Kill(rank=1, at=Step(n=1)) at its step 1, the mark 'begin' "
        f"({line_of(programs.chain, 'inside.mark')})",
        f"rank 2: waited for ever in recv from rank 1 after rank 1 had been killed "
        f"({line_of(programs.chain, 'dist.recv(x, 1)')})",
        f"rank 3: waited for ever in recv from rank 2 after rank 1 had been killed "
        f"({line_of(programs.chain, 'dist.recv(x, 2)')})",
    ]
    assert {tuple(map(str, result.findings)) for result in results} == {tuple(map(str, first.findings))}


def test_two_ranks_may_be_killed(run):
    result = run(programs.three_steps, 4, Kill(3, Operation(1)), Kill(1, Step(1)), allow_killed=True)
    assert result.killed == (1, 3)
    assert [f.rank for f in of_kind(result, "stranded")] == [0, 2]


def test_a_timeout_that_the_kill_causes_is_no_error_and_its_words_are_kept(run):
    inputs = [{"patient": [1]}] * 3
    result = run(programs.one_timeout, 3, Kill(2, Operation(1)), inputs=inputs, allow_killed=True)
    assert result.killed == (2,) and result.ranks == (None, None, None)
    texts = {finding.rank: finding.message for finding in of_kind(result, "stranded")}
    assert "Timed out waiting 2000ms for all_reduce #1" in texts[0]
    assert texts[1] == "waited for ever in all_reduce #1 after rank 2 had been killed"


def test_an_error_of_a_survivor_s_own_is_an_error_for_all_that(failure):
    error = failure(programs.one_error_after_the_kill, 3, Kill(2, Operation(1)), allow_killed=True)
    assert (error.kind, error.rank, error.exception_type) == ("crash", 0, "KeyError")


def test_survivors_that_deadlock_on_their_own_are_a_hang(failure):
    error = failure(programs.two_survivors_deadlock, 3, Kill(2, Step(1)), allow_killed=True)
    assert error.kind == "hang" and error.message.startswith("a cycle: rank 0 waits in recv from rank 1")
    assert "2     killed" in error.details


def test_faults_of_one_run_are_not_those_of_the_next(zygote):
    world = World(2, zygote=zygote, faults=[Kill(1, Operation(1))], allow_killed=True)
    assert world.run(programs.three_steps).killed == (1,)
    assert world.run(programs.three_steps, faults=[]).killed == ()
    with pytest.raises(WorldError, match="rank 0 was killed"):
        world.run(programs.three_steps, faults=[Kill(0, Step(2))], allow_killed=False)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts what is in /proc")
def test_a_kill_leaves_nothing_behind(zygote, tmp_path):
    world = World(3, zygote=zygote, allow_killed=True)
    inputs = [{"dir": str(tmp_path)}] * 3

    def ranks():
        with open(f"/proc/{zygote.pid}/task/{zygote.pid}/children") as file:
            return file.read().split()

    world.run(programs.three_steps)
    before = len(os.listdir("/proc/self/fd"))
    world.run(programs.three_steps, faults=[Kill(1, Operation(2))])
    assert ranks() == []
    world.run(programs.every_kind_of_event, inputs, faults=[Kill(1, FilesystemEvent(1))])
    with pytest.raises(WorldError):
        world.run(programs.three_steps, faults=[Kill(1, Step(2))], allow_killed=False)
    assert ranks() == [] and len(os.listdir("/proc/self/fd")) == before and list(tmp_path.iterdir()) == []


# Drop ---------------------------------------------------------------------------------------------------------------


def test_a_dropped_message_is_named_by_the_hang_that_it_makes(failure):
    fault = Drop(1, Operation(1, "send"))
    errors = [failure(programs.a_message_and_a_barrier, 3, fault) for _ in range(3)]
    site = line_of(programs.a_message, "dist.send")
    assert (errors[0].kind, errors[0].rank, errors[0].site) == ("hang", 1, site)
    assert errors[0].message == f"the message of rank 1's send to rank 2 ({site}) was dropped by the fault {fault!r}"
    assert "0     waits in  barrier #1" in errors[0].details
    assert len({str(error) for error in errors}) == 1


def test_a_dropped_part_of_a_collective_hangs_everybody(failure):
    fault = Drop(2, Operation(2))
    error = failure(programs.three_steps, 4, fault)
    site = line_of(programs.three_steps, "all_reduce")
    assert error.message == f"the part of rank 2's all_reduce #2 ({site}) was dropped by the fault {fault!r}"
    assert error.details.count("waits in  all_reduce #2") == 4


def test_a_program_with_a_timeout_sees_it_and_may_send_again(run):
    result = run(programs.sends_again_when_nobody_answers, 3, Drop(1, Operation(1)))
    assert result.ranks[1]["tries"] == 2 and torch.equal(result.ranks[2]["x"], torch.ones(3))
    assert result.findings == ()
    assert run(programs.sends_again_when_nobody_answers, 3).ranks[1]["tries"] == 1


def test_a_hang_of_the_program_s_own_is_not_put_on_a_drop(failure):
    """The drop was made good; what hangs is two receives."""
    error = failure(programs.sends_again_and_then_deadlocks, 3, Drop(1, Operation(1)))
    assert error.kind == "hang" and "dropped" not in error.message and "recv from rank 2" in error.message


# Delays and stragglers, in the record and on the clock ---------------------------------------------------------------


def computes(result, rank):
    return [(event.what, event.seconds) for event in result.trace.events(rank) if event.kind == "compute"]


def test_a_straggler_s_computes_cost_more_and_nobody_else_s(run):
    result = run(programs.three_steps, 3, Straggler(1, 2.5))
    assert computes(result, 1) == [("F", 2.5), ("B", 5.0)] * 3
    for rank in (0, 2):
        assert computes(result, rank) == [("F", 1.0), ("B", 2.0)] * 3
    assert torch.equal(result.ranks[0], torch.full((4,), 27.0)) and not result.findings


def test_a_straggler_s_counted_flops_and_its_services_cost_more(run):
    services = {"layer": programs.layer}
    result = run(programs.counts_and_calls, 2, Straggler(1, 3.0), services=services)
    costs = [[(e.flops, e.seconds) for e in result.trace.events(r) if e.kind == "compute"] for r in (0, 1)]
    assert costs == [[(10, 0.0), (0, 4.0)], [(30, 0.0), (0, 12.0)]]


def test_a_straggler_may_issue_late(run):
    result = run(programs.three_steps, 2, Straggler(1, operation_delay_s=0.25))
    kinds = [event.what or event.kind for event in result.trace.events(1)]
    assert kinds[:5] == ["step 0", "F", "delay", "issue", "wait"]
    assert [seconds for what, seconds in computes(result, 1) if what == "delay"] == [0.25] * 3
    assert "delay" not in dict(computes(result, 0))


def test_a_delay_stands_after_its_mark_and_before_its_operation(run, tmp_path):
    delays = [Delay(1, Step(2), 7.0), Delay(1, Operation(3), 0.5)]
    events = run(programs.three_steps, 2, *delays).trace.events(1)
    found = [i for i, event in enumerate(events) if event.what == "delay"]
    assert [events[i].seconds for i in found] == [7.0, 0.5]
    assert events[found[0] - 1].what == "step 1"
    assert events[found[1] + 1].kind == "issue" and events[found[1] + 1].operation == 2
    inputs = [{"dir": str(tmp_path)}] * 2
    result = run(programs.every_kind_of_event, 2, Delay(1, FilesystemEvent(2, "write"), 3.0), inputs=inputs)
    assert computes(result, 1) == [("delay", 3.0)] and result.ranks == (True, True) and not result.findings


def test_delays_and_stragglers_show_on_the_timeline(run):
    """Three steps of 3 s; the straggler's take 6 s, and one delay 5 s: everybody waits for it."""
    assert run(programs.three_steps, 3).timeline.makespan_s == 9.0
    slow = run(programs.three_steps, 3, Straggler(1, 2.0), Delay(1, Step(2), 5.0)).timeline
    assert slow.makespan_s == 6 * 3 + 5
    assert [slow.busy_s(rank) for rank in range(3)] == [9.0, 23.0, 9.0]
    assert [span.what for span in slow.of(1, "compute")].count("delay") == 1


def test_what_timing_decides_follows_a_delay(run):
    """A receive from any rank takes the message that comes first in virtual time."""
    assert run(programs.first_come, 3).ranks[0] == [1, 2]
    assert run(programs.first_come, 3, Straggler(1, 2.0)).ranks[0] == [2, 1]
    assert run(programs.first_come, 3, Delay(1, Operation(1), 3.0)).ranks[0] == [2, 1]


def test_a_collective_with_a_timeout_may_be_tried_again_by_all(run):
    result = run(programs.reduces_again, 3, Drop(1, Operation(1)))
    assert [(rank["tries"], rank["x"].item()) for rank in result.ranks] == [(2, 3.0)] * 3
    assert not result.findings


# The n-th filesystem event --------------------------------------------------------------------------------------------


EVENTS = [
    ("mkdir", "d"), ("open", "a"), ("write", "a"), ("fsync", "a"), ("open", "b"), ("write", "b"), ("truncate", "b"),
    ("rename", "a"), ("link", "b"), ("remove", "b"), ("truncate", "e"), ("open", "saved.pt"), ("write", "saved.pt"),
]  # fmt: skip


@pytest.mark.parametrize("n", range(1, len(EVENTS) + 1))
def test_every_kind_of_filesystem_event_is_counted_in_order(run, tmp_path, n):
    kind, name = EVENTS[n - 1]
    fault = Kill(1, FilesystemEvent(n))
    result = run(programs.every_kind_of_event, 3, fault, inputs=[{"dir": str(tmp_path)}] * 3, allow_killed=True)
    assert result.killed == (1,)
    killed = of_kind(result, "killed")[0]
    assert killed.message == f"was killed by the fault {fault!r} before its filesystem event {n}, {kind} of {name!r}"
    assert killed.site.startswith("programs_injected.py:")
    assert (tmp_path / "d").exists() == (n > 1)
    assert (tmp_path / "d" / "c").exists() == (n > 8) and (tmp_path / "b").exists() == (5 < n <= 10)


def test_events_of_one_kind_are_counted_by_themselves(run, tmp_path):
    fault = Kill(1, FilesystemEvent(2, "truncate"))
    result = run(programs.every_kind_of_event, 2, fault, inputs=[{"dir": str(tmp_path)}] * 2, allow_killed=True)
    assert "before its filesystem event 11, truncate of 'e'" in of_kind(result, "killed")[0].message


def test_an_unplanned_kill_at_a_filesystem_event_is_the_cause(failure, tmp_path):
    error = failure(
        programs.every_kind_of_event, 2, Kill(1, FilesystemEvent(1, "fsync")), inputs=[{"dir": str(tmp_path)}] * 2
    )
    assert error.rank == 1 and error.site == line_of(programs.every_kind_of_event, "os.fsync")
    assert "0     waits in  barrier #1" in error.details


def crashes(run, save, folder, torn, size=2, rank=1):
    """Save version after version, each time with a crash one event later, and load; until no crash came.

    [(versions that may be there, what rank `rank` loaded)].
    """

    def inputs(version=0):
        return [{"dir": str(folder), "version": version}] * size

    run(save, size, inputs=inputs(0))
    seen, there = [], 0
    for n in range(1, 60):
        fault = Kill(rank, FilesystemEvent(n), torn=torn)
        result = run(save, size, fault, inputs=inputs(n), allow_killed=True)
        loaded = run(programs.loads, size, inputs=inputs()).ranks[rank]
        if not result.killed:
            assert loaded["version"] == n
            return seen
        seen.append(({there, n}, loaded))
        there = loaded.get("version", there)
    raise AssertionError("more events than this test expects")


def is_whole(allowed, loaded):
    return loaded.get("version") in allowed and bool((loaded["weight"] == loaded["version"]).all())


@pytest.mark.parametrize("torn", [False, True])
def test_a_writer_in_place_loses_the_checkpoint_in_a_crash(run, tmp_path, torn):
    outcomes = crashes(run, programs.saves_in_place, tmp_path, torn)
    assert outcomes and not all(is_whole(*outcome) for outcome in outcomes)
    assert is_whole(*outcomes[0])  # before the file is opened


def test_a_writer_that_fsyncs_and_renames_loses_nothing_in_any_crash(run, tmp_path):
    for torn in (False, True):
        folder = tmp_path / str(torn)
        folder.mkdir()
        outcomes = crashes(run, programs.saves_atomically, folder, torn)
        assert len(outcomes) >= 5 and all(is_whole(*outcome) for outcome in outcomes)


def test_a_rename_without_fsync_is_safe_from_kills_and_not_from_power_loss(run, tmp_path):
    for torn in (False, True):
        folder = tmp_path / str(torn)
        folder.mkdir()
        outcomes = crashes(run, programs.saves_and_renames_without_fsync, folder, torn)
        assert all(is_whole(*outcome) for outcome in outcomes) == (not torn)


# Faults that never strike ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault, why",
    [
        (Kill(1, Operation(4)), "rank 1 had 3 operations"),
        (Kill(1, Operation(2, "barrier")), "rank 1 had 3 operations, 0 of them like that"),
        (Kill(1, Operation(1, group=(0, 2))), "rank 1 had 3 operations, 0 of them like that"),
        (Delay(2, Step(9), 1.0), "rank 2 had 3 marks"),
        (Delay(2, Step(1, "step 7"), 1.0), "rank 2 had 3 marks, 0 of them of that name"),
        (Drop(1, Operation(4)), "rank 1 had 3 operations"),
        (Kill(0, FilesystemEvent(1)), "rank 0 had no filesystem events"),
    ],
)
def test_a_fault_that_never_struck_is_a_finding(run, fault, why):
    result = run(programs.three_steps, 3, fault, allow_killed=True)
    assert result.killed == ()
    assert [str(f) for f in result.findings] == [f"rank {fault.rank}: the fault {fault!r} never struck: {why}"]


def test_a_drop_of_a_receive_says_what_to_drop_instead(run):
    result = run(programs.a_message, 3, Drop(2, Operation(1)))
    assert [f.message.split("never struck: ")[1] for f in of_kind(result, "fault")] == [
        "operation 1 of rank 2 is recv from rank 1, which sends nothing"
    ]


def test_a_fault_behind_a_kill_never_strikes(run):
    faults = [Kill(1, Operation(2)), Delay(1, Operation(3), 1.0)]
    result = run(programs.three_steps, 2, *faults, allow_killed=True)
    assert [f.message.split("never struck: ")[1] for f in of_kind(result, "fault")] == [
        "rank 1 had 2 operations before it was killed"
    ]


def test_a_run_without_faults_watches_no_files(run):
    """Nothing of the program's is wrapped where no fault asks for it."""
    assert run(programs.what_open_is, 2).ranks == ("open", "open")
    watched = run(programs.what_open_is, 2, Kill(1, FilesystemEvent(9)))
    assert watched.ranks[0] == "open" and watched.ranks[1] != "open"


def test_the_example_of_the_documentation_does_what_it_says(tmp_path):
    text = (ROOT / "docs" / "world.md").read_text("utf-8").split("\n## Faults\n")[1]
    (tmp_path / "test_pasted.py").write_text(text.split("```python\n")[1].split("```")[0])
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "kit.grading.plugin", "-q", "test_pasted.py"],
        capture_output=True, text=True, timeout=240, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "1 passed, 1 xfailed" in ended.stdout, ended.stdout + ended.stderr
