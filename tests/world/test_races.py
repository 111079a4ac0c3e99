"""Buffers touched in flight are told with both lines; clean programs give no report."""

from __future__ import annotations

import pytest
import torch

from kit.world import World, WorldError
from kit.world.poison import is_intact, poison, source_of
from tests.world import programs_races as programs

WRITTEN = "was written in flight"


@pytest.mark.parametrize(
    "program, says",
    [
        (programs.writes_an_input_in_flight, f"the input of all_gather {WRITTEN}"),
        (programs.writes_an_output_in_flight, f"the output of all_reduce {WRITTEN}"),
        (programs.divides_before_the_wait, f"the output of all_reduce {WRITTEN}"),
        (programs.writes_integers_in_flight, f"the output of all_reduce {WRITTEN}"),
        (programs.overwrites_an_isend, f"the input of send {WRITTEN}"),
        (programs.overwrites_an_isend_that_is_never_waited_for, "which never waits for it"),
        (programs.two_operations_write_one_buffer, "uses memory of all_reduce"),
        (programs.receives_into_what_is_being_sent, "uses memory of send"),
        (programs.frees_an_output_in_flight, "was written in flight|was freed or resized"),
        (programs.steps_before_the_wait, None),
        (programs.accumulates_into_a_gradient_in_flight, "was written in flight"),
    ],
)
def test_a_race_is_told_with_both_lines(zygote, program, says):
    if says is None:  # reading only: the poison reaches the parameters instead
        values = World(3, zygote=zygote).run(program).ranks
        assert all(value.isnan().all() for value in values)
        return
    with pytest.raises(WorldError, match=says) as caught:
        World(3, zygote=zygote).run(program)
    assert caught.value.kind == "race"
    assert str(caught.value).count("programs_races.py:") >= (1 if "never" in says else 2)


@pytest.mark.parametrize(
    "program",
    [
        programs.reads_an_input_in_flight,
        programs.root_reads_its_broadcast,
        programs.sends_one_buffer_to_all,
        programs.gathers_in_place,
        programs.reduce_scatters_in_place,
        programs.writes_the_other_half,
        programs.hooks_that_wait_before_the_next_step,
        programs.saved_by_autograd_and_reduced,
    ],
)
def test_a_clean_program_gives_no_report_and_the_same_result_as_without_the_watch(zygote, program):
    watched = World(3, zygote=zygote).run(program)
    assert watched.findings == ()
    plain = World(3, zygote=zygote, races=False).run(program)
    assert str(watched.ranks) == str(plain.ranks)


def test_waiting_only_for_the_last_has_its_own_words(zygote):
    result = World(2, zygote=zygote).run(programs.waits_only_for_the_last)
    assert {f.kind for f in result.findings} == {"unwaited"}
    assert all("NCCL's stream" in f.message for f in result.findings)
    assert [x.isnan().all().item() for x in result.ranks[0]] == [True, True, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_result_computed_from_an_early_read_names_the_operation(zygote, dtype):
    result = World(2, zygote=zygote).run(programs.reads_before_the_wait, [dtype, dtype])
    number = source_of(result.ranks[1])
    assert number == 2
    assert result.trace.operations(rank=1)[number - 1].name == "all_reduce"


def test_numbers_of_operations_survive_only_from_poison():
    x = torch.full((3,), float("nan"))
    assert source_of(x) is None
    assert source_of(torch.randn(5)) is None
    assert poison(x, 77)
    assert is_intact(x, 77)
    assert source_of(x) == 77
    assert source_of(x + 1) == 77
    assert not is_intact(x.add_(1), 77)


def test_the_adversarial_order_differs_and_repeats(zygote):
    def orders(seed):
        return World(4, zygote=zygote, order_seed=seed).run(programs.any_source_order).ranks[0]

    assert World(4, zygote=zygote).run(programs.any_source_order).ranks[0] == [1, 2, 3]
    assert orders(3) == orders(3)
    assert len({tuple(orders(seed)) for seed in range(8)}) > 1
