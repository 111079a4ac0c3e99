"""grade: verdicts, scores, first causes, and what is said of a file that cannot be graded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.bank.layout import Bank
from kit.errors import KitError
from kit.grading import grade
from kit.grading.result import GradeResult
from kit.world import Zygote

Grade = Callable[..., GradeResult]

HEAD = "import os, sys, torch\nimport torch.distributed as dist\n"


def right(zygote: Zygote, toy: Bank, **more: object) -> GradeResult:
    return grade("toy/mean", toy.reference("toy/mean"), bank=toy, zygote=zygote, **more)


def states(result: GradeResult) -> dict[str, str]:
    return {row.proof: row.state for row in result.rows()}


def first_message(result: GradeResult) -> str:
    assert result.first_failure is not None, result
    return result.first_failure.message


def test_a_right_file_passes_everywhere(zygote: Zygote, toy: Bank) -> None:
    result = right(zygote, toy)
    assert (result.verdict, result.score, result.max_score) == ("passed", 8, 8)
    assert len(result.checks) == 4 * 3 + 2  # three sizes, and values and completes on gloo
    assert {check.verdict for check in result.checks} == {"passed"}
    assert states(result) | {"memory": "none", "time": "none"} == states(result)
    assert {check.title for check in result.checks} >= {"Every rank returns the mean over ranks."}


def test_a_fresh_seed_is_drawn_and_a_given_one_is_kept(zygote: Zygote, toy: Bank) -> None:
    seeds = {right(zygote, toy, transport="switchboard").seed for _ in range(2)}
    assert len(seeds) == 2
    assert right(zygote, toy, seed=5).seed == 5


def test_the_same_seed_says_the_same(grade_text: Grade) -> None:
    wrong = HEAD + "def mean_over_ranks(tensor, group=None):\n    return tensor + 1\n"
    assert first_message(grade_text(wrong, seed=3)) == first_message(grade_text(wrong, seed=3))
    assert first_message(grade_text(wrong, seed=3)) != first_message(grade_text(wrong, seed=4))


SUMMED = (
    HEAD
    + """
def mean_over_ranks(tensor, group=None):
    total = tensor.clone()
    dist.all_reduce(total, group=group)
    return total
"""
)


def test_wrong_values_score_nothing_and_the_signature_is_said(grade_text: Grade) -> None:
    result = grade_text(SUMMED)
    assert (result.verdict, result.score, result.max_score) == ("wrong", 0, 8)
    assert first_message(result).startswith(
        "world_size=2, rank 0: mean is 2.000x the expected one: summed over ranks, not averaged"
    )
    first = result.first_failure
    assert first is not None and first.diagnosis is not None and first.diagnosis.signature == "N x"
    assert states(result) == {
        "values": "failed", "traffic": "passed", "memory": "none", "time": "none", "discipline": "passed",
    }  # fmt: skip
    by_size = {(c.world_size, c.transport): c.verdict for c in result.checks if c.proof == "values"}
    assert by_size == {
        (1, "switchboard"): "passed",
        (2, "switchboard"): "failed",
        (3, "switchboard"): "failed",
        (2, "gloo"): "not_run",  # known to be wrong by then
    }


def test_points_are_given_per_proof(grade_text: Grade) -> None:
    result = grade_text(
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, tensor, group=group)
    return sum(parts) / len(parts)
"""
    )
    assert (result.verdict, result.score) == ("wrong", 6)
    assert states(result)["traffic"] == "failed" and states(result)["values"] == "passed"
    assert "called ['all_gather']" in first_message(result)


def test_a_hang_fails_one_check_and_the_others_do_not_run(grade_text: Grade) -> None:
    result = grade_text(
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    total = tensor.clone()
    if dist.get_rank() != 1:
        dist.all_reduce(total, group=group)
    return total / dist.get_world_size(group)
"""
    )
    assert (result.verdict, result.score) == ("hung", 0)
    assert "rank 1 never called all_reduce" in first_message(result)
    assert "answer.py:7" in first_message(result)
    assert result.failed_checks == {"test_every_rank_finishes"}
    others = [check for check in result.checks if check.world_size == 2 and check.verdict == "not_run"]
    assert {check.name for check in others} > {"test_every_rank_has_the_mean", "test_one_all_reduce"}


def test_a_crash_shows_the_learner_s_frames_alone(grade_text: Grade) -> None:
    result = grade_text(
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    return helper(tensor)

def helper(tensor):
    return tensor / 0 + torch.ones(4)
"""
    )
    assert result.verdict == "crashed"
    message = first_message(result)
    assert '"answer.py", line 5, in mean_over_ranks' in message and '"answer.py", line 8, in helper' in message
    assert "return tensor / 0 + torch.ones(4)" in message
    assert "test_mean.py" not in message and "kit" not in message
    assert result.first_failure is not None and result.first_failure.site == "answer.py:8"


def test_an_import_that_fails_is_a_crash_with_its_line(grade_text: Grade) -> None:
    result = grade_text("import no_such_module\n\ndef mean_over_ranks(tensor, group=None):\n    return tensor\n")
    assert result.verdict == "crashed"
    assert "No module named 'no_such_module'" in first_message(result)
    assert 'File "answer.py", line 1' in first_message(result)


