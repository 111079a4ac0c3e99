"""Checks of a checkpoint writer: what is saved on n ranks loads on n + 1, and a crash while saving loses nothing."""

import torch

from kit.grading import Phase, Scenario, fail
from kit.grading.faults import Delay, FilesystemEvent, Kill, Operation


def save(solution, inputs):
    solution.save(inputs["state"], inputs["shared_dir"])


def load(solution, inputs):
    return solution.load(inputs["shared_dir"])


def problem(rng, world_size):
    return {"versions": [torch.randn(4000, generator=rng) for _ in range(40)]}


def rank_inputs(problem, rank):
    return {"state": problem["versions"][0]}


def crash_after_crash(problem, world_size):
    """Save version 0; then version n with a crash at event n of the last rank, and load on one rank more."""

    def state(version):
        return lambda rank: {"state": problem["versions"][version]}

    yield Phase(save, state(0), world_size)
    for n in range(1, len(problem["versions"])):
        saved = yield Phase(save, state(n), world_size, [Kill(world_size - 1, FilesystemEvent(n), torn=True)])
        yield Phase(load, lambda rank: {}, world_size + 1)
        if not saved.killed:
            return


CRASHES = Scenario(
    save,
    problem=problem,
    rank_inputs=rank_inputs,
    expected=lambda problem: None,
    phases=crash_after_crash,
    shared_dir=True,
    world_sizes=(1, 2),
    gloo=(),
)


@CRASHES.check("values")
def test_a_crash_during_saving_loses_nothing(run):
    """After a crash at any moment of saving, either the old state loads or the new one."""
    there = 0
    results = [*run.earlier, run.result]
    for n, loaded in enumerate(results[2::2], 1):
        found = [v for v in (there, n) if all(torch.equal(x, run.problem["versions"][v]) for x in loaded.ranks)]
        if not found:
            fail(f"after a crash before filesystem event {n}, neither the old nor the new state loads")
        there = found[0]
    if there != len(results) // 2:
        fail("a save that was not disturbed does not load")


@CRASHES.check("discipline")
def test_the_phases_have_the_sizes_that_they_asked_for(run):
    """Loading has one rank more than saving."""
    if run.result.world_size != run.world_size + 1 or run.earlier[0].world_size != run.world_size:
        fail(f"{run.result.world_size} ranks load what {run.world_size} ranks saved")


def wait(solution, inputs):
    torch.distributed.barrier()


LATE = Scenario(
    wait,
    problem=problem,
    rank_inputs=lambda problem, rank: None,
    expected=lambda problem: None,
    faults=lambda problem, world_size: [Delay(world_size - 1, Operation(1), 5.0), Kill(0, Operation(2))],
    world_sizes=(2, 3),
    gloo=(),
)


@LATE.check("time")
def test_faults_are_given_by_world_size(run):
    """The last rank stands still for five seconds, and the second operation never comes."""
    late = [sum(e.seconds for e in run.trace.events(rank) if e.what == "delay") for rank in range(run.world_size)]
    if late != [0.0] * (run.world_size - 1) + [5.0]:
        fail(f"ranks stood still for {late}")
    if [finding.kind for finding in run.findings] != ["fault"]:
        fail(f"the kill that never struck is not told: {run.findings}")
