"""Which launch of a question tells most about its time, and how to make one launch alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kit.errors import KitError
from kit.grading.launches import Launch, Launches, Subject, Wanted
from kit.grading.preflight import Assignment
from kit.grading.scenario import Run, Scenario
from kit.world import Zygote


def telling_run(runs: Iterable[Run]) -> Run | None:
    """Of the runs on the switchboard: the first scenario's that has a check of time, else the first one's; the largest
    world size."""
    seen = [run for run in runs if run.transport == "switchboard"]
    if not seen:
        return None
    scenario = _telling([run.scenario for run in seen])
    return max((run for run in seen if run.scenario is scenario), key=lambda run: run.world_size)


def _telling(scenarios: Sequence[Scenario]) -> Scenario:
    timed = (scenario for scenario in scenarios if any(check.proof == "time" for check in scenario.checks))
    return next(timed, scenarios[0])


def launch_once(
    assignment: Assignment, scenario: str | None, world_size: int | None, *, seed: int, zygote: Zygote
) -> tuple[Scenario, int, Launch]:
    """One launch on the switchboard: (scenario, world size, what became of it).

    scenario: its name or a part of it; None takes the one that tells most. world_size: None takes its largest.
    Raises KitError where there is no such scenario, or it has no problem for that many ranks.
    """
    checks = assignment.bank.checks(assignment.question).resolve()
    chosen = _scenario(assignment.question, checks, scenario)
    size = world_size if world_size is not None else max(chosen.world_sizes)
    subject = Subject(checks, assignment.solution.path.resolve(), assignment.interface, assignment.forbidden)
    try:
        return chosen, size, Launches(seed, lambda: zygote).get(Wanted(subject, chosen, size, "switchboard"))
    except KitError:
        raise
    except Exception as error:
        if size in chosen.world_sizes:
            raise
        raise KitError(
            f"{assignment.question}: {chosen.name} makes no problem for {size} ranks ({type(error).__name__}: {error})",
            f"its checks run at world sizes {', '.join(map(str, chosen.world_sizes))}",
        ) from None


def _scenario(question: str, checks: Path, name: str | None) -> Scenario:
    from kit.grading.entry import CHECKS_NAME, load_by_path

    values = vars(load_by_path(str(checks), CHECKS_NAME)).values()
    scenarios = [value for value in values if isinstance(value, Scenario) and value.checks]
    if not scenarios:
        raise KitError(f"{question} has no scenario with a check", "run `shardkit lint`")
    if name is None:
        return _telling(scenarios)
    found = [one for one in scenarios if name == one.name] or [one for one in scenarios if name in one.name]
    names = ", ".join(one.name for one in scenarios)
    if len(found) != 1:
        what = "several scenarios fit" if found else "no scenario"
        raise KitError(f"{question}: {what} {name!r}", f"there are {names}")
    return found[0]
