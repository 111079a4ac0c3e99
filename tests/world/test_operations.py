"""What the switchboard does beyond gloo, what it refuses and how it says so, how it rounds, and that it repeats."""

from __future__ import annotations

import re

import pytest
import torch

from kit.world import World, WorldError
from tests.world import programs_operations as programs
from tests.world import programs_refusals


@pytest.fixture
def run(zygote):
    def run(program, size, inputs=None):
        return World(size, zygote=zygote, deadline_s=30).run(program, inputs if inputs is None else [inputs] * size)

    return run


def bits(tensor):
    return tensor.contiguous().view(-1).view(torch.uint8)


def notes(result, kind="portability"):
    return {finding.message for finding in result.findings if finding.kind == kind}


# Beyond gloo ---------------------------------------------------------------------------------------------------------


def test_all_gather_takes_lists_of_different_sizes(run):
    result = run(programs.uneven_all_gather, 3)
    for outputs in result.ranks:
        for rank, part in enumerate(outputs):
            assert torch.equal(part, torch.full((rank + 1, 2), float(rank)))
    (op,) = result.trace.operations(rank=1)
    assert (op.name, op.numel, op.nbytes) == ("all_gather", 12, 48)
    # The ring passes every part but the one that the next rank owns: 12 - 6, 12 - 2 ... elements of 4 bytes.
    assert [result.trace.sent_bytes(rank) for rank in range(3)] == [4 * (12 - 4), 4 * (12 - 6), 4 * (12 - 2)]
    assert notes(result) == {"all_gather of a list of tensors of different shapes is unsupported on gloo"}


def test_all_to_all_takes_lists_of_any_shapes(run):
    result = run(programs.all_to_all_of_any_shapes, 3)
    for rank, outputs in enumerate(result.ranks):
        for source, part in enumerate(outputs):
            assert torch.equal(part, torch.full((source, rank + 1), source * 10.0 + rank))
    assert notes(result) == {"all_to_all of a list of tensors of different shapes is unsupported on gloo"}


def test_buffers_may_be_stacked(run):
    for rank, (gathered, scattered) in enumerate(run(programs.stacked_buffers, 3).ranks):
        assert torch.equal(gathered, torch.arange(3.0) + torch.tensor([[0.0], [10.0], [20.0]]))
        assert torch.equal(scattered, 3 * gathered[rank])


def test_dtypes_that_gloo_lacks_are_moved_unchanged(run):
    size = 2
    result = run(programs.moves_what_gloo_does_not, size)
    for dtype in programs.UNKNOWN_TO_GLOO:
        patterns = [programs.pattern(dtype, rank) for rank in range(size)]
        half = patterns[0].numel() // size
        for rank in range(size):
            shared, parts, exchanged, passed = result.ranks[rank][str(dtype)]
            expected = [
                (shared, patterns[-1]),
                *zip(parts, patterns, strict=True),
                (exchanged, torch.cat([bits(p[rank * half :][:half]) for p in patterns]).view(dtype)),
                (passed, patterns[rank - 1]),
            ]
            for got, wanted in expected:
                assert got.dtype is dtype
                assert torch.equal(bits(got), bits(wanted))
        assert f"all_gather of {str(dtype).removeprefix('torch.')} tensors is unsupported on gloo" in notes(result)


def test_polling_a_receive_makes_progress(run):
    assert [x.tolist() for x in run(programs.polls_a_receive, 3).ranks] == [[2.0] * 3, [0.0] * 3, [1.0] * 3]


def test_a_reduce_scatter_has_a_future(run):
    assert [x.tolist() for x in run(programs.future_of_a_reduce_scatter, 3).ranks] == [[1.0] * 2, [4.0] * 2, [7.0] * 2]


# Rounding ------------------------------------------------------------------------------------------------------------


