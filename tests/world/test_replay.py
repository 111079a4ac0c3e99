"""The rules of virtual time: what an operation costs, what holds it up, and what timing decides."""

from __future__ import annotations

import hashlib
import math

import pytest

from kit.errors import KitError
from kit.hardware import Profile, Tier, profile
from kit.world import World
from kit.world.replay import POLL_S, replay
from kit.world.trace import Event, Operation, Trace
from tests.world import programs_time as programs


@pytest.fixture
def run(zygote):
    def launch(function, size, inputs, hardware="unit", **options):
        inputs = inputs if isinstance(inputs, list) else [inputs] * size
        return World(size, zygote=zygote, profile=hardware, **options).run(function, inputs=inputs)

    return launch


# -- what an operation costs ----------------------------------------------------------------------------------

NUMEL = 6  # of one rank's part
COSTS_S = {  # n ranks, S bytes of the full buffer, on "unit": a message costs 1 s and 1 s a byte
    "all_reduce": lambda n, s: 2 * (n - 1) + 2 * (n - 1) / n * s,
    "all_gather": lambda n, s: (n - 1) + (n - 1) / n * s,
    "reduce_scatter": lambda n, s: (n - 1) + (n - 1) / n * s,
    "all_to_all": lambda n, s: (n - 1) + (n - 1) / n * s,
    "broadcast": lambda n, s: (n - 1) + s,
    "reduce": lambda n, s: (n - 1) + s,
    "gather": lambda n, s: (n - 1) + (n - 1) / n * s,
    "scatter": lambda n, s: (n - 1) + (n - 1) / n * s,
    "barrier": lambda n, s: math.ceil(math.log2(n)),
}


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("name", COSTS_S)
def test_collectives_cost_what_their_rings_cost(run, name, n):
    found = run(programs.collective, n, {"name": name, "numel": NUMEL}).timeline
    cost_s = COSTS_S[name](n, 4 * n * NUMEL) if n > 1 else 0
    assert found.ends_s == (pytest.approx(cost_s, rel=1e-12),) * n
    assert [found.exposed_s(rank) for rank in range(n)] == [pytest.approx(cost_s, rel=1e-12)] * n


BUS_FACTORS = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n,
               "reduce_scatter": lambda n: (n - 1) / n, "all_to_all": lambda n: (n - 1) / n,
               "broadcast": lambda n: 1, "reduce": lambda n: 1}  # fmt: skip


