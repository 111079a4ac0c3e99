"""Every way a run goes wrong is named exactly, by kind, rank and line, and ends as an error, never as a hang."""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import re
import time

import pytest

from kit.world import World, WorldError
from tests.world import programs_faults as programs


def line_of(function, text):
    """ "programs_faults.py:N" of the n-th line of a program that contains `text`."""
    source, start = inspect.getsourcelines(function)
    matches = [start + i for i, line in enumerate(source) if text in line]
    assert matches, text
    return f"programs_faults.py:{matches[0]}"


@pytest.fixture
def failure(zygote):
    """Run a program on n ranks and return the WorldError that it ends with."""

    def run(program, size=3, inputs=None, **options):
        with pytest.raises(WorldError) as caught:
            World(size, zygote=zygote, **{"deadline_s": 20, **options}).run(program, inputs)
        return caught.value

    return run


def says(error, *patterns):
    for pattern in patterns:
        assert re.search(pattern, str(error)), f"{pattern!r} is not in:\n{error}"


# Collectives that do not meet ----------------------------------------------------------------------------------------


def test_a_skipped_collective_names_who_skipped_it_and_where_the_others_wait(failure):
    error = failure(programs.skips_a_collective)
    assert error.kind == "hang"
    site = line_of(programs.skips_a_collective, "        dist.all_reduce(x)")
    says(error, rf"rank 0 never called all_reduce #2 of group WORLD in which ranks 1, 2 wait \({site}\)")
    says(error, "rank 0 returned after its 1 operation")


def test_a_skip_that_goes_on_is_aligned_at_the_first_difference(failure):
    error = failure(programs.skips_and_goes_on)
    assert error.kind == "mismatch"
    says(error, "mismatch at operation 1 of group WORLD: different operations: rank 0: barrier, ranks 1, 2: all_reduce")
    assert error.rank == 0
    assert error.site == line_of(programs.skips_and_goes_on, "dist.barrier()")


def test_swapped_order_is_a_mismatch_with_both_lines(failure):
    error = failure(programs.order_swapped)
    assert (error.kind, error.rank) == ("mismatch", 1)
    says(error, rf"rank 0: all_reduce.*{line_of(programs.order_swapped, '        dist.all_reduce(x)').split(':')[0]}")
    says(error, rf"rank 1: broadcast\(root=0\).*{line_of(programs.order_swapped, 'dist.broadcast(y, 0)')}")


@pytest.mark.parametrize(
    "program, cause",
    [
        (programs.shapes_differ, r"different shapes: ranks 0, 1: float32 \[4\], rank 2: float32 \[5\]"),
        (programs.dtypes_differ, "different dtypes: ranks 0, 2: float32, rank 1: float64"),
        (programs.dtypes_of_the_same_size_differ, "different dtypes: ranks 0, 2: float32, rank 1: int32"),
        (programs.reductions_differ, "different reductions: ranks 0, 2: SUM, rank 1: MAX"),
        (programs.sources_differ, "different roots: ranks 0, 2: 0, rank 1: 1"),
        (programs.mismatch_that_nobody_waits_for, "different shapes"),
    ],
)
def test_calls_that_do_not_fit_are_shown_side_by_side(failure, program, cause):
    error = failure(program)
    assert error.kind == "mismatch"
    says(error, "mismatch at operation 1 of group WORLD: " + cause)


def test_a_collective_that_one_rank_never_calls_is_found_though_nobody_waits(zygote):
    result = World(3, zygote=zygote).run(programs.never_completes)
    (finding,) = result.findings
    assert (finding.kind, finding.rank) == ("incomplete", 0)


# Messages that do not meet -------------------------------------------------------------------------------------------


def test_two_receives_first_are_a_cycle_with_both_lines(failure):
    error = failure(programs.both_receive_first, size=2)
    assert error.kind == "hang"
    site = line_of(programs.both_receive_first, "dist.recv")
    says(error, rf"a cycle: rank 0 waits in recv from rank 1 \({site}\), rank 1 waits in recv from rank 0 \({site}\)")


def test_two_sends_first_are_a_cycle_since_a_send_is_a_rendezvous(failure):
    error = failure(programs.both_send_first, size=2)
    assert error.kind == "hang"
    says(error, "a cycle: rank 0 waits in send to rank 1", "a send waits for its receive", "batch_isend_irecv")


def test_a_ring_of_receives_names_every_rank(failure):
    error = failure(programs.ring_of_receives, size=4)
    says(error, *(rf"rank {r} waits in recv from rank {(r + 1) % 4}" for r in range(4)))


def test_tags_that_differ_are_said(failure):
    error = failure(programs.tags_differ, size=2)
    assert error.kind == "hang"
    says(error, r"send to rank 1 \(tag 5\)", r"recv from rank 0 \(tag 6\)", "their tags differ")


