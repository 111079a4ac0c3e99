"""A run that was saved by one world and went on in another equals one that never stopped."""

from __future__ import annotations

import pytest

from tests.parallelisms import programs_checkpoint as programs
from tests.parallelisms.agreement import EXACT, Case, differences
from tests.parallelisms.conftest import launch
from tests.parallelisms.unsharded import initial_state, make_steps, of_rank, train

SAVING, LOADING = 3, 2


@pytest.mark.parametrize("in_background", [False, True], ids=["save", "async_save"])
def test_a_checkpoint_resumes_in_a_world_of_another_size(zygote, tmp_path, in_background):
    state = initial_state("mlp")
    before, after = make_steps(SAVING, num_steps=2), make_steps(LOADING, num_steps=2, seed=2)
    # The gradient of the second part is a mean over fewer ranks; batches of nobody weigh nothing.
    params = train_on(state, before, after)
    for transport in ("switchboard", "gloo"):
        given = {"folder": str(tmp_path / transport), "state": state, "in_background": in_background}
        inputs = [{**given, "steps": of_rank(before, rank)} for rank in range(SAVING)]
        saved = launch(zygote, SAVING, transport, [Case(programs.saves, inputs, ())])
        elsewhere = {key: value + 1 for key, value in state.items()}
        inputs = [{**given, "state": elsewhere, "steps": of_rank(after, rank)} for rank in range(LOADING)]
        resumed = launch(zygote, LOADING, transport, [Case(programs.resumes, inputs, ())])
        for run, expected in ((saved, params[1]), (resumed, params[3])):
            assert run.findings == ()
            for rank, (seen,) in enumerate(run.ranks):
                assert not (found := differences(seen, expected, EXACT)), (transport, rank, found)


def train_on(state, before, after):
    """Parameters after each of the steps, those of `after` with the mean over fewer ranks."""
    fewer = [
        [{**batch, "weight": batch["weight"] * len(before[0]) / len(batches)} for batch in batches] for batches in after
    ]
    return train("mlp", state, [*before, *fewer], scale=1 / len(before[0]))["params"]


@pytest.mark.parametrize("size", [2, 3])
def test_a_whole_state_dict_is_handed_out_and_gathered(agree, size):
    state = initial_state("mlp")
    start = {key: value * 0 for key, value in state.items()}
    agree(size, [Case(programs.gathers_and_hands_out, [{"state": state, "start": start}] * size, [state] * size)])
