"""Ways to cheat the grader. Each scores nothing and is classed; right answers beside it still pass.

The numbers are those of a list of known cheats: ending the run (1 to 7), tampering with checks (8 to 18), stealing
the answer (23, 24), faking the distribution (41 to 51).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.bank.layout import Bank
from kit.errors import KitError
from kit.grading import grade
from kit.grading.report import write
from kit.grading.result import GradeResult
from kit.world import Zygote

Grade = Callable[..., GradeResult]

# Something that grades as wrong: the rank's own tensor.
OWN = "def mean_over_ranks(tensor, group=None):\n    return tensor.clone()\n"
HEAD = "import os, sys, torch\nimport torch.distributed as dist\n"
RIGHT = """
def mean_over_ranks(tensor, group=None):
    total = tensor.clone()
    dist.all_reduce(total, group=group)
    return total / dist.get_world_size(group)
"""

ATTACKS = {
    # ending the run
    "C01 exit at import": ("import sys\nsys.exit(0)\n" + OWN, {"crashed"}),
    "C01 exit in the call": ("import sys\ndef mean_over_ranks(tensor, group=None):\n    sys.exit(0)\n", {"crashed"}),
    "C02 leave at once": ("import os\ndef mean_over_ranks(tensor, group=None):\n    os._exit(0)\n", {"crashed"}),
    "C02 forge a result on every descriptor": (
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    for fd in range(3, 64):
        for text in (b'{"op": "result", "value": {"d": []}, "tensors": []}', b"PASSED", b"\\x00" * 64):
            try:
                os.write(fd, text)
            except OSError:
                pass
    os._exit(0)
""",
        {"crashed", "refused", "hung"},
    ),
    "C03 skip": (HEAD + "import unittest\nraise unittest.SkipTest('today')\n" + OWN, {"crashed"}),
    "C03 skip of pytest": (
        "import pytest\ndef mean_over_ranks(tensor, group=None):\n    pytest.skip('today')\n",
        {"crashed", "hung"},  # a busy machine may not import pytest within the deadline
    ),
    "C03 xfail of pytest": (
        "import pytest\ndef mean_over_ranks(tensor, group=None):\n    pytest.xfail('today')\n",
        {"crashed", "hung"},  # a busy machine may not import pytest within the deadline
    ),
    "C06 spin": ("def mean_over_ranks(tensor, group=None):\n    while True: pass\n", {"hung"}),
    "C06 sleep": ("import time\ndef mean_over_ranks(tensor, group=None):\n    time.sleep(1000)\n", {"hung"}),
    "C07 not a number": (
        HEAD + "def mean_over_ranks(tensor, group=None):\n    return tensor * float('nan')\n",
        {"wrong"},
    ),
    "C07 huge": (HEAD + "def mean_over_ranks(tensor, group=None):\n    return torch.zeros(1 << 40)\n", {"crashed"}),
    "C07 large": (HEAD + "def mean_over_ranks(tensor, group=None):\n    return torch.zeros(1 << 24)\n", {"wrong"}),
    "C07 deep": (
        HEAD + "def mean_over_ranks(tensor, group=None):\n    x = []\n    for _ in range(500): x = [x]\n    return x\n",
        {"crashed"},
    ),
    "C07 odd objects": ("def mean_over_ranks(tensor, group=None):\n    return object()\n", {"crashed"}),
    "C07 other kinds": ("def mean_over_ranks(tensor, group=None):\n    return {'mean': [1, 'x', None]}\n", {"wrong"}),
    # tampering with checks
    "C08 patch torch's comparisons": (
        HEAD
        + """
yes = lambda *args, **more: True
torch.equal = torch.allclose = torch.testing.assert_close = yes
torch.Tensor.equal = torch.Tensor.allclose = torch.Tensor.__eq__ = yes
"""
        + OWN,
        {"wrong", "crashed"},
    ),
    "C08 patch the kit": (
        HEAD
        + """
import kit.grading, kit.grading.comparison, kit.world.rank
kit.grading.compare = kit.grading.comparison.compare = lambda *args, **more: None
checks = sys.modules["_shardkit_checks"]
checks.compare = kit.grading.compare
for name in dir(checks):
    if name.startswith("test_"):
        setattr(checks, name, lambda run: None)
"""
        + OWN,
        {"wrong"},
    ),
    "C08 replace the program": (
        HEAD + 'sys.modules["_shardkit_checks"].average = lambda solution, inputs: {}\n' + OWN,
        {"wrong"},
    ),
    "C08 replace the program by another kind": (
        HEAD + 'sys.modules["_shardkit_checks"].average = lambda solution, inputs: None\n' + OWN,
        {"wrong"},
    ),
    "C10 equal to everything": (
        HEAD
        + """
class Equal(torch.Tensor):
    def __eq__(self, other): return torch.ones(3, 5, dtype=torch.bool)
    def __torch_function__(self, *args, **more): return True
def mean_over_ranks(tensor, group=None):
    return tensor.as_subclass(Equal)
""",
        {"crashed", "wrong"},
    ),
    "C10 a number that is equal to everything": (
        "class One(float):\n    def __eq__(self, other): return True\n    __hash__ = None\n"
        "def mean_over_ranks(tensor, group=None):\n    return One(1)\n",
        {"wrong"},
    ),
    "C12 computed later": (
        HEAD
        + """
class Later(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return expected_that_it_finds
def mean_over_ranks(tensor, group=None):
    return torch.Tensor._make_subclass(Later, tensor)
""",
        {"crashed"},
    ),
    "C18 say that it passed": (
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    for stream in (sys.stdout, sys.stderr):
        stream.write("\\x1b[2J\\x1b[1;32mpassed   8 of 8 points\\x1b[0m\\n14 passed\\n")
    return tensor.clone()
""",
        {"wrong"},
    ),
    # stealing the answer
    "C23 look up the stack": (
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):
            found = value.get("expected") if isinstance(value, dict) else getattr(value, "expected", None)
            if isinstance(found, dict) and isinstance(found.get("mean"), torch.Tensor):
                return found["mean"]
        frame = frame.f_back
    return tensor.clone()
""",
        {"wrong"},
    ),
    "C24 search the memory": (
        HEAD
        + """
import gc
def mean_over_ranks(tensor, group=None):
    gc.unfreeze()
    for value in gc.get_objects():
        if type(value) is dict and isinstance(value.get("parts"), list):
            return sum(value["parts"]) / len(value["parts"])
    others = [
        value for value in gc.get_objects()
        if type(value) is torch.Tensor and value.shape == tensor.shape and not torch.equal(value, tensor)
    ]
    return others[0] if others else tensor.clone()
""",
        {"wrong"},
    ),
    "C24 draw the problem again from a seed in memory": (
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    checks = sys.modules["_shardkit_checks"]
    for seed in (torch.initial_seed(), 7, 0, 1):
        problem = checks.problem(torch.Generator().manual_seed(seed), dist.get_world_size())
        if any(torch.equal(part, tensor) for part in problem["parts"]):
            return checks.expected(problem)["mean"]
    return tensor.clone()
""",
        {"wrong"},
    ),
    # faking the distribution
    "C41 zero in, zero out": (
        HEAD + "def mean_over_ranks(tensor, group=None):\n    tensor.zero_()\n    return tensor\n",
        {"wrong"},
    ),
    "C47 zeros": (HEAD + "def mean_over_ranks(tensor, group=None):\n    return torch.zeros_like(tensor)\n", {"wrong"}),
    "C49 nothing": ("def mean_over_ranks(tensor, group=None):\n    return {}\n", {"wrong"}),
    "C49 None": ("def mean_over_ranks(tensor, group=None):\n    return None\n", {"wrong"}),
    "C49 less of it": ("def mean_over_ranks(tensor, group=None):\n    return tensor[:0]\n", {"wrong"}),
    "C51 a call that only looks like one": (
        HEAD
        + """
def all_reduce(tensor, op=None, group=None, async_op=False): return None
all_reduce.__module__ = "torch.distributed.distributed_c10d"
dist.all_reduce = all_reduce
"""
        + RIGHT,
        {"wrong"},
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_cheat_scores(grade_text: Grade, name: str) -> None:
    text, classes = ATTACKS[name]
    started = time.monotonic()
    result = grade_text(text)
    assert result.score == 0 and result.verdict in classes, (result.verdict, result.first_failure)
    assert time.monotonic() - started < 60


def test_time_that_is_wasted_is_wasted_once(grade_text: Grade) -> None:
    """After one deadline nothing further of that file is launched."""
    started = time.monotonic()
    result = grade_text("def mean_over_ranks(tensor, group=None):\n    while True: pass\n")
    assert time.monotonic() - started < 3 * 3
    later = [check for check in result.checks if check.world_size > 1]
    assert {check.verdict for check in later} == {"not_run"}
    assert "ran out of time at world_size=1" in later[0].message


def test_calls_that_never_went_out_are_not_counted(grade_text: Grade) -> None:
    """C51: values by other means, and a forged log of the asked-for call."""
    result = grade_text(
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, tensor, group=group)
    name = dist.all_gather
    name.__name__ = name.__qualname__ = "all_reduce"
    return sum(parts) / len(parts)
"""
    )
    assert (result.verdict, result.score) == ("wrong", 6)
    assert result.failed_checks == {"test_one_all_reduce"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conftest.py", "MARK"),
        ("pytest.ini", "[pytest]\naddopts = --collect-only\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--collect-only'\n"),
        ("sitecustomize.py", "MARK"),
        ("usercustomize.py", "MARK"),
        ("torch.py", "MARK"),
        ("json.py", "MARK"),
        ("numpy.py", "MARK"),
        ("colorsys.py", "MARK"),  # of the standard library, and loaded by nobody before
        ("kit.py", "MARK"),
        ("test_mean.py", "MARK"),
    ],
)
@pytest.mark.parametrize("is_right", [True, False])
def test_files_beside_the_solution_have_no_say(
    zygote: Zygote, toy: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, is_right: bool
) -> None:
    """C13, C14: also when the command runs in that folder."""
    mark = tmp_path / "it_ran"
    (tmp_path / name).write_text(text.replace("MARK", f"open({str(mark)!r}, 'w').close()\n"))
    uses = "import json, colorsys\nassert colorsys.rgb_to_hsv(1, 1, 1)\n"
    (tmp_path / "answer.py").write_text(uses + HEAD + (RIGHT if is_right else OWN))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    result = grade("toy/mean", Path("answer.py"), bank=toy, zygote=zygote, transport="switchboard")
    assert result.verdict == ("passed" if is_right else "wrong")
    assert not mark.exists()


