"""What a grade says of how a wrong answer shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.grading.diagnosis import Diagnosis
from kit.grading.result import CheckResult, GradeResult
from kit.grading.symptoms import ranks_in, seen_in, symptom_of
from kit.world.failure import KINDS

FAILED = CheckResult("test_it", "It holds.", "values", 3, "switchboard", "failed", "every sum is wrong")


@pytest.mark.parametrize(
    ("kind", "symptom"),
    [
        ("hang", "hang"), ("deadline", "hang"), ("mismatch", "hang"), ("race", "race"), ("refused", "refused"),
        ("crash", "crash"), ("memory", "crash"), ("output", "crash"),
    ],
)  # fmt: skip
def test_a_launch_that_fails_shows_by_its_kind(kind: str, symptom: str) -> None:
    assert kind in KINDS
    assert symptom_of(replace(FAILED, proof="discipline", launch_kind=kind)) == symptom


@pytest.mark.parametrize("proof", ["values", "traffic", "memory", "time", "discipline"])
def test_a_check_that_fails_shows_by_its_proof(proof: str) -> None:
    assert symptom_of(replace(FAILED, proof=proof)) == proof


@pytest.mark.parametrize(
    ("found", "message", "ranks"),
    [
        (Diagnosis("rank 3 is named", rank=2), "", (2,)),
        (Diagnosis("rank 1 of 4 sent 8 messages"), "", (1,)),
        (None, "a cycle: rank 1 waits in send to rank 0, rank 0 waits in send to rank 1\n  rank 7", (1, 0)),
        (None, "frank 3 rank", ()),
    ],
)
def test_the_ranks_are_those_that_the_sentence_names(
    found: Diagnosis | None, message: str, ranks: tuple[int, ...]
) -> None:
    assert ranks_in(replace(FAILED, diagnosis=found, message=message)) == ranks


def test_the_ratio_is_the_measured_one_whatever_the_sentence_says() -> None:
    measured = Diagnosis("every sum equals twice this rank's own", "values", signature="own", ratio=0.375)
    for found, ratio in ((measured, 0.375), (replace(measured, ratio=None), None), (None, None)):
        failed = replace(FAILED, diagnosis=found)
        seen = seen_in(GradeResult("sums/add", "add.py", "wrong", 1, {"values": 4}, (failed,), 0.1))
        assert seen is not None and seen.ratio == ratio


def test_the_first_failure_decides_and_all_are_known() -> None:
    hung = replace(FAILED, name="test_ends", proof="discipline", launch_kind="hang", message="rank 2 waits")
    passed = replace(FAILED, name="test_fast", proof="time", verdict="passed")
    result = GradeResult("sums/add", "add.py", "hung", 1, {"values": 4}, (FAILED, hung, passed), 0.1)
    seen = seen_in(result)
    assert seen is not None
    assert (seen.symptom, seen.symptoms, seen.ranks) == ("hang", {"hang", "values"}, (2,))
    assert seen_in(replace(result, checks=(passed,))) is None