@pytest.mark.parametrize(
    "program, cause",
    [
        (programs.receives_more_than_is_sent, r"different sizes: \[3\] sent, \[5\] received"),
        (programs.receives_less_than_is_sent, r"different sizes: \[5\] sent, \[3\] received"),
        (programs.message_dtypes_differ, "different dtypes: float32 sent, int32 received"),
    ],
)
def test_a_message_that_does_not_fit_its_receive(failure, program, cause):
    error = failure(program, size=2)
    assert error.kind == "mismatch"
    says(error, "mismatch between send and recv, rank 0 to rank 1: " + cause, line_of(program, "dist.recv"))


# Ranks that leave ----------------------------------------------------------------------------------------------------


def test_a_rank_that_calls_os_exit_is_the_cause(failure):
    error = failure(programs.leaves_by_os_exit)
    assert (error.kind, error.rank) == ("crash", 1)
    says(error, "rank 1 left with exit code 7 before it returned")


def test_sys_exit_is_not_a_success(failure):
    error = failure(programs.leaves_by_sys_exit)
    assert (error.kind, error.rank, error.exception_type) == ("crash", 1, "SystemExit")
    says(error, r"called sys.exit\(0\)")


def test_a_rank_that_raises_is_shown_alone_with_the_programs_own_frames(failure):
    error = failure(programs.raises)
    assert (error.kind, error.rank, error.exception_type) == ("crash", 2, "KeyError")
    assert error.site == line_of(programs.raises, "raise KeyError")
    assert error.traceback.count("File ") == 1
    assert "raise KeyError" in error.traceback
    assert "kit" not in error.traceback


def test_the_same_error_on_all_ranks_is_told_once(failure):
    error = failure(programs.raises_on_every_rank)
    assert error.rank == 0
    says(error, r"ranks 1, 2 failed in the same place")


def test_an_exception_that_cannot_be_printed_still_ends_the_run(failure):
    error = failure(programs.error_without_text)
    assert (error.kind, error.exception_type) == ("crash", "Hostile")
    assert error.site == line_of(programs.error_without_text, "raise Hostile")
    says(error, "its text cannot be told: __str__ raised RuntimeError")


def test_a_segmentation_fault_names_signal_and_line(failure):
    error = failure(programs.segfaults)
    assert (error.kind, error.rank) == ("crash", 1)
    says(error, rf"SIGSEGV\) at {line_of(programs.segfaults, 'string_at')}")


def test_a_killed_rank_is_the_cause(failure):
    error = failure(programs.kills_itself)
    assert (error.kind, error.rank) == ("crash", 0)
    says(error, "SIGKILL")


# Ranks that do not end -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program, rank, text", [(programs.spins, 1, "pass"), (programs.sleeps, 0, "time.sleep(1000)")])
def test_a_rank_that_runs_for_ever_meets_the_deadline_and_its_line_is_named(failure, program, rank, text):
    error = failure(program, deadline_s=1.0)
    assert (error.kind, error.rank) == ("deadline", rank)
    site = (
        {line_of(program, text), line_of(program, "while True:")}
        if program is programs.spins
        else {line_of(program, text)}
    )
    assert error.site in site
    says(error, f"still running: rank {rank} at ")


def test_a_stopped_rank_meets_the_deadline(failure):
    assert failure(programs.stops_itself, deadline_s=1.0).kind == "deadline"


def test_a_flood_on_stdout_ends_long_before_the_deadline(failure):
    started = time.monotonic()
    error = failure(programs.floods_stdout, deadline_s=60, output_limit_bytes=1 << 20)
    assert error.kind == "output"
    assert time.monotonic() - started < 30
    assert all(len(text) < 1 << 17 for text in error.stdout)
    assert "bytes left out" in "".join(error.stdout)


def test_allocating_without_end_is_named_as_that(failure):
    error = failure(programs.allocates_without_end, size=2, memory_limit_bytes=256 << 20, deadline_s=60)
    assert error.kind == "memory"
    says(error, "0.25 GiB")
    assert error.site == line_of(programs.allocates_without_end, "kept.append")


def test_polling_for_ever_is_a_hang(failure):
    error = failure(programs.polls_for_ever, size=2, deadline_s=60)
    assert error.kind == "hang"
    says(error, "rank 0 asks is_completed")


def test_polling_for_what_comes_is_right(zygote):
    result = World(2, zygote=zygote).run(programs.polls_and_is_right)
    assert result.ranks[0][0].item() == 7


def test_a_rank_with_a_thread_is_not_called_a_hang_too_early(zygote):
    World(2, zygote=zygote).run(programs.a_thread_sends_later)


def test_a_hang_of_ranks_with_threads_is_left_to_the_deadline(failure):
    assert failure(programs.hangs_with_a_thread, size=2, deadline_s=1.5).kind == "deadline"


# Timeouts and the store ----------------------------------------------------------------------------------------------


