"""Ways to cheat the grader. Each scores nothing and is classed; right answers beside it still pass.

The numbers are those of a list of known cheats: ending the run (1 to 7), tampering with checks (8 to 18), stealing
the answer (23 to 33), faking the distribution (41 to 51), breaking the machine (55 to 59). Forbidden names (35) have
tests of their own; what a question's traffic and values must see (36 to 39, 44) are mutants of the questions.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
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
ROOT = Path(__file__).resolve().parents[2]

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
    # further ways to tamper, to look and to break things
    "C09 a clock that stands still": (
        HEAD + "import time\ntime.time = time.monotonic = time.perf_counter = lambda: 0.0\n" + OWN,
        {"wrong"},
    ),
    "C22 patch what reads signatures": (
        HEAD + "import ast, inspect\ninspect.signature = ast.parse = ast.walk = lambda *args, **more: None\n" + OWN,
        {"wrong", "crashed"},
    ),
    "C26 read the checks and run their answer": (
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    checks = {}
    file = sys.modules["_shardkit_checks"].__file__
    exec(compile(open(file).read(), file, "exec"), checks)
    return checks["expected"]({"parts": [tensor]})["mean"]
""",
        {"wrong"},
    ),
    "C30 memory that was used before": (
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    found = [torch.empty_like(tensor) for _ in range(64)]
    return next((each for each in found if each.any() and not torch.equal(each, tensor)), found[0])
""",
        {"wrong"},
    ),
    "C33 another answer where it seems to be graded": (
        HEAD
        + """
def is_graded():
    with open(f"/proc/{os.getppid()}/cmdline") as file:
        return "kit" in file.read() or "pytest" in sys.modules or "_shardkit_checks" in sys.modules
def mean_over_ranks(tensor, group=None):
    return tensor.clone() if is_graded() else None
""",
        {"wrong"},
    ),
    "C43 a thread that goes on": (
        HEAD
        + """
import threading
def mean_over_ranks(tensor, group=None):
    result = tensor.clone()
    def work():
        while True: result.add_(1)
    threading.Thread(target=work, daemon=True).start()
    return result
""",
        {"wrong"},
    ),
    "C46 in float32": (
        HEAD
        + """
def mean_over_ranks(tensor, group=None):
    total = tensor.float()
    dist.all_reduce(total, group=group)
    return total.double() / dist.get_world_size(group)
""",
        {"wrong"},
    ),
    "C46 returned in float32": (HEAD + RIGHT.replace("    return total", "    return total.float()"), {"wrong"}),
    "C55 recursion": ("def mean_over_ranks(tensor, group=None):\n    return mean_over_ranks(tensor)\n", {"crashed"}),
    "C55 a deep stack": (
        "import sys\nsys.setrecursionlimit(1 << 30)\n"
        "def mean_over_ranks(tensor, group=None):\n    return mean_over_ranks(sorted([tensor], key=mean_over_ranks))\n",
        {"crashed"},
    ),
    "C55 endless output": (
        "def mean_over_ranks(tensor, group=None):\n    while True: print('passed' * 1000)\n",
        {"crashed"},
    ),
    "C55 a large file": (
        "def mean_over_ranks(tensor, group=None):\n    open('full', 'wb').truncate(2 << 30)\n",
        {"crashed"},
    ),
    "C55 memory": ("def mean_over_ranks(tensor, group=None):\n    return bytearray(6 << 30)\n", {"crashed"}),
    "C55 descriptors": (
        HEAD + "def mean_over_ranks(tensor, group=None):\n    return [os.pipe() for _ in range(1 << 21)]\n",
        {"crashed"},
    ),
    "C56 type into the terminal": (
        HEAD
        + """
import fcntl, termios
def mean_over_ranks(tensor, group=None):
    for descriptor in (0, 1, 2, os.open("/dev/tty", os.O_RDWR)):
        fcntl.ioctl(descriptor, termios.TIOCSTI, b"!")
    return tensor.clone()
""",
        {"crashed"},
    ),
    "C58 an object that runs where it is read": (
        HEAD
        + """
class Evil:
    def __reduce__(self): return (os._exit, (0,))
def mean_over_ranks(tensor, group=None):
    dist.all_gather_object([None] * dist.get_world_size(group), Evil(), group=group)
    return tensor.clone()
""",
        {"crashed"},
    ),
    "C58 an object for the grader": (
        HEAD
        + """
class Evil(dict):
    def __reduce__(self): return (os._exit, (0,))
def mean_over_ranks(tensor, group=None):
    return Evil(mean=Evil())
""",
        {"crashed", "wrong"},
    ),
    "C59 names that mean something to formats and shells": (
        "def mean_over_ranks(tensor, group=None):\n"
        "    raise type('E{0.__class__}%s$(exit)[red]', (Exception,), {})('{}%n`exit` [/bold] ${HOME}')\n",
        {"crashed"},
    ),
    "C59 an error that cannot be told": (
        "class E(Exception):\n    def __str__(self): raise self\n"
        "def mean_over_ranks(tensor, group=None):\n    raise E\n",
        {"crashed"},
    ),
    "C59 an error that says it is the kit's": (
        "class E(Exception): kit_kind = 'kit_error'\ndef mean_over_ranks(tensor, group=None):\n    raise E('passed')\n",
        {"crashed"},
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


def test_what_ranks_fork_ends_with_them(grade_text: Grade, tmp_path: Path) -> None:
    """C55: many processes, each a group of its own and deaf to signals."""
    result = grade_text(
        HEAD
        + f"""
import signal, time
def mean_over_ranks(tensor, group=None):
    for _ in range(40):
        if os.fork() == 0:
            os.setpgid(0, 0)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            with open({str(tmp_path / "pids")!r}, "a") as file:
                file.write(f"{{os.getpid()}}\\n")
            while True: time.sleep(100)
    return tensor.clone()
""",
        transport="switchboard",
    )
    assert result.verdict == "wrong"
    pids = (tmp_path / "pids").read_text().split()
    assert pids and not [pid for pid in pids if Path("/proc", pid).exists()]


def test_the_answer_is_not_imported(zygote: Zygote, toy: Bank, tmp_path: Path) -> None:
    """C27: neither as a module of a path nor by its place."""
    place = toy.reference("toy/mean")
    for text in (
        f"import sys\nsys.path.append({str(place.parent)!r})\nfrom mean import mean_over_ranks\n",
        "from importlib.util import module_from_spec, spec_from_file_location\n"
        f"spec = spec_from_file_location('mine', {str(place)!r})\nmine = module_from_spec(spec)\n"
        "spec.loader.exec_module(mine)\nmean_over_ranks = mine.mean_over_ranks\n",
    ):
        (tmp_path / "answer.py").write_text(text)
        result = grade("toy/mean", tmp_path / "answer.py", bank=toy, zygote=zygote, transport="switchboard")
        assert (result.verdict, result.score) == ("refused", 0)
        first = result.first_failure
        assert first is not None and first.message.endswith(" imports reference/toy/mean.py, an answer")


@pytest.mark.parametrize("is_checks", [True, False])
def test_files_that_change_meanwhile_give_no_grade(zygote: Zygote, toy: Bank, tmp_path: Path, is_checks: bool) -> None:
    """C16: the checks rewritten by a rank, or the solution by itself."""
    shutil.copytree(toy.root, tmp_path / "bank")
    bank, file = Bank(tmp_path / "bank"), tmp_path / "answer.py"
    target = bank.checks("toy/mean") if is_checks else file
    file.write_text(HEAD + f"open({str(target)!r}, 'a').write('# changed')\n" + RIGHT)
    with pytest.raises(KitError, match=f"{target.name} changed while it was used"):
        grade("toy/mean", file, bank=bank, zygote=zygote, transport="switchboard")


def test_no_rank_reads_the_grader_s_memory(toy: Bank, tmp_path: Path) -> None:
    """C25: nor its descriptors or its environment. Root might, so the grade gives up what makes root special."""
    file = tmp_path / "answer.py"
    file.write_text(
        HEAD
        + """
def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])
def look(pid, name):
    return os.readlink(f"/proc/{pid}/fd/0") if name == "fd" else open(f"/proc/{pid}/{name}", "rb").read(1)
