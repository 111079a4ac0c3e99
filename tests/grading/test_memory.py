"""Claims about memory: what they accept, and how they name what went wrong."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kit.grading.diagnosis import CheckFailed
from kit.grading.memory import claim_baseline, claim_persistent
from kit.grading.result import CheckResult, GradeResult, verdict_of
from kit.world.failure import NotMeasured
from kit.world.memory import Memory, Reading

MIB = 1 << 20


def run_of(*grown_mib, reason="", reserve_mib=0, born_mib=200):
    """Ranks that have grown by so much from the hold "before" to the hold "after"."""
    born = None if born_mib is None else born_mib * MIB
    readings = [
        Reading(rank, "before", int((200 + reserve_mib) * MIB), 0, born_bytes=born) for rank in range(len(grown_mib))
    ]
    readings += [Reading(rank, "after", int((200 + reserve_mib + mib) * MIB), 0) for rank, mib in enumerate(grown_mib)]
    return SimpleNamespace(memory=Memory(tuple(readings), reason=reason), world_size=len(grown_mib))


def claim(run, *, label="after", expected_mib=16, **options):
    options = {"whole_bytes": 64 * MIB, "room_bytes": 2 * MIB, **options}
    claim_persistent(run, label, since="before", expected_bytes=lambda rank: expected_mib * MIB, **options)


def said(run, **options):
    with pytest.raises(CheckFailed) as caught:
        claim(run, **options)
    return str(caught.value)


def test_up_to_the_room_is_right_and_less_too():
    claim(run_of(16, 17.9, 3, -20))


def test_least_is_asked_for():
    claim(run_of(14.1, 17.9), is_least_too=True)
    text = "keeps 3.0 MiB of state, expected 16.0 MiB - 2.0 MiB at most"
    assert said(run_of(16, 3), is_least_too=True).endswith(f"world_size=2, rank 1: {text}")


@pytest.mark.parametrize(
    ("grown", "text"),
    [
        ((64.5, 64.1), "rank 0: keeps 64.5 MiB of state, expected 16.0 MiB + 2.0 MiB at most: this is the whole state, "
         "nothing is sharded"),
        ((16, 64.1), "rank 1: keeps 64.1 MiB of state, expected 16.0 MiB + 2.0 MiB at most: this is the whole state, "
         "on one rank"),
        ((32.5, 31.9), "twice the expected: state, kept twice"),
        ((48.5, 48.0), "three times the expected: state, kept three times"),
    ],
)  # fmt: skip
def test_the_mistake_is_named(grown, text):
    assert text in said(run_of(*grown))


@pytest.mark.parametrize("grown", [(16, 32), (18.1, 16), (40, 40)])
def test_no_mistake_is_named_where_none_explains_it(grown):
    assert said(run_of(*grown)).endswith("MiB at most")


def test_what_is_due_before_the_baseline_is_right():
    claim(run_of(16, reserve_mib=2.9))
    claim(run_of(16, reserve_mib=-5))
    claim(run_of(16, reserve_mib=34.9), given_bytes=lambda rank: 32 * MIB)


def test_a_reserve_before_the_baseline_fails_though_nothing_has_grown():
    text = (
        "rank 0: had 40.0 MiB of its own at the hold 'before', from which its memory is counted, where 32.0 MiB + "
        "3.0 MiB at most are due to it: what is kept in reserve would hide what is kept later"
    )
    assert said(run_of(0, 0, reserve_mib=40), given_bytes=lambda rank: 32 * MIB).endswith(text)
    assert "due to it" in said(run_of(0, 0, reserve_mib=3.1))


def test_a_baseline_may_have_less_room():
    run = run_of(0, reserve_mib=2.5)
    claim_baseline(run, "before")
    with pytest.raises(CheckFailed, match=r"2\.5 MiB of its own"):
        claim_baseline(run, "before", room_bytes=2 * MIB)
    with pytest.raises(CheckFailed, match="was not held at 'later'"):
        claim_baseline(run, "later")


def test_where_ranks_are_not_forked_the_claim_has_not_run():
    with pytest.raises(NotMeasured, match="not forked"):
        claim(run_of(16, born_mib=None))


def test_a_hold_that_never_was_fails():
    assert "rank 0 was not held at 'later'" in said(run_of(16), label="later")


def test_a_room_below_the_accuracy_is_refused():
    with pytest.raises(ValueError, match="leave 2 MiB"):
        claim(run_of(16), room_bytes=MIB)


def test_what_cannot_be_read_is_no_failure():
    with pytest.raises(NotMeasured, match="no /proc"):
        claim(run_of(64, 64, reason="no /proc"))


def result_of(verdict, proof="values", **more):
    return CheckResult("test_x", "X.", proof, 2, "switchboard", verdict, **more)


def test_a_grade_without_memory_is_passed_and_gives_no_points_for_it():
    checks = (result_of("passed"), result_of("passed", "memory"))
    unread = result_of("not_run", "memory", message="no /proc", is_beyond_machine=True)
    assert verdict_of((*checks, unread)) == "passed"
    assert verdict_of((*checks, result_of("not_run", "memory"))) == "kit_error"
    graded = GradeResult("a/b", "x.py", "passed", 1, {"values": 3, "memory": 2}, (*checks, unread), 1.0)
    assert {row.proof: (row.state, row.points) for row in graded.rows()}["memory"] == ("not_run", 0)
    assert graded.score == 3
