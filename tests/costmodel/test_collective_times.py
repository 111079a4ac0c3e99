"""Seconds of collectives, against algorithms that are walked message by message."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import collectives
from kit.errors import KitError

ALPHA, BETA = 3e-6, 1 / 25e9


@given(st.integers(2, 20), st.integers(1, 10**9))
def test_a_ring_walked_step_by_step(n: int, nbytes: int) -> None:
    steps = [ALPHA + nbytes / n * BETA for _ in range(2 * (n - 1))]
    assert collectives.all_reduce_s(nbytes, n, ALPHA, 1 / BETA) == pytest.approx(sum(steps))
    assert collectives.all_gather_s(nbytes, n, ALPHA, 1 / BETA) == pytest.approx(sum(steps) / 2)


@given(st.integers(1, 6), st.integers(1, 10**9))
def test_halving_and_doubling_walked_step_by_step(levels: int, nbytes: int) -> None:
    """Rank r exchanges a half, a quarter, ... with the rank that differs in one bit, and back."""
    halves = [nbytes / 2 ** (level + 1) for level in range(levels)]
    walked = sum(ALPHA + size * BETA for size in (*halves, *reversed(halves)))
    assert collectives.all_reduce_s(nbytes, 2**levels, ALPHA, 1 / BETA, "halving_doubling") == pytest.approx(walked)


@given(st.integers(2, 33), st.integers(1, 10**9))
def test_a_binomial_tree_doubles_those_who_know_in_each_round(n: int, nbytes: int) -> None:
    knowing, rounds = 1, 0
    while knowing < n:
        knowing, rounds = 2 * knowing, rounds + 1
    one = ALPHA + nbytes * BETA
    assert collectives.broadcast_s(nbytes, n, ALPHA, 1 / BETA, "binomial_tree") == pytest.approx(rounds * one)
    assert collectives.all_reduce_s(nbytes, n, ALPHA, 1 / BETA, "binomial_tree") == pytest.approx(2 * rounds * one)


@given(st.integers(2, 500), st.integers(1, 9))
def test_a_pipelined_ring_of_many_pieces_approaches_its_closed_form(n: int, exponent: int) -> None:
    """k pieces pass n-1 hops: (n - 2 + k) messages of S/k, whose bytes go to S where k is large and latency free."""
    k, nbytes = 10**9, 10.0**exponent
    walked = (n - 2 + k) * (nbytes / k * BETA)
    assert collectives.broadcast_s(nbytes, n, 0, 1 / BETA) == pytest.approx(walked, rel=1e-5)
    assert collectives.broadcast_s(0, n, ALPHA, 1 / BETA) == pytest.approx((n - 1) * ALPHA)


@pytest.mark.parametrize("tree", ["binomial_tree", "double_tree"])
@pytest.mark.parametrize("n", [4, 8, 9, 64, 1000])
def test_the_crossover_is_where_both_take_as_long(tree: str, n: int) -> None:
    nbytes = collectives.ring_tree_crossover_bytes(n, ALPHA, 1 / BETA, tree)
    ring, other = (collectives.all_reduce_s(nbytes, n, ALPHA, 1 / BETA, name) for name in ("ring", tree))
    assert ring == pytest.approx(other)
    for factor, is_ring_faster in ((0.5, False), (2, True)):
        ring, other = (collectives.all_reduce_s(factor * nbytes, n, ALPHA, 1 / BETA, name) for name in ("ring", tree))
        assert (ring < other) is is_ring_faster


def test_two_ranks_have_no_use_for_a_tree() -> None:
    assert collectives.ring_tree_crossover_bytes(2, ALPHA, 1 / BETA) == 0


def test_the_hierarchical_all_reduce_of_its_three_parts() -> None:
    got = collectives.hierarchical_all_reduce_s(8e9, 8, 4, 1e-6, 300e9, 10e-6, 25e9)
    inside = 7e-6 + 7e9 / 300e9
    between = 2 * 3 * 10e-6 + 2 * 3 / 4 * 1e9 / 25e9
    assert got == pytest.approx(2 * inside + between)
    assert collectives.hierarchical_between_bytes(8e9, 8, 4) == 1.5e9


def test_hierarchical_beats_the_flat_ring_between_nodes() -> None:
    for nbytes in (1e3, 1e9):
        flat, levels = (
            collectives.on_profile_s("all_reduce", nbytes, 64, "a100", name) for name in ("ring", "hierarchical")
        )
        assert levels < flat / 2


def test_a_group_that_leaves_the_node_runs_at_the_slower_link() -> None:
    inside, outside = (collectives.on_profile_s("all_gather", 1e9, n, "a100") for n in (8, 9))
    assert inside == pytest.approx(7 * 3.4e-6 + 7 / 8 * 1e9 / 300e9)
    assert outside == pytest.approx(8 * 14e-6 + 8 / 9 * 1e9 / 25e9)


def test_a_perfect_ring_shows_the_link_s_bandwidth() -> None:
    """That is what the factors of bus bandwidth are for."""
    for operation in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"):
        for n in (2, 3, 8):
            seconds = collectives.on_link_s(operation, 1e9, n, 0, 25e9)
            assert collectives.bus_bandwidth(operation, 1e9, seconds, n) == pytest.approx(25e9)


@pytest.mark.parametrize("algorithm", collectives.ALL_REDUCE_ALGORITHMS)
def test_one_rank_waits_for_nobody(algorithm: str) -> None:
    assert collectives.all_reduce_s(1e9, 1, ALPHA, 1 / BETA, algorithm) == 0


def test_a_link_without_limit() -> None:
    assert collectives.all_reduce_s(1e9, 8, 0, math.inf) == 0
    assert collectives.message_s(1e6, 1e-3, 1e9) == 0.002


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: collectives.all_reduce_s(8, 6, 0, 1, "halving_doubling"),
            "halving_doubling needs a power of two of ranks, got 6",
        ),
        (lambda: collectives.all_reduce_s(8, 2, 0, 0), "bytes_per_s must be a number above 0, got 0"),
        (lambda: collectives.all_reduce_s(8, 2, 0, float("nan")), "bytes_per_s must be a number above 0, got nan"),
        (lambda: collectives.all_reduce_s(8, 2, -1, 1), "latency_s must be a number of at least 0, got -1"),
        (
            lambda: collectives.on_link_s("all_gather", 8, 2, 0, 1, "double_tree"),
            "algorithm must be one of ring, got 'double_tree'",
        ),
        (
            lambda: collectives.on_profile_s("all_reduce", 8, 12, "a100", "hierarchical"),
            "hierarchical is an all_reduce over full nodes of 8, got all_reduce on 12 ranks",
        ),
        (
            lambda: collectives.on_profile_s("scan", 8, 2),
            "operation must be one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, got 'scan'",
        ),
        (lambda: collectives.bus_bandwidth("all_reduce", 8, 0, 2), "seconds must be above 0, got 0"),
        (
            lambda: collectives.bus_factor("all_gather", 2, in_network=True),
            "operation must be one of all_reduce, got 'all_gather'",
        ),
        (
            lambda: collectives.ring_tree_crossover_bytes(1, 0, 1),
            "world_size must be a whole number of at least 2, got 1",
        ),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message