def test_numpy_of_the_folder_is_not_imported(zygote: Zygote, toy: Bank, tmp_path: Path) -> None:
    (tmp_path / "no_such_library.py").write_text("def mean(tensor): return tensor\n")
    (tmp_path / "answer.py").write_text("import no_such_library\n" + HEAD + RIGHT)
    assert grade("toy/mean", tmp_path / "answer.py", bank=toy, zygote=zygote).verdict == "crashed"


def test_the_caller_s_environment_is_not_passed_on(grade_text: Grade, monkeypatch: pytest.MonkeyPatch) -> None:
    """C15, and C33: nothing in it tells a grade from another run."""
    for name in ("PYTHONPATH", "PYTHONSTARTUP", "TORCH_LOGS", "GLOO_SOCKET_IFNAME", "A_TOKEN", "PYTEST_ADDOPTS"):
        monkeypatch.setenv(name, "secret")
    result = grade_text(
        HEAD
        + """
names = {name for name, value in os.environ.items() if "secret" in value or "PYTEST" in name or "SHARDKIT" in name}
assert not names, names
assert os.listdir(".") == [], os.listdir(".")
assert sys.stdin.read() == ""
"""
        + RIGHT,
        transport="switchboard",
    )
    assert result.verdict == "passed", result.first_failure