for pid in (os.getppid(), parent_of(os.getppid())):
    for name in ("mem", "environ", "maps", "fd"):
        try:
            look(pid, name)
        except PermissionError:
            continue
        raise ValueError(f"{name} of {pid} is open")
"""
        + RIGHT
    )
    program = (
        "import ctypes; from pathlib import Path; from kit.bank.layout import Bank; from kit.grading import grade;"
        "version, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)();"
        "assert ctypes.CDLL(None).capset(version, nothing) == 0;"
        f"result = grade('toy/mean', Path({str(file)!r}), bank=Bank(Path({str(toy.root)!r})), transport='switchboard');"
        "print(result.verdict, result.first_failure and result.first_failure.message)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert ended.stdout == "passed None\n", ended.stdout + ended.stderr


def test_whoever_makes_launches_hides_its_memory(grade_text: Grade) -> None:
    """C25: also where the ranks are not its forks, as under pytest."""
    libc = ctypes.CDLL(None)
    get_dumpable, set_dumpable = 3, 4
    libc.prctl(set_dumpable, 1, 0, 0, 0)
    grade_text(OWN, transport="switchboard")
    assert libc.prctl(get_dumpable, 0, 0, 0, 0) == 0


def test_a_right_file_still_passes_beside_all_that(grade_text: Grade) -> None:
    assert grade_text(HEAD + RIGHT).verdict == "passed"