def test_what_lies_beside_the_file_cannot_be_imported(grade_text: Grade, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("")
    result = grade_text("import helper\n\ndef mean_over_ranks(tensor, group=None):\n    return tensor\n")
    assert "a solution is one file: it cannot import what lies beside it" in first_message(result)


def test_only_the_ranks_that_fail_are_blamed(grade_text: Grade) -> None:
    result = grade_text(
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    total = tensor.clone()
    if dist.get_rank(group) == 2:
        raise ValueError("no third rank")
    dist.all_reduce(total, group=group)
    return total / dist.get_world_size(group)
"""
    )
    assert result.verdict == "crashed"
    assert "rank 2" in first_message(result) and "no third rank" in first_message(result)
    assert result.first_failure is not None and result.first_failure.world_size == 3


# -- not started ------------------------------------------------------------------------------------------------------


def test_the_untouched_starter_is_not_started_and_nothing_runs(toy: Bank, tmp_path: Path) -> None:
    file = tmp_path / "mean.py"
    text = toy.starter("toy/mean").read_text(encoding="utf-8")
    file.write_text(f"# shardkit: toy/mean\n# my notes\n{text}\n\n", encoding="utf-8")
    result = grade(None, file, bank=toy)  # no zygote is started either
    assert (result.verdict, result.score, result.checks) == ("not_started", 0, ())
    assert states(result)["values"] == "not_run"


def test_a_starter_with_a_helper_more_is_not_started_either(grade_text: Grade, toy: Bank) -> None:
    text = toy.starter("toy/mean").read_text(encoding="utf-8")
    result = grade_text(text + "\n\ndef helper():\n    return 1\n")
    assert result.verdict == "not_started"
    assert "mean_over_ranks is not written yet (answer.py:8)" in result.message


def test_an_error_of_torch_that_is_called_not_implemented_is_a_crash(grade_text: Grade) -> None:
    result = grade_text(
        HEAD + "def mean_over_ranks(tensor, group=None):\n    return torch.Tensor.__torch_dispatch__()\n"
    )
    assert result.verdict == "crashed"


# -- what the user has to put right -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("   \n\n", "is empty"),
        ("def mean_over_ranks(tensor, group=None)\n    pass\n", "answer.py:1: syntax error: expected ':'"),
        ("x = 1\nreturn x\n", "answer.py:2: syntax error: 'return' outside function"),
        ("def mean_over_rank(tensor): pass\n", "has no function 'mean_over_ranks'; closest: 'mean_over_rank'"),
        ("class mean_over_ranks: pass\n", "answer.py:1: 'mean_over_ranks' is a class"),
        (
            "\ndef mean_over_ranks(tensor): pass\n",
            "answer.py:2: mean_over_ranks does not fit `def mean_over_ranks(tensor, group=None)`: "
            "it lacks the parameter 'group'",
        ),
        ("def mean_over_ranks(x, group=None): pass\n", "its parameter 1 is 'x', not 'tensor'"),
        ("def mean_over_ranks(tensor, group): pass\n", "its parameter 'group' needs a default"),
        ("def mean_over_ranks(tensor, group=None, *, op): pass\n", "it asks for 'op', which nobody passes"),
        ("async def mean_over_ranks(tensor, group=None): pass\n", "is async"),
        # Only running it can tell, and the ranks do.
        ("globals()['mean'] = 1\n", "answer.py has no function 'mean_over_ranks'"),
        ("mean_over_ranks = 3\n", "answer.py: nothing to call under 'mean_over_ranks'"),
        ("mean_over_ranks = lambda *args, **more: args[0]\n", ""),
        ("mean_over_ranks = lambda tensor: tensor\n", "it lacks the parameter 'group'"),
    ],
)
def test_what_a_file_lacks_is_one_clear_message(grade_text: Grade, text: str, says: str) -> None:
    if not says:  # it takes anything, so it is tried
        assert grade_text(text).verdict == "wrong"
        return
    with pytest.raises(KitError) as caught:
        grade_text(text)
    assert says in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "no file"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_bytes(b"x = '\xff'\n"), "answer.py:1: byte 0xff is not UTF-8"),
        (lambda path: path.write_bytes(b"x = 1\0\n"), "source"),
        (lambda path: path.write_text("x = " + "(" * 5000), "answer.py"),
        (lambda path: path.write_text("#" * (1 << 21)), "at most 1048576"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: path.symlink_to(path), "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_clear_message(
    toy: Bank, tmp_path: Path, make: Callable[[Path], object], says: str
) -> None:
    file = tmp_path / "answer.py"
    make(file)
    with pytest.raises(KitError) as caught:
        grade("toy/mean", file, bank=toy)
    assert says in caught.value.message


def test_the_first_line_names_the_question(toy: Bank, tmp_path: Path) -> None:
    file = tmp_path / "answer.py"
    file.write_text("x = 1\n")
    with pytest.raises(KitError, match="does not say which question it answers"):
        grade(None, file, bank=toy)
    file.write_text("# shardkit: toy/maen\nx = 1\n")
    with pytest.raises(KitError, match="no question 'toy/maen'; closest: toy/mean"):
        grade(None, file, bank=toy)


@pytest.mark.parametrize("more", [{"transport": "nccl"}, {"seed": -1}, {"seed": 10**13}])
def test_options_that_make_no_sense_are_refused(toy: Bank, more: dict[str, object]) -> None:
    with pytest.raises(KitError):
        grade("toy/mean", toy.reference("toy/mean"), bank=toy, **more)  # type: ignore[arg-type]


# -- one transport ----------------------------------------------------------------------------------------------------


def test_one_transport_runs_what_it_can(zygote: Zygote, toy: Bank) -> None:
    seen = right(zygote, toy, transport="switchboard")
    assert (seen.verdict, {check.transport for check in seen.checks}) == ("passed", {"switchboard"})
    real = right(zygote, toy, transport="gloo")
    assert {check.transport for check in real.checks} == {"gloo"}
    assert (real.verdict, states(real)["values"], states(real)["traffic"]) == ("passed", "passed", "not_run")


def test_what_gloo_lacks_is_a_note_and_never_wrong(grade_text: Grade) -> None:
    result = grade_text(
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    shapes = [torch.empty(1 + other) for other in range(size)]
    dist.all_gather(shapes, torch.ones(1 + rank), group=group)
    total = tensor.clone()
    dist.all_reduce(total, group=group)
    return total / size
"""
    )
    real = {check.verdict: check.message for check in result.checks if check.transport == "gloo"}
    assert list(real) == ["not_run"] and "is unsupported on gloo" in real["not_run"]
    assert result.failed_checks == {"test_one_all_reduce"}
    assert (states(result)["values"], result.score) == ("passed", 6)


# -- whose fault it is ------------------------------------------------------------------------------------------------


@pytest.fixture
def broken_toy(toy: Bank, tmp_path: Path) -> Callable[[str, str], Bank]:
    """The toy bank with one text of its checks replaced."""
    import shutil

    def make(old: str, new: str) -> Bank:
        root = tmp_path / "broken"
        shutil.copytree(toy.root, root)
        bank = Bank(root)
        checks = bank.checks("toy/mean")
        text = checks.read_text(encoding="utf-8")
        assert old in text
        checks.write_text(text.replace(old, new), encoding="utf-8")
        return bank

    return make


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('return {"mean": sum(', 'return {"means": sum('),  # KeyError in a check
        ("sum(problem[", "undefined(problem["),  # NameError in the oracle
        ("import torch\n", "import torch\nimport no_such_module\n"),  # cannot be imported
        ("from kit.grading", "import pytest; pytest.skip('no', allow_module_level=True)\nfrom kit.grading"),
        ("def test_", "def check_"),  # nothing to collect
        ('"""Every rank returns the mean over ranks."""\n', '"""Every."""\n    import pytest; pytest.skip("today")\n'),
        ('"""Every rank returns the mean over ranks."""\n', '"""Every."""\n    import pytest; pytest.xfail("today")\n'),
        ("@MEAN.completes", "import pytest\n@pytest.mark.skip\n@MEAN.completes"),
        ("@MEAN.completes", "import pytest\n@pytest.mark.xfail\n@MEAN.completes"),
        ("@MEAN.completes\n", ""),  # a test of no scenario
    ],
)
def test_a_fault_of_the_checks_is_the_kit_s_and_never_passes(
    zygote: Zygote, broken_toy: Callable[[str, str], Bank], old: str, new: str
) -> None:
    bank = broken_toy(old, new)
    result = grade("toy/mean", bank.reference("toy/mean"), bank=bank, zygote=zygote)
    assert (result.verdict, result.score) == ("kit_error", 0), result
    assert result.message or first_message(result)