def folded(inputs, name):
    """Addition (or multiplication) in rank order, rounded to the dtype each time; the mean is divided at the end."""
    total = inputs[0].clone()
    for other in inputs[1:]:
        total = total * other if name == "PRODUCT" else total + other
    return total / len(inputs) if name == "AVG" else total


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("size", [3, 5])
def test_reductions_fold_in_rank_order_and_round_at_each_step(run, dtype, size):
    numel = 4000 * size
    result = run(programs.reductions, size, {"dtype": dtype, "numel": numel})
    inputs = [programs.addends(dtype, rank, numel) for rank in range(size)]
    for name in ("SUM", "AVG", "PRODUCT"):
        expected = folded(inputs, name)
        # Else the test could not tell a fold from a sum in float64, or rank order from another.
        assert not torch.equal(bits(expected), bits(folded([x.double() for x in inputs], name).to(dtype))) or (
            dtype is torch.float64
        )
        assert not torch.equal(bits(expected), bits(folded(inputs[::-1], name)))
        for rank in range(size):
            reduced, scattered, listed, rooted = result.ranks[rank][name]
            part = expected.chunk(size)[rank]
            assert torch.equal(bits(reduced), bits(expected)), f"all_reduce {name} on rank {rank}"
            assert torch.equal(bits(scattered), bits(part)), f"reduce_scatter_tensor {name} on rank {rank}"
            assert torch.equal(bits(listed), bits(part)), f"reduce_scatter {name} on rank {rank}"
            assert (rooted is None) is (rank != size - 1)
            assert rooted is None or torch.equal(bits(rooted), bits(expected)), f"reduce {name}"


def test_bfloat16_loses_small_addends_one_by_one(run):
    """256 + 1 is 256 in bfloat16, so a fold of 256, 1, 1 stays 256 where a sum in float32 would round to 258."""
    ones = [torch.tensor([value], dtype=torch.bfloat16) for value in (256.0, 1.0, 1.0)]
    assert folded(ones, "SUM").item() == 256.0
    assert run(programs.sums_its_input, 3, ones).ranks[0].item() == 256.0


def test_nan_survives_minimum_and_maximum(run):
    for seen in run(programs.extremes_of_nan, 3).ranks:
        for x in seen:
            assert x[1].isnan() and not x[0].isnan() and x[2].isinf()


# Refusals ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refusals(zygote):
    return World(2, zygote=zygote).run(programs_refusals.every_refusal).ranks


@pytest.mark.parametrize("name", programs_refusals.REFUSED)
def test_a_call_without_meaning_is_refused_in_words(refusals, name):
    for seen, _ in refusals:
        assert seen[name] is not None, "it was accepted"
        assert re.search(programs_refusals.REFUSED[name][2], seen[name]), seen[name]


def test_refused_calls_leave_everything_in_order(refusals):
    assert all(torch.equal(x, torch.full((2,), 2.0)) for _, x in refusals)


def test_an_undefined_reduction_raises_at_every_wait_and_harms_nothing(run):
    for said, succeeded, after in run(programs.undefined_reductions, 3).ranks:
        assert len(said) == 4
        assert said[0] == said[1]
        assert "ReduceOp.AVG is not defined for int64" in said[0]
        assert "ReduceOp.BOR is not defined for float32" in said[2]
        assert "float8_e4m3fn cannot be reduced" in said[3]
        assert succeeded is False
        assert torch.equal(after, torch.full((3,), 3.0))


@pytest.mark.parametrize("name", programs_refusals.MISFITS)
def test_calls_that_do_not_fit_say_both_sides(run, name):
    with pytest.raises(WorldError) as caught:
        run(programs_refusals.misfit, 2, name)
    assert caught.value.kind == "mismatch"
    assert re.search(programs_refusals.MISFITS[name][1], caught.value.message), caught.value.message


# Determinism ---------------------------------------------------------------------------------------------------------


