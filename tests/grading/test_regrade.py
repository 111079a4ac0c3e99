"""A file that is graded again and again: what failed last comes first, with the same inputs until it passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.errors import KitError
from kit.grading.regrade import Regrader
from kit.grading.result import CheckResult
from kit.world import Zygote
from tests.grading.conftest import RIGHT, TOY

SUM = RIGHT.replace("/ dist.get_world_size(group)", "")
TWICE = RIGHT.replace("    return", "    dist.all_reduce(total.clone(), group=group)\n    return")


@pytest.fixture
def regrader(zygote: Zygote, tmp_path: Path) -> Regrader:
    return Regrader(TOY, "toy/mean", tmp_path / "answer.py", "both", zygote)


def graded(regrader: Regrader, text: str) -> tuple[str, list[tuple[str, int, str]]]:
    """The verdict, and the checks in the order in which they ended."""
    order: list[tuple[str, int, str]] = []

    def tell(check: CheckResult) -> None:
        order.append((check.name, check.world_size, check.transport))

    regrader.path.write_text(text, encoding="utf-8")
    return regrader.grade(tell).verdict, order


def test_what_failed_last_comes_first(regrader: Regrader) -> None:
    verdict, order = graded(regrader, SUM)
    assert verdict == "wrong" and regrader.last is not None and regrader.last.first_failure is not None
    failed = regrader.last.first_failure
    assert failed.world_size == 2 and order[0] != (failed.name, 2, "switchboard")
    verdict, again = graded(regrader, SUM)
    assert again[0] == (failed.name, 2, "switchboard")
    assert sorted(again) == sorted(order) and again[1:] == [one for one in order if one != again[0]]
    assert graded(regrader, TWICE)[0] == "wrong"
    verdict, order = graded(regrader, RIGHT)
    assert verdict == "passed" and order[0][0] == "test_one_all_reduce"


def test_inputs_stay_the_same_until_the_file_passes(regrader: Regrader) -> None:
    seeds = []
    for text in (SUM, SUM, RIGHT, SUM, TWICE):
        graded(regrader, text)
        assert regrader.last is not None
        seeds.append(regrader.last.seed)
    assert seeds[0] == seeds[1] == seeds[2] != seeds[3] == seeds[4]


def test_gloo_is_tried_once_the_switchboard_lets_it_pass(regrader: Regrader) -> None:
    here: list[str] = []
    regrader.path.write_text(SUM, encoding="utf-8")
    assert {check.transport for check in regrader.grade().checks} == {"switchboard"}
    regrader.path.write_text(RIGHT, encoding="utf-8")
    result = regrader.grade(passed_here=lambda result: here.append(result.verdict))
    assert here == ["passed"] and result.verdict == "passed"
    assert {check.transport for check in result.checks} == {"switchboard", "gloo"}
    only_gloo = RIGHT.replace(
        "    total =",
        "    assert 'Gloo' not in type(dist.group.WORLD._get_backend(torch.device('cpu'))).__name__\n    total =",
    )
    regrader.path.write_text(only_gloo, encoding="utf-8")
    result = regrader.grade()
    assert result.verdict == "crashed" and result.first_failure is not None
    assert result.first_failure.transport == "gloo"


def test_a_file_that_cannot_be_graded_is_said_and_changes_nothing(regrader: Regrader) -> None:
    graded(regrader, SUM)
    before = regrader.last
    with pytest.raises(KitError, match="syntax error"):
        graded(regrader, "def mean_over_ranks(:\n")
    regrader.path.unlink()
    with pytest.raises(KitError, match="no file"):
        regrader.grade()
    assert regrader.last is before
    assert graded(regrader, TOY.starter("toy/mean").read_text(encoding="utf-8"))[0] == "not_started"
