"""One launch as something to be foretold: the facts that decide its figures, and the figures."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from kit.bank.quantities import Facts, Quantity
from kit.errors import KitError
from kit.grading.scenario import Run
from kit.world import Result
from kit.world.timeline import Timeline
from kit.world.trace import Operation

TOLERANCE = 0.02
MEMORY_TOLERANCE = 0.15  # pages, and what torch keeps for itself
LEAST_MEMORY = 1 << 20  # bytes; what is less is lost among pages
BEFORE = "before"  # what checks call the hold from which on they count
RANK = 0


def part_of(result: Result, wanted: str | None) -> tuple[str, str | None]:
    """(begin, end): the marks of the part that is measured, ("", None) for the whole run.

    wanted: a mark; None takes the first that has an end. Raises KitError where no rank has that mark.
    """
    names = [event.what for event in result.trace.events(RANK) if event.kind == "mark"]
    if wanted is None:
        begin = next((name for name in names if f"{name} done" in names), "")
    elif wanted in names:
        begin = wanted
    else:
        known = ", ".join(dict.fromkeys(names)) or "none"
        raise KitError(f"rank {RANK} has no mark {wanted!r}; its marks: {known}")
    return begin, f"{begin} done" if begin and f"{begin} done" in names else None


def quantities(result: Result, wanted: str | None) -> tuple[Quantity, ...]:
    """What this launch measured and is not nothing: traffic and exposed communication of rank 0, the bubble as a mean
    over ranks, and by how much rank 0 grew at most."""
    begin, end = part_of(result, wanted)
    timeline = result.timeline.between(begin, end) if begin else result.timeline
    found = []
    sent = sum(operation.sent_bytes for operation in operations_in(result, begin, end))
    if sent:
        found.append(Quantity("traffic", "B", sent, TOLERANCE, RANK))
    if has_compute(timeline) and timeline.makespan_s > 0:
        ranks = range(timeline.world_size)
        bubble = sum(timeline.bubble_fraction(rank) for rank in ranks) / timeline.world_size
        found.append(Quantity("bubble", "fraction", bubble, TOLERANCE))
    if timeline.communication_s(RANK) > 0:
        found.append(Quantity("exposed", "s", timeline.exposed_s(RANK), TOLERANCE, RANK))
    return (*found, *memory(result))


def memory(result: Result) -> Iterator[Quantity]:
    """By how much rank 0 exceeded, at any later hold or before it, what it had at the hold `before`."""
    readings = [reading for reading in result.memory.readings if reading.rank == RANK]
    labels = [reading.label for reading in readings]
    if result.memory.reason or BEFORE not in labels:
        return
    place = labels.index(BEFORE)
    later = readings[place + 1 :]
    grown = max((each.peak_bytes for each in later), default=0) - readings[place].persistent_bytes
    if grown >= LEAST_MEMORY:
        yield Quantity("memory", "B", grown, MEMORY_TOLERANCE, RANK, BEFORE)


def has_compute(timeline: Timeline) -> bool:
    return any(timeline.busy_s(rank) > 0 for rank in range(timeline.world_size))


def operations_in(result: Result, begin: str, end: str | None) -> list[Operation]:
    """What rank 0 issued between its own two marks."""
    operations = {operation.order: operation for operation in result.trace.operations(RANK)}
    if not begin:
        return list(operations.values())
    issued, is_inside = [], False
    for event in result.trace.events(RANK):
        if event.kind == "mark" and event.what == (end if is_inside else begin):
            is_inside = not is_inside
            if not is_inside:
                break
        elif is_inside and event.kind == "issue" and event.operation in operations:
            issued.append(operations[event.operation])
    return issued


# -- what may be known before -----------------------------------------------------------------------------------------


def facts(run: Run, wanted: str | None) -> Facts:
    begin, end = part_of(run.result, wanted)
    timeline = run.timeline.between(begin, end) if begin else run.timeline
    spent: dict[str, list[float]] = {}
    for span in timeline.of(RANK, "compute"):
        spent.setdefault(span.what, []).append(span.duration_s)
    operations = operations_in(run.result, begin, end)
    return Facts(
        tuple(sources(run)),
        begin,
        tuple(described(run.scenario.rank_inputs(run.problem, RANK), "")),
        tuple((what, len(times), sum(times) / len(times)) for what, times in spent.items()),
        tuple(dict.fromkeys(f"{op.name} {op.dtype} {list(op.shape)}" for op in operations if op.dtype)),
        timeline.communication_s(RANK),
    )


def sources(run: Run) -> Iterator[str]:
    """The program's text, what it calls that marks or holds, and the constants that these name."""
    module = inspect.getmodule(run.scenario.program)
    names: Mapping[str, Any] = vars(module) if module is not None else run.scenario.program.__globals__
    texts: dict[str, str] = {}
    waiting = [run.scenario.program.__name__]
    used: list[str] = []
    while waiting:
        name = waiting.pop(0)
        text = own_source(names.get(name), run)
        if name in texts or not text:
            continue
        mentioned = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
        is_shown = name == run.scenario.program.__name__ or "mark(" in text or "hold(" in text
        if is_shown:
            texts[name] = text
            used += mentioned
        waiting += [each for each in mentioned if each not in texts and each != name and is_shown]
    constants = [name for name in dict.fromkeys(used) if name.isupper() and is_plain(names.get(name))]
    if constants:
        yield "\n".join(f"{name} = {names[name]!r}" for name in constants)
    yield from texts.values()


def own_source(thing: object, run: Run) -> str:
    """The text of a function or class of the checks file; empty for anything else."""
    is_own = getattr(thing, "__module__", None) == run.scenario.program.__module__
    if not is_own or not (inspect.isfunction(thing) or inspect.isclass(thing)):
        return ""
    try:
        return inspect.getsource(thing).rstrip()
    except (OSError, TypeError):
        return ""


def is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    return isinstance(value, (bool, int, float, str))


def described(tree: Any, path: str) -> Iterator[str]:
    """`batches[0].microbatches: 5 x float64 [3, 4]`: one line for each leaf, equal neighbours of a list in one."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from described(value, f"{path}.{key}" if path else str(key))
    elif isinstance(tree, (list, tuple)) and not all(is_plain(each) and type(each) is not tuple for each in tree):
        parts = [tuple(described(value, "")) for value in tree]
        if len(set(parts)) == 1 and len(parts) > 1 and len(parts[0]) == 1:
            yield f"{path}: {len(parts)} x {parts[0][0].removeprefix(': ')}"
            return
        for index, value in enumerate(tree):
            yield from described(value, f"{path}[{index}]")
    elif isinstance(tree, torch.Tensor):
        yield f"{path}: {str(tree.dtype).removeprefix('torch.')} {list(tree.shape)}"
    else:
        yield f"{path}: {list(tree) if isinstance(tree, tuple) else tree}"