def test_two_banks_in_one_process_do_not_mix(zygote: Zygote, toy: Bank, broken_toy: Callable[[str, str], Bank]) -> None:
    other = broken_toy("/ len(problem", "/ 2 / len(problem")
    assert right(zygote, toy).verdict == "passed"
    assert right(zygote, other).verdict == "wrong"
    assert right(zygote, toy).verdict == "passed"


def test_a_grade_leaves_the_process_as_it_was(zygote: Zygote, toy: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    before = (dict(os.environ), list(sys.path), sys.dont_write_bytecode, os.getcwd())
    modules = set(sys.modules)
    assert right(zygote, toy).verdict == "passed"
    assert before == (dict(os.environ), list(sys.path), sys.dont_write_bytecode, os.getcwd())
    assert not {name for name in set(sys.modules) - modules if "test_mean" in name}
    assert not list(toy.root.rglob("__pycache__"))


def test_forked_ranks_do_the_same(toy: Bank) -> None:
    """The command's own way: this process imports torch, and the zygote is its fork."""
    program = (
        "from pathlib import Path; from kit.bank.layout import Bank; from kit.grading import grade;"
        f"bank = Bank(Path({str(toy.root)!r}));"
        "result = grade('toy/mean', bank.reference('toy/mean'), bank=bank);"
        "print(result.verdict, result.score)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ended.stdout, ended.stderr) == ("passed 8\n", "")