@pytest.mark.parametrize("name", BUS_FACTORS)
def test_bus_bandwidth_is_the_link_s(run, name):
    """nccl-tests, doc/PERFORMANCE.md: S / t times the factor is the hardware's bandwidth, whatever n is."""
    link = Tier(0.0, 5e9)
    hardware = Profile("wire", "", link, link, None, (("float32", 1.0),), 1.0, 1.0)
    n = 4
    result = run(programs.collective, n, {"name": name, "numel": NUMEL}, hardware)
    algorithm_bandwidth = 4 * n * NUMEL / result.timeline.makespan_s
    assert algorithm_bandwidth * BUS_FACTORS[name](n) == pytest.approx(5e9, rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_ring_written_with_sends_takes_as_long_as_the_built_in(run, n):
    """2(n-1)(alpha + S/n/B), and the same values."""
    by_hand = run(programs.ring_all_reduce, n, NUMEL)
    built_in = run(programs.built_in_all_reduce, n, NUMEL)
    assert by_hand.timeline.makespan_s == 2 * (n - 1) * (1 + 4 * NUMEL) == built_in.timeline.makespan_s
    assert all(by_hand.ranks[rank].equal(built_in.ranks[rank]) for rank in range(n))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_a_tree_of_sends_broadcasts_in_log_n_rounds(run, n):
    found = run(programs.tree_broadcast, n, NUMEL).timeline
    assert found.makespan_s == math.ceil(math.log2(n)) * (1 + 4 * NUMEL)


# -- what holds it up -----------------------------------------------------------------------------------------


def test_groups_share_a_rank_s_port(run):
    """Two messages out of rank 0, in two groups: the second waits for the first."""
    found = run(programs.one_after_the_other, 3, NUMEL).timeline
    message_s = 1 + 4 * NUMEL
    assert found.ends_s == (2 * message_s, message_s, 2 * message_s)


def test_two_groups_of_the_same_ranks_take_twice_the_time(run):
    found = run(programs.two_groups_of_the_same_ranks, 2, NUMEL).timeline
    assert found.makespan_s == 2 * (2 + 4 * NUMEL)


def test_out_and_in_are_two_ports(run):
    assert run(programs.both_ways, 2, NUMEL).timeline.makespan_s == 1 + 4 * NUMEL


@pytest.mark.parametrize(("compute_s", "exposed_s"), [(0.0, 26.0), (10.0, 16.0), (40.0, 0.0)])
def test_an_all_reduce_under_a_compute_is_exposed_as_far_as_it_outlasts_it(run, compute_s, exposed_s):
    found = run(programs.overlapped, 2, {"numel": NUMEL, "compute_s": compute_s}).timeline
    cost_s = 2 + 4 * NUMEL
    assert found.makespan_s == max(cost_s, compute_s)
    assert [found.exposed_s(rank) for rank in (0, 1)] == [exposed_s] * 2
    assert [found.communication_s(rank) for rank in (0, 1)] == [cost_s] * 2


def test_a_group_s_operations_run_one_after_the_other(run):
    found = run(programs.in_order, 2, [[3.0, 0.0]] * 2).timeline
    first, second = found.of(1, "communication")
    assert (first.start_s, first.end_s, second.start_s, second.end_s) == (0.0, 6.0, 6.0, 12.0)


def test_messages_between_nodes_take_the_slower_link(run):
    """On "a100" ranks 0 to 7 are one node: 3.4 us and 300 GB/s inside, 14 us and 25 GB/s between."""
    found = run(programs.across, 9, [[(0, 1), (7, 8), (8, 0)]] * 9, "a100").timeline
    durations = [span.duration_s for rank in range(9) for span in found.of(rank, "communication")
                 if span.what == "send"]  # fmt: skip
    inside_s, between_s = 3.4e-6 + 100_000 / 300e9, 14e-6 + 100_000 / 25e9
    assert sorted(durations) == [pytest.approx(s, rel=1e-9) for s in (inside_s, between_s, between_s)]
    barrier = next(span for span in found.of(3, "communication"))
    assert barrier.duration_s == pytest.approx(4 * 14e-6)  # ceil(log2 9) hops, at the slowest link's latency


def test_one_record_under_several_profiles(run):
    result = run(programs.built_in_all_reduce, 4, 250_000, "ideal")
    assert result.timeline.makespan_s == 0
    assert result.timeline is result.timeline
    bytes_sent = 2 * 3 / 4 * 4 * 1_000_000
    for name in ("a100", "h100", "ethernet"):
        tier = profile(name).tier(0, 1)
        expected_s = 6 * tier.latency_s + bytes_sent / tier.bytes_per_s
        assert result.timeline_under(name).makespan_s == pytest.approx(expected_s, rel=1e-9)
    with pytest.raises(KitError, match="no hardware profile"):
        result.timeline_under("a1000")


def test_a_profile_that_does_not_exist_is_said_before_anything_runs():
    with pytest.raises(KitError, match=r"no hardware profile 'idael' \(did you mean 'ideal'\?\)"):
        World(2, profile="idael")


def test_gloo_has_no_timeline(run):
    result = run(programs.built_in_all_reduce, 2, 4, transport="gloo")
    with pytest.raises(KitError, match="no timeline of a run over gloo"):
        _ = result.timeline


# -- what timing decides --------------------------------------------------------------------------------------


def test_receives_from_any_rank_go_by_virtual_time(run):
    result = run(programs.any_source, 4, [[0, 30.0, 10.0, 20.0]] * 4, "ideal")
    assert result.ranks[0] == [2, 3, 1]
    assert result.timeline.ends_s == (30.0, 30.0, 10.0, 20.0)


def test_counters_of_the_store_go_by_virtual_time(run):
    result = run(programs.counter, 4, [[2.0, 4.0, 1.0, 3.0]] * 4, "ideal")
    assert result.ranks == (2, 4, 1, 3)


def test_the_last_to_set_a_key_is_the_last_in_virtual_time(run):
    """Ranks set it in any order of the operating system's; the values do not show that."""
    assert set(run(programs.same_key, 3, [[5.0, 7.0, 6.0]] * 3, "ideal").ranks) == {"1"}
    assert set(run(programs.same_key, 3, [[9.0, 7.0, 6.0]] * 3, "ideal").ranks) == {"0"}


@pytest.mark.parametrize("order_seed", [None, 1])
@pytest.mark.parametrize("read_each", [True, False])
def test_what_was_set_before_a_barrier_is_read_after_it(run, read_each, order_seed):
    """Though all of it happens at one moment of virtual time."""
    ranks = [2, 0, 1, 2, 0]
    inputs = {"ranks": ranks, "read_each": read_each}
    result = run(programs.told_in_order, 3, [inputs] * 3, "ideal", order_seed=order_seed)
    assert result.ranks == ([str(rank) for rank in (ranks if read_each else ranks[-1:])],) * 3


def test_a_key_lets_go_when_it_was_set(run):
    found = run(programs.key, 2, 5.0, "ideal").timeline
    assert found.ends_s == (6.0, 5.0)
    assert [(mark.rank, mark.at_s) for mark in found.marks] == [(1, 5.0)]
    assert [(span.start_s, span.end_s) for span in found.of(1, "wait")] == [(0.0, 5.0)]


def test_a_rank_that_asks_all_the_time_does_not_keep_others_from_answering(run):
    assert run(programs.spin_on_the_store, 2, None, "ideal").timeline.ends_s == (1000.0, 1000.0)


def test_a_poll_says_what_is_so_at_its_own_moment(run):
    """The message is sent after 3.5 s and takes no time: whoever asks after 1, 2 and 3 s gets no, after 4 s yes."""
    result = run(programs.polls_between_computes, 2, None, "ideal")
    assert result.ranks[0] == [False, False, False, True, True, True]
    assert result.timeline.ends_s[0] == pytest.approx(6 + 4 * POLL_S)  # after the first yes nobody is asked
    assert result.timeline.of(0, "wait") == []


def test_polls_cost_a_microsecond_and_end_with_the_operation(run):
    """Rank 1 asks in vain while rank 0 computes for 3 s; then it is there when the all_reduce is over."""
    result = run(programs.polls, 2, NUMEL)
    end_s = 3 + 2 + 4 * NUMEL
    assert result.timeline.ends_s == (pytest.approx(end_s, abs=1e-9),) * 2
    polls = sum(event.kind == "poll" for event in result.trace.events(1))
    assert polls == result.ranks[1]
    waited = result.timeline.of(1, "wait")
    assert waited[-1].start_s == pytest.approx(polls * POLL_S)


@pytest.mark.parametrize(("seconds", "order"), [([0, 1.0, 2.0], [0, 1]), ([0, 2.0, 1.0], [1, 0])])
def test_a_wait_for_any_of_several_gets_the_earliest(run, seconds, order):
    result = run(programs.any_of, 3, [seconds] * 3)
    assert result.ranks[0] == order


def test_timeouts_fire_in_the_order_of_virtual_time(run):
    """Rank 1's limit of 9 s began at 0; rank 2's of 3 s at 10: rank 1 gives up first, at 9, rank 2 at 13."""
    limits = [[None, (0.0, 9.0), (10.0, 3.0)]] * 3
    result = run(programs.timeouts, 3, limits, "ideal")
    assert result.ranks == (0, 1, 2)
    assert [(mark.rank, mark.at_s) for mark in result.timeline.marks] == [(1, 9.0), (2, 13.0)]


REPEATED = {
    "any_source": (programs.any_source, 4, [[0, 1.0, 1.0, 1.0]] * 4),
    "polls": (programs.polls, 2, NUMEL),
    "any_of": (programs.any_of, 3, [[0, 1.0, 1.0]] * 3),
    "same_key": (programs.same_key, 4, [[0.0] * 4] * 4),
    "ddp": (programs.distributed_data_parallel, 3, None),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_timeline_is_the_same_to_the_last_bit_on_every_run(run, name):
    function, size, inputs = REPEATED[name]
    results = [run(function, size, inputs, "a100", seed=1) for _ in range(3)]
    digests = {hashlib.sha256(repr(result.timeline).encode()).hexdigest() for result in results}
    assert len(digests) == 1
    assert len({repr(result.ranks) for result in results}) == 1
    assert results[0].timeline.spans


def test_ddp_hides_the_all_reduces_of_early_buckets(run):
    """Six layers of F = 1, B = 2; a bucket's all_reduce runs under the backward of the layers before it."""
    result = run(programs.distributed_data_parallel, 2, None, "a100")
    assert result.timeline.busy_s(0) == 3 * 6 * 3
    buckets = [op for op in result.trace.operations(0, "all_reduce") if op.async_op]
    assert len(buckets) > 3  # steps
    assert result.timeline.exposed_s(0) < result.timeline.communication_s(0)


# -- counted compute ------------------------------------------------------------------------------------------


def counted(result, rank=0):
    return [(e.flops, e.dtype) for e in result.trace.events(rank) if e.kind == "compute"]


def test_what_ran_is_counted_where_it_ran(run):
    """2 x 4 x 8 x 16 forward, twice that backward, each before the next operation; float32 and bfloat16 apart."""
    result = run(programs.flops, 2, None, count_flops=True)
    assert counted(result) == [(1024, "float32"), (2048, "float32"), (128, "bfloat16")]
    kinds = [event.kind for event in result.trace.events(0) if event.kind in ("compute", "issue")]
    assert kinds == ["compute", "issue", "compute", "issue", "compute"]
    assert result.timeline.busy_s(0) == 1024 + 2048 + 128
    a100 = profile("a100")
    expected_s = 3072 / a100.flops("float32") + 128 / a100.flops("bfloat16")
    assert result.timeline_under("a100").busy_s(0) == pytest.approx(expected_s, rel=1e-12)


def test_nothing_is_counted_unasked(run):
    assert counted(run(programs.flops, 2, None)) == []


def test_a_dtensor_counts_what_its_rank_computes(run):
    """A column of 8x8 and a row of 8x8, on each of two ranks."""
    assert sum(flops for flops, _ in counted(run(programs.sharded_flops, 2, None, count_flops=True))) == 2 * 512


# -- the replay alone -----------------------------------------------------------------------------------------


def operation(rank, order, name="all_reduce", group=(0, 1), meeting=(0, 0), nbytes=8, **more):
    fields = {"peer": None, "root": None, "reduce_op": "SUM", "dtype": "float32", "shape": (2,), "numel": 2,
              "sent_bytes": nbytes, "site": "", "async_op": True, "waited": True, "completed_order": None,
              "group_name": str(group)}  # fmt: skip
    return Operation(rank=rank, name=name, group=group, nbytes=nbytes, order=order, meeting=meeting, **fields | more)


def test_what_was_never_matched_or_waited_for_breaks_nothing():
    trace = Trace(
        [operation(0, 0), operation(0, 1, "send", meeting=None, peer=1), operation(1, 0)],
        [
            [Event("issue", 0), Event("issue", 1), Event("compute", seconds=2.0)],
            [Event("compute", seconds=1.0), Event("issue", 0)],
        ],
    )
    found = replay(trace, profile("unit"))
    assert found.ends_s == (2.0, 1.0)
    assert [(s.start_s, s.end_s) for s in found.of(0, "communication")] == [(1.0, 11.0)]


def test_a_wait_for_what_is_not_defined_takes_no_time():
    trace = Trace([operation(0, 0, meeting=None)], [[Event("issue", 0), Event("wait", 0)], []])
    assert replay(trace, profile("unit")).ends_s == (0.0, 0.0)


def test_ports_serve_by_readiness_not_by_rank():
    """Rank 2's message to 0 is ready at 1, rank 1's at 5: the port of rank 0 takes rank 2's first."""
    pair = {"name": "send", "group": (0, 1, 2)}
    trace = Trace(
        [
            operation(0, 0, "recv", (0, 1, 2), (1, 0), peer=1), operation(0, 1, "recv", (0, 1, 2), (2, 0), peer=2),
            operation(1, 0, meeting=(1, 0), peer=0, **pair), operation(2, 0, meeting=(2, 0), peer=0, **pair),
        ],
        [
            [Event("issue", 0), Event("issue", 1), Event("wait", 0), Event("wait", 1)],
            [Event("compute", seconds=5.0), Event("issue", 0)],
            [Event("compute", seconds=1.0), Event("issue", 0)],
        ],
    )  # fmt: skip
    spans = replay(trace, profile("unit")).of(0, "communication")
    assert [(span.operation, span.start_s, span.end_s) for span in spans] == [(1, 1.0, 10.0), (0, 10.0, 19.0)]


def test_a_group_s_second_collective_queues_for_ports_when_the_first_is_over():
    """So another group's operation, ready before that, goes between them."""
    trace = Trace(
        [
            operation(r, o, group=(0, 1), meeting=(0, o), group_name=name)
            for r in (0, 1)
            for o, name in enumerate(("a", "a", "b"))
        ],
        [[Event("issue", 0), Event("issue", 1), Event("compute", seconds=5.0), Event("issue", 2)]] * 2,
    )
    spans = replay(trace, profile("unit")).of(0, "communication")
    assert [(span.operation, span.start_s, span.end_s) for span in spans] == [(0, 0, 10), (2, 10, 20), (1, 20, 30)]


def test_an_empty_trace_has_an_empty_timeline():
    found = replay(Trace(), profile("unit"))
    assert (found.spans, found.ends_s, found.makespan_s) == ((), (), 0.0)