def test_two_runs_give_the_same_trace_and_the_same_bytes(run):
    one, other = run(programs.leans_on_timing, 4), run(programs.leans_on_timing, 4)
    assert one.trace.operations() == other.trace.operations()
    assert [one.trace.events(rank) for rank in range(4)] == [other.trace.events(rank) for rank in range(4)]
    for mine, again in zip(one.ranks, other.ranks, strict=True):
        assert [x.tolist() if isinstance(x, torch.Tensor) else x for x in mine] == [
            x.tolist() if isinstance(x, torch.Tensor) else x for x in again
        ]


# The record ----------------------------------------------------------------------------------------------------------

# Rank 1 of 4, 24 float32 (96 bytes) as the full buffer; rank 2 is the root.
ALL_REDUCE = ("all_reduce", "SUM", None, 24, 96, 144)  # 2 (n-1)/n S
ALL_GATHER = ("all_gather", None, None, 24, 96, 72)  # (n-1)/n S
REDUCE_SCATTER = ("reduce_scatter", "SUM", None, 24, 96, 72)
ALL_TO_ALL = ("all_to_all", None, None, 24, 96, 72)
FORMS = [
    *[ALL_REDUCE] * 3,
    ("reduce", "SUM", 2, 24, 96, 96),  # all but the root send S
    ("broadcast", None, 2, 24, 96, 0),  # the root sends S
    *[ALL_GATHER] * 3,
    *[REDUCE_SCATTER] * 3,
    *[ALL_TO_ALL] * 2,
    ("gather", None, 2, 24, 96, 24),  # its own part
    ("scatter", None, 2, 24, 96, 0),  # the root sends the others' parts
    ("barrier", None, None, 0, 0, 0),
    ("monitored_barrier", None, None, 0, 0, 0),
    ("send", None, None, 24, 96, 96),
]


def test_every_form_is_recorded_by_its_name_and_at_its_cost(run):
    trace = run(programs.every_form_once, 4).trace
    seen = [(op.name, op.reduce_op, op.root, op.numel, op.nbytes, op.sent_bytes) for op in trace.operations(rank=1)]
    assert seen == FORMS
    at_root = {op.name: op.sent_bytes for op in trace.operations(rank=2)}
    assert (at_root["broadcast"], at_root["reduce"], at_root["gather"], at_root["scatter"]) == (96, 0, 0, 72)
    (send,), (recv,) = trace.operations(rank=1, name="send"), trace.operations(rank=2, name="recv")
    assert (send.peer, recv.peer, recv.numel, recv.sent_bytes) == (2, 1, 24, 0)
    assert all(op.waited and op.dtype in ("float32", None) for op in trace.operations())
    assert all(op.site.startswith("programs_operations.py:") for op in trace.operations())


# Large tensors -------------------------------------------------------------------------------------------------------


def test_large_operations_reuse_their_segments(run):
    for counts in run(programs.large_in_a_row, 3).ranks:
        assert counts[0][0] >= 400_000  # it does go through shared memory
        assert counts[1:] == counts[1:2] * 11, "segments grow with the number of operations"


def test_large_operations_in_flight_do_not_mix(run):
    for correct, counts in run(programs.large_in_flight, 3).ranks:
        assert all(correct)
        assert counts[0] == counts[1], "the second round takes new segments"


def test_what_was_received_outlives_its_segment(run):
    for unchanged, firsts in run(programs.results_outlive_their_segments, 3).ranks:
        assert unchanged and firsts == [0.0, 1.0, 2.0]


def test_a_large_returned_tensor_comes_back_whole(run):
    for rank, x in enumerate(run(programs.large_result, 3).ranks):
        assert torch.equal(x, torch.arange(300_000) + rank)


@pytest.mark.parametrize(
    "program",
    [
        programs.threads_with_large_tensors,
        programs.threads_with_futures,
        programs.threads_that_wait_for_one_work,
    ],
)
def test_threads_of_a_rank_do_not_disturb_each_other(run, program):
    assert run(program, 2).ranks == ([], [])
