"""What is foretold of a launch is what its trace, its timeline and its pages say; facts are without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kit.bank.layout import find_bank
from kit.errors import KitError
from kit.grading.grader import ranks_ready
from kit.grading.measured import described, facts, part_of, quantities
from kit.grading.preflight import prepare
from kit.grading.scenario import Run
from kit.grading.timelines import launch_once
from kit.world import Zygote

BANK = find_bank()


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with ranks_ready() as one:
        yield one


def launched(question_id: str, zygote: Zygote) -> Run:
    assignment = prepare(question_id, BANK.reference(question_id), BANK)
    _, _, launch = launch_once(assignment, None, None, seed=1, zygote=zygote)
    assert launch.run is not None
    return launch.run


@pytest.fixture(scope="module")
def pipeline(zygote: Zygote) -> Run:
    return launched("pp/gpipe", zygote)


def test_a_part_and_the_pages_of_a_pipeline(pipeline: Run) -> None:
    found = {each.name: each for each in quantities(pipeline.result, None)}
    assert list(found) == ["traffic", "bubble", "memory"]  # messages cost nothing under this profile
    known = facts(pipeline, None)
    num_microbatches = next(count for what, count, _ in known.computes if what == "F")
    stages = pipeline.world_size
    assert found["bubble"].measured == pytest.approx((stages - 1) / (num_microbatches + stages - 1))
    sends = [one for one in known.operations if one.startswith("send ")]
    assert len(sends) == 1 and sends[0].startswith("send float64 [")
    rows, columns = map(int, sends[0].partition("[")[2].rstrip("]").split(", "))
    assert found["traffic"].measured == num_microbatches * rows * columns * 8
    # Two activations of 2 MiB, and what the allocator rounds up: see the checks' own program.
    assert 4 << 20 <= found["memory"].measured < 6 << 20 and found["memory"].since == "before"


def test_parts_are_found_by_their_marks(pipeline: Run) -> None:
    assert part_of(pipeline.result, None) == ("batch 0", "batch 0 done")
    assert part_of(pipeline.result, "batch 2") == ("batch 2", "batch 2 done")
    assert part_of(pipeline.result, "batch 0 done") == ("batch 0 done", None)
    whole = sum(operation.sent_bytes for operation in pipeline.trace.operations(0))
    one, other = (quantities(pipeline.result, name)[0].measured for name in ("batch 0", "batch 1"))
    assert one != other and one + other < whole
    with pytest.raises(KitError, match="no mark 'batch 9'; its marks: batch 0, "):
        part_of(pipeline.result, "batch 9")


def test_facts_show_the_program_and_its_constants_and_no_figure(pipeline: Run) -> None:
    known = facts(pipeline, None)
    text = "\n".join(known.sources)
    assert "def run_each(" in text and "def hold_batch(" in text and "HELD_MICROBATCHES = 10" in text
    assert "def squared_error(" not in text and "Scenario(" not in text
    assert any(line.startswith("batches[0].microbatches: ") for line in known.inputs)
    shown = "\n".join([*known.operations, *known.inputs])
    for each in quantities(pipeline.result, None):
        assert f"{each.measured:g}" not in shown


def test_communication_that_costs_time_is_asked_for(zygote: Zygote) -> None:
    run = launched("dp/bucketed", zygote)
    found = {each.name: each for each in quantities(run.result, None)}
    timeline = run.timeline.between("step 1", "step 1 done")
    assert found["exposed"].measured == timeline.exposed_s(0) > 0
    assert facts(run, None).communication_s == timeline.communication_s(0) > found["exposed"].measured
    assert "memory" not in found


@pytest.mark.parametrize(
    ("tree", "lines"),
    [
        ({"x": torch.zeros(2, 3)}, ["x: float32 [2, 3]"]),
        ([torch.zeros(2), torch.ones(2)], [": 2 x float32 [2]"]),
        ({"a": [torch.zeros(2), torch.ones(3)]}, ["a[0]: float32 [2]", "a[1]: float32 [3]"]),
        ({"shape": (2, 3), "rate": 0.5, "none": None}, ["shape: [2, 3]", "rate: 0.5", "none: None"]),
        ({"shapes": [(2, 3), (2, 3)]}, ["shapes: 2 x [2, 3]"]),
        ({"a": {"b": [1, 2]}}, ["a.b: [1, 2]"]),
    ],
)  # fmt: skip
def test_inputs_in_lines(tree: object, lines: list[str]) -> None:
    assert list(described(tree, "")) == lines


def test_the_paths_of_this_machine_are_no_part_of_it(pipeline: Run) -> None:
    assert str(Path(BANK.root)) not in "\n".join(facts(pipeline, None).sources)