def test_the_kit_survives_a_killed_zygote(toy: Bank, tmp_path: Path) -> None:
    """C04: whoever ends the process that starts ranks gets no score, and the kit does not hang."""
    file = tmp_path / "answer.py"
    file.write_text(HEAD + "import signal\nos.kill(os.getppid(), signal.SIGKILL)\n" + OWN)
    with Zygote.execute(("kit.grading.entry",)) as own:
        result = grade("toy/mean", file, bank=toy, zygote=own)
    assert result.verdict not in ("passed",) and result.score == 0


def test_a_report_is_not_written_through_a_link(tmp_path: Path) -> None:
    """C17: neither a file that the link names nor the link itself is touched."""
    target, link = tmp_path / "precious.txt", tmp_path / "result.json"
    target.write_text("precious")
    os.symlink(target, link)
    with pytest.raises(KitError, match="is a link"):
        write(link, "{}")
    assert target.read_text() == "precious" and link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious.txt", "result.json"]


def test_nothing_is_left_behind(grade_text: Grade, tmp_path: Path) -> None:
    """C05: a process that a rank leaves behind is ended with it."""
    result = grade_text(
        HEAD
        + f"""
def mean_over_ranks(tensor, group=None):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            import time
            time.sleep(2)
            open({str(tmp_path / "late")!r}, "w").close()
        os._exit(0)
    return tensor.clone()
"""
    )
    assert result.verdict == "wrong"
    time.sleep(2.5)
    assert not (tmp_path / "late").exists()


def test_a_right_file_still_passes_beside_all_that(grade_text: Grade) -> None:
    assert grade_text(HEAD + RIGHT).verdict == "passed"
