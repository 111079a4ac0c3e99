"""Checks of toy/mean."""

import torch

from kit.grading import Scenario, compare, fail


def average(solution, inputs):
    before = inputs["x"].clone()
    mean = solution.mean_over_ranks(inputs["x"])
    return {"mean": mean, "x": inputs["x"], "before": before}


def problem(rng, world_size):
    return {"parts": [torch.randn(3, 5, generator=rng, dtype=torch.float64) for _ in range(world_size)]}


def rank_inputs(problem, rank):
    return {"x": problem["parts"][rank]}


def expected(problem):
    return {"mean": sum(problem["parts"]) / len(problem["parts"])}


MEAN = Scenario(
    average,
    problem=problem,
    rank_inputs=rank_inputs,
    expected=expected,
    world_sizes=(1, 2, 3),
    gloo=(2,),
    deadline_s=3,
)


@MEAN.check("values")
def test_every_rank_has_the_mean(run):
    """Every rank returns the mean over ranks."""
    for rank, returned in enumerate(run.ranks):
        compare(
            returned["mean"],
            run.expected["mean"],
            what="mean",
            rank=rank,
            world_size=run.world_size,
            suspects={"this rank's own tensor": run.problem["parts"][rank]},
        )


@MEAN.check("discipline")
def test_the_input_is_left_alone(run):
    """The tensor that came in is as it was."""
    for rank, returned in enumerate(run.ranks):
        compare(returned["x"], run.problem["parts"][rank], what="input", rank=rank, rtol=0)


@MEAN.check("traffic")
def test_one_all_reduce(run):
    """One all_reduce and nothing else."""
    for rank in range(run.world_size):
        names = [operation.name for operation in run.trace.operations(rank)]
        if names != ["all_reduce"]:
            fail(f"rank {rank} called {names or 'nothing'}, expected one all_reduce", world_size=run.world_size)


@MEAN.completes
def test_every_rank_finishes(run):
    """No rank hangs or crashes."""
