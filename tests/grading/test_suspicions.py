"""Swapped collectives, as far as call sites tell; findings that may explain wrong values."""

from __future__ import annotations

from collections.abc import Callable

from kit.grading.call_sites import suspect_swap
from kit.grading.result import GradeResult
from kit.world import Operation

Grade = Callable[..., GradeResult]


def op(rank: int, site: str, **more: object) -> Operation:
    fields = {
        "name": "all_reduce", "group": (0, 1), "peer": None, "root": None, "reduce_op": "SUM", "dtype": "float64",
        "shape": (3,), "numel": 3, "nbytes": 24, "sent_bytes": 24, "async_op": False, "waited": True, "order": 0,
        "completed_order": 0,
    }  # fmt: skip
    return Operation(rank=rank, site=site, **{**fields, **more})  # type: ignore[arg-type]


def test_a_swap_is_named_with_both_lines_and_its_place() -> None:
    operations = [
        op(0, "a.py:5"),
        op(0, "a.py:10"),
        op(0, "a.py:12"),
        op(1, "a.py:5"),
        op(1, "a.py:12"),
        op(1, "a.py:10"),
    ]
    assert suspect_swap(operations) == (
        "suspect: rank 0 called all_reduce at a.py:10, rank 1 at a.py:12, as 2nd operation of their group"
    )


def test_lines_that_belong_to_one_rank_alone_are_a_branch_on_the_rank() -> None:
    branch = [op(0, "a.py:10", name="broadcast", root=0), op(1, "a.py:12", name="broadcast", root=0)]
    assert suspect_swap(branch) == ""


def test_other_kinds_at_the_same_place_are_no_swap() -> None:
    assert (
        suspect_swap([op(0, "a.py:10"), op(0, "a.py:12", numel=4), op(1, "a.py:12", numel=4), op(1, "a.py:10")]) == ""
    )
    assert suspect_swap([op(0, "a.py:1"), op(1, "a.py:1")]) == ""
    assert suspect_swap([op(0, ""), op(0, "a.py:1"), op(1, "a.py:1"), op(1, "")]) == ""


def test_groups_are_looked_at_apart_and_messages_not_at_all() -> None:
    group_of_two = [op(2, "a.py:1", group=(2, 3)), op(3, "a.py:1", group=(2, 3))]
    messages = [op(0, "a.py:7", name="send"), op(0, "a.py:8", name="send"), op(1, "a.py:8", name="send")]
    assert suspect_swap([*group_of_two, *messages, op(0, "a.py:1"), op(1, "a.py:1")]) == ""


def test_every_rank_of_a_group_is_looked_at() -> None:
    three = {"group": (0, 1, 2)}
    operations = [
        op(rank, site, **three)
        for rank, sites in enumerate([("a.py:1", "a.py:2"), ("a.py:1", "a.py:2"), ("a.py:2", "a.py:1")])
        for site in sites
    ]
    assert "rank 2 at a.py:2, as 1st operation" in suspect_swap(operations)


def test_a_swap_is_advice_in_the_grade_of_a_wrong_file(grade_text: Grade) -> None:
    result = grade_text(
        """
        import torch, torch.distributed as dist

        def mean_over_ranks(tensor, group=None):
            total, other = tensor.clone(), torch.ones_like(tensor)
            def reduce_total():
                dist.all_reduce(total, group=group)
            def reduce_other():
                dist.all_reduce(other, group=group)
            steps = [reduce_total, reduce_other]
            for step in steps if dist.get_rank() == 0 else reversed(steps):
                step()
            return total / dist.get_world_size(group)
        """
    )
    first = result.first_failure
    assert first is not None and first.proof == "values"
    assert first.suspicions == (
        "suspect: rank 0 called all_reduce at answer.py:7, rank 1 at answer.py:9, as 1st operation of their group",
    )


def test_a_work_that_nobody_waits_for_is_advice_too(grade_text: Grade) -> None:
    result = grade_text(
        """
        import torch, torch.distributed as dist

        def mean_over_ranks(tensor, group=None):
            dist.all_reduce(tensor.clone(), group=group, async_op=True)
            return tensor / dist.get_world_size(group)
        """
    )
    first = next(check for check in result.checks if check.verdict == "failed" and check.proof == "values")
    assert first.suspicions and "answer.py:5" in first.suspicions[0]
