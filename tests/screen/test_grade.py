"""A grade on the screen: what it says, at every width, and what it does not let a learner's file say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.grading.diagnosis import Diagnosis
from kit.grading.result import CheckResult, GradeResult
from kit.screen.grade import show_grade, visible
from tests.screen.pages import page, text_of

SUMMED = Diagnosis(
    "every gradient is 2.000x the expected one: summed over ranks, not averaged",
    "values",
    what="gradient",
    where="after step 1",
    rank=0,
    world_size=2,
    path="layers.0.weight",
    expected_kind="float64 [4, 3]",
    got_kind="float64 [4, 3]",
    index=(2, 0),
    expected=(0.314159265, -0.27182818, 0.57721566),
    got=(0.62831853, -0.54365636, 1.15443132),
    max_relative_error=1.0,
    num_wrong=6,
    num_compared=6,
    signature="N x",
)
VALUES = CheckResult(
    "test_gradients_are_the_mean", "Every .grad on every rank is the mean over ranks.", "values", 2, "switchboard",
    "failed", SUMMED.text(), 0.1, diagnosis=SUMMED,
)  # fmt: skip
TRAFFIC = CheckResult("test_bytes", "Each gradient travels once.", "traffic", 2, "switchboard", "passed")
FINISHES = CheckResult("test_finishes", "Every rank finishes.", "discipline", 2, "switchboard", "passed")


def result(*checks: CheckResult, verdict: str = "wrong", message: str = "") -> GradeResult:
    points = {"values": 4, "traffic": 2, "discipline": 2}
    return GradeResult("dp/bucketed", "mine.py", verdict, 7, points, checks, 1.0, message)


def shown(graded: GradeResult, width: int = 80, **more: str) -> str:
    sheet = page(width=width)
    show_grade(sheet, graded, **more)
    return text_of(sheet)


WRONG = result(
    VALUES,
    replace(VALUES, world_size=4),
    replace(VALUES, world_size=1, verdict="passed", message="", diagnosis=None),
    replace(VALUES, transport="gloo", verdict="not_run", message="it fails on the switchboard at world_size=2"),
    TRAFFIC,
    FINISHES,
)


def test_a_wrong_answer_reads_like_a_review() -> None:
    assert (
        shown(WRONG)
        == """\
dp/bucketed  mine.py
wrong   0 of 8 points

  values      ✗ failed    0/4   1 of 1 check fails
  traffic     ✓ passed    2/2   1 check
  memory      · no check
  time        · no check
  discipline  ✓ passed    2/2   1 check
              without values the score is 0

First cause
  Every .grad on every rank is the mean over ranks.
  test_gradients_are_the_mean, world_size=2, switchboard
  fails at world sizes 2, 4, holds at 1

  world_size=2, rank 0, after step 1: every gradient is 2.000x the expected one:
  summed over ranks, not averaged
    worst: gradient layers.0.weight, float64 [4, 3]: largest error 1 x its
      largest magnitude
    expected  0.314159  -0.271828  0.577216
    got       0.628319  -0.543656   1.15443   at [2, 0:3]

the same inputs again: shardkit grade dp/bucketed mine.py --seed 7
a hint: shardkit grade dp/bucketed mine.py --hint 1
"""
    )


def test_a_right_answer_takes_a_few_lines() -> None:
    right = result(replace(VALUES, verdict="passed"), TRAFFIC, FINISHES, verdict="passed")
    assert (
        shown(right)
        == """\
dp/bucketed  mine.py
passed   8 of 8 points

  values      ✓ passed    4/4   1 check
  traffic     ✓ passed    2/2   1 check
  memory      · no check
  time        · no check
  discipline  ✓ passed    2/2   1 check

the same inputs again: shardkit grade dp/bucketed mine.py --seed 7
"""
    )


def test_a_line_of_code_that_is_too_wide_stays_below_its_frame() -> None:
    told = f'rank 0 raised KeyError\n  File "mine.py", line 3, in step\n    {"a  + " * 20}'
    lines = shown(result(replace(FINISHES, verdict="failed", message=told), verdict="crashed")).splitlines()
    at = lines.index('    File "mine.py", line 3, in step')
    assert lines[at + 1].startswith("      a + ") or lines[at + 1].startswith("      a  + ")
    assert lines[at + 2].startswith("      ") and all(len(line) <= 80 for line in lines)


HANG = """rank 1 never called all_reduce #3 of group WORLD in which rank 0 waits (mine.py:41): rank 1 returned
  rank  state     operation      group  tensor            at
  0     waits in  all_reduce #3  WORLD  float64 [120, 7]  mine.py:41
  1     returned  after all_reduce #2  WORLD  float64 [3]  mine.py:12"""


def hung() -> GradeResult:
    finishes = replace(
        FINISHES, verdict="failed", message=HANG, launch_kind="hang", site="mine.py:41",
        printed=(("rank 0, stdout", "step 1\n" * 20), ("rank 1, stdout", "hello\n"), ("rank 1, stderr", "oh\n")),
    )  # fmt: skip
    return result(
        replace(VALUES, verdict="not_run", message="the ranks did not finish"),
        replace(TRAFFIC, verdict="not_run", message="the ranks did not finish"),
        finishes,
        verdict="hung",
    )