def test_monitored_barrier_names_the_missing_rank_at_once(failure):
    started = time.monotonic()
    error = failure(programs.monitored_barrier)
    says(error, "Rank 1 failed to pass monitored_barrier in 3000 ms")
    assert time.monotonic() - started < 2.9


def test_a_timeout_of_one_wait_fires_at_quiescence_and_the_program_goes_on(zygote):
    result = World(2, zygote=zygote).run(programs.wait_with_a_timeout)
    assert "Timed out waiting 5000ms for recv from rank 1" in result.ranks[0]


def test_retrying_after_timeouts_for_ever_is_a_hang(failure):
    assert failure(programs.retries_for_ever, size=2).kind == "hang"


def test_waiting_in_the_store_counts_as_waiting(failure):
    error = failure(programs.waits_in_the_store)
    assert error.kind == "hang"
    says(error, "store.get.*never-set", r"ranks 1, 2 wait|barrier #1")


# Findings ------------------------------------------------------------------------------------------------------------


def findings(zygote, program, size=3):
    return World(size, zygote=zygote).run(program).findings


def test_a_work_that_is_never_waited_for(zygote):
    found = findings(zygote, programs.not_waited)
    assert [(f.kind, f.rank) for f in found] == [("unwaited", 0), ("unwaited", 1), ("unwaited", 2)]
    assert found[0].site == line_of(programs.not_waited, "async_op")


def test_a_matched_isend_without_wait_is_a_note(zygote):
    assert {f.kind for f in findings(zygote, programs.isend_not_waited)} == {"note"}


def test_a_collective_on_a_group_that_the_rank_is_not_in(zygote):
    result = World(3, zygote=zygote).run(programs.not_a_member)
    assert [(f.kind, f.rank) for f in result.findings] == [("non_member", 2)]
    assert result.ranks[2].tolist() == [1, 1]


def test_a_group_made_by_its_members_only(zygote):
    found = findings(zygote, programs.group_made_by_members_only)
    assert [(f.kind, f.rank) for f in found] == [("portability", 2)]
    assert "new_group([0, 1])" in found[0].message


def test_a_plain_collective_in_a_differentiable_path(zygote):
    found = findings(zygote, programs.plain_collective_in_a_differentiable_path, 2)
    assert {f.kind for f in found} == {"autograd"}


def test_a_collective_inside_an_autograd_function_is_no_finding(zygote):
    assert findings(zygote, programs.collective_inside_a_function_of_autograd, 2) == ()


# What is refused -----------------------------------------------------------------------------------------------------


def test_a_strided_view_is_refused_with_its_strides(failure):
    error = failure(programs.strided_view)
    assert error.exception_type == "ValueError"
    says(error, r"strides \[4\]", "NCCL refuses it")


def test_the_mean_of_integers_is_refused(failure):
    says(failure(programs.mean_of_integers), "ReduceOp.AVG is not defined for int64")


def test_a_reduce_scatter_of_the_wrong_size_says_both_sizes(failure):
    says(failure(programs.wrong_size_of_reduce_scatter), "the input has 7 elements, not 3 ranks x 2")


@pytest.mark.parametrize(
    "program, name", [(programs.returns_a_subclass, "Mine"), (programs.returns_an_object, "object")]
)
def test_only_plain_values_leave_a_rank(failure, program, name):
    error = failure(program)
    assert error.kind == "crash"
    says(error, "cannot leave the rank", name)


def test_what_a_rank_printed_is_kept_by_rank(failure):
    error = failure(programs.prints_and_fails)
    assert error.stdout == tuple(f"to stdout from {r}\n" for r in range(3))
    assert all(f"to stderr from {r}" in error.stderr[r] for r in range(3))


# Hostile ranks -------------------------------------------------------------------------------------------------------


def test_junk_on_the_wire_is_refused_and_blamed(failure):
    error = failure(programs.writes_junk_to_the_wire)
    assert (error.kind, error.rank) == ("refused", 1)


def test_sealed_memory_cannot_be_truncated(zygote):
    assert World(2, zygote=zygote).run(programs.truncates_shared_memory).ranks == ("survived", "survived")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_no_process_outlives_its_run(zygote, tmp_path):
    result = World(2, zygote=zygote).run(programs.starts_daemons, [str(tmp_path)] * 2)
    pids = [pid for pids in result.ranks for pid in pids] + [int(f.read_text()) for f in tmp_path.iterdir()]
    assert len(pids) == 6
    assert [pid for pid in pids if alive(pid)] == []


def test_a_run_leaves_no_descriptor_behind(zygote):
    World(2, zygote=zygote).run(programs.not_a_member, None)
    gc.collect()
    before = open_descriptors()
    for program in (programs.not_waited, programs.raises, programs.both_receive_first):
        with contextlib.suppress(WorldError):
            World(3, zygote=zygote).run(program)
    gc.collect()
    assert open_descriptors() - before == set()


def open_descriptors():
    return {fd for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}")}