def test_a_hang_shows_the_table_and_what_ranks_printed() -> None:
    told = shown(hung())
    assert "  values      · not run   0/4   the ranks did not finish\n" in told
    assert "  test_finishes, world_size=2, switchboard, mine.py:41\n" in told
    assert "    0     waits in  all_reduce #3  WORLD  float64 [120, 7]  mine.py:41\n" in told
    assert "  rank 0, stdout, its last 8 lines of 20:\n" + "    | step 1\n" * 8 in told
    assert "    | hello\n" in told and "and 1 more printed something" in told and "oh" not in told


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("graded", [WRONG, hung()], ids=["wrong", "hung"])
def test_only_commands_are_longer_than_a_line(graded: GradeResult, width: int) -> None:
    long = [line for line in shown(graded, width).splitlines() if len(line) > width]
    assert all(line.startswith(("the same inputs again: ", "a hint: ")) for line in long), long


def test_the_value_that_is_farthest_off_is_shown_where_few_fit() -> None:
    apart = replace(SUMMED, got=(0.314159265, -0.271828181, 9e-300), expected=(0.314159265, -0.27182818, 0.57721566))
    told = shown(result(replace(VALUES, diagnosis=apart)), width=40)
    assert "    expected  0.577216\n" in told and "    got         9e-300   at [2, 2]\n" in told


@pytest.mark.parametrize(
    ("feedback", "there", "not_there"),
    [
        ("verdict", ["wrong   0 of 8", "values      ✗ failed"], ["First cause", "Every .grad", "2.000x", "expected"]),
        ("hint", ["First cause", "Every .grad", "holds at 1", "--hint 1"], ["2.000x", "expected", "got"]),
        ("full", ["First cause", "Every .grad", "2.000x", "expected", "got"], []),
    ],
)
def test_feedback_says_how_much(feedback: str, there: list[str], not_there: list[str]) -> None:
    told = shown(WRONG, feedback=feedback)
    assert all(text in told for text in there)
    assert not any(text in told for text in not_there)


def test_a_failure_on_gloo_alone_is_named_so() -> None:
    told = shown(result(replace(VALUES, verdict="passed", diagnosis=None), replace(VALUES, transport="gloo"), FINISHES))
    assert "it holds on the switchboard, and fails on gloo alone" in told


def test_advice_is_marked_as_what_ranks_say() -> None:
    advice = "suspect: rank 0 called all_reduce at mine.py:10, rank 1 at mine.py:12, as 3rd operation of their group"
    told = shown(result(replace(VALUES, suspicions=(advice,))))
    assert "  Advice, from what the ranks said of themselves (it is not scored):\n    suspect: rank 0" in told


def test_other_failures_follow_each_once() -> None:
    more = [replace(TRAFFIC, name=f"test_{n}", title=f"Claim {n}.", verdict="failed", message="no") for n in range(6)]
    told = shown(result(VALUES, *more, *(replace(check, world_size=3) for check in more)))
    assert told.count("Claim 0.") == 1 and "and 2 more" in told


def test_not_started_names_the_question() -> None:
    told = shown(result(verdict="not_started", message="the file is still the starter; nothing was run"))
    assert "not started   0 of 8 points\n  the file is still the starter; nothing was run\n" in told
    assert "values      · not run   0/4" in told
    assert "shardkit show dp/bucketed" in told and "--seed" not in told


def test_a_fault_of_the_kit_blames_nobody() -> None:
    broken = replace(VALUES, verdict="kit_error", message="KeyError: 'x'", diagnosis=None)
    told = shown(result(broken, verdict="kit_error", message="test_a: KeyError: 'x'"))
    assert "fault of the kit" in told and "Nothing is held against your file." in told
    assert "a hint" not in told


def test_names_with_spaces_can_be_pasted() -> None:
    graded = replace(WRONG, solution="my file's.py")
    assert """shardkit grade dp/bucketed 'my file'"'"'s.py' --bank 'a b' --seed 7""" in shown(
        graded, bank_option=" --bank 'a b'"
    )


SPOOF = "\x1b[2J\x1b[1;32mpassed   8 of 8 points\x1b[0m\r\x08\u202edessap\u2028\x9b0m"


def test_a_file_cannot_draw_on_the_screen() -> None:
    """C18: whatever comes from a rank shows its control characters and stays behind its own mark."""
    crashed = replace(
        FINISHES, verdict="failed", message=f"rank 0 raised ValueError: {SPOOF}\n  {SPOOF}", launch_kind="crash",
        site=f"{SPOOF}.py:1", printed=(("rank 0, stdout", SPOOF + "\n" + SPOOF),), suspicions=(SPOOF,),
    )  # fmt: skip
    wrong = replace(VALUES, diagnosis=replace(SUMMED, headline=SPOOF, path=SPOOF))
    for graded in (result(crashed), result(wrong), result(message=SPOOF)):
        told = shown(replace(graded, solution=f"{SPOOF}.py", checks=graded.checks))
        assert not set(told) & set("\x1b\r\x08\u202e\u2028\x9b")
        assert not any(line.strip() == "passed   8 of 8 points" for line in told.splitlines())


def test_visible_leaves_words_alone() -> None:
    assert visible("梯度 é ∂L\n\tx") == "梯度 é ∂L\n\tx"
    assert visible("a\x1b[1m\x00\u200b\ud800") == "a\\x1b[1m\\x00\\u200b\\ud800"
