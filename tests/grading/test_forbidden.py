"""What a question forbids refuses, by whatever ordinary way a file comes to it, and only to that file."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kit.bank.layout import Bank
from kit.grading import grade
from kit.grading.entry import compiled, on_rank
from kit.grading.forbidden import members, problem_of
from kit.grading.result import GradeResult
from kit.world import World, WorldError, Zygote

DDP = "torch.nn.parallel.DistributedDataParallel"
REDUCE = "torch.distributed.all_reduce"
GATHER = "torch.distributed.all_gather"
NN = "torch.distributed.nn"
FROM_LOCAL = "torch.distributed.tensor.DTensor.from_local"
LOAD = "torch.nn.Module.load_state_dict"
FORBIDDEN = [DDP, REDUCE, GATHER, NN, FROM_LOCAL, LOAD, "torch.distributed.of_a_later_torch"]

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch import nn\n"


@pytest.fixture
def run(zygote: Zygote, toy: Bank, tmp_path: Path) -> Callable[[str], WorldError | None]:
    """One rank runs a solution of toy/mean; the error that came of it."""

    def run_it(text: str) -> WorldError | None:
        file = tmp_path / "answer.py"
        file.write_text(HEAD + text, encoding="utf-8")
        job = {
            "solution": str(file),
            "checks": str(toy.checks("toy/mean")),
            "checks_code": compiled(toy.checks("toy/mean")),
            "interface": [],
            "forbidden": FORBIDDEN,
            "program": "average",
            "inputs": {"x": torch.ones(2)},
        }
        try:
            World(1, zygote=zygote, deadline_s=20).run(on_rank, [job])
        except WorldError as error:
            return error
        return None

    return run_it


# The line that is told ends with "# here".
USES = {
    "the class": (
        DDP,
        """
        def mean_over_ranks(x):
            return nn.parallel.DistributedDataParallel(nn.Linear(2, 2))  # here
        """,
    ),
    "from where it is defined": (
        DDP,
        """
        from torch.nn.parallel.distributed import DistributedDataParallel as D
        def mean_over_ranks(x):
            D(nn.Linear(2, 2))  # here
        """,
    ),
    "a subclass": (
        DDP,
        """
        class Mine(nn.parallel.DistributedDataParallel):  # here
            pass
        """,
    ),
    "a subclass that is made": (DDP, "Mine = type('Mine', (nn.parallel.DistributedDataParallel,), {})  # here"),
    "a function": (
        REDUCE,
        """
        def mean_over_ranks(x):
            return dist.all_reduce(x)  # here
        """,
    ),
    "imported by name": (
        REDUCE,
        """
        from torch.distributed import all_reduce
        def mean_over_ranks(x):
            all_reduce(x)  # here
        """,
    ),
    "from its module": (
        REDUCE,
        """
        def mean_over_ranks(x):
            dist.distributed_c10d.all_reduce(x)  # here
        """,
    ),
    "under another name": (
        REDUCE,
        """
        from torch.distributed._functional_collectives import legacy_allreduce
        def mean_over_ranks(x):
            legacy_allreduce(x)  # here
        """,
    ),
    "through partial": (
        REDUCE,
        """
        import functools
        def mean_over_ranks(x):
            functools.partial(dist.all_reduce, x)()  # here
        """,
    ),
    "through a decorator of torch's": (
        REDUCE,
        """
        def mean_over_ranks(x):
            torch.no_grad()(dist.all_reduce)(x)  # here
        """,
    ),
    "through a context of Python's": (
        REDUCE,
        """
        import contextlib
        def mean_over_ranks(x):
            stack = contextlib.ExitStack()
            stack.callback(dist.all_reduce, x)
            stack.close()  # here
        """,
    ),
    "in a text": (
        REDUCE,
        """
        def mean_over_ranks(x):
            exec("dist.all_reduce(x)", globals(), {"x": x})
        """,
    ),
    "a module's function": (
        f"{NN}.all_reduce",
        """
        def mean_over_ranks(x):
            dist.nn.all_reduce(x)  # here
        """,
    ),
    "a module's function, from below": (
        f"{NN}.all_reduce",
        """
        from torch.distributed.nn.functional import all_reduce
        def mean_over_ranks(x):
            all_reduce(x)  # here
        """,
    ),
    "a static method": (
        FROM_LOCAL,
        """
        from torch.distributed.tensor import DTensor
        def mean_over_ranks(x):
            DTensor.from_local(x)  # here
        """,
    ),
    "a method": (
        LOAD,
        """
        def mean_over_ranks(x):
            nn.Linear(2, 2).load_state_dict({})  # here
        """,
    ),
    "loaded again": (
        DDP,
        """
        import importlib
        import torch.nn.parallel.distributed as module
        importlib.reload(module)
        def mean_over_ranks(x):
            module.DistributedDataParallel(nn.Linear(2, 2))  # here
        """,
    ),
    "forgotten and imported again": (
        DDP,
        """
        import sys
        del sys.modules["torch.nn.parallel.distributed"]
        from torch.nn.parallel.distributed import DistributedDataParallel as D
        def mean_over_ranks(x):
            D(nn.Linear(2, 2))  # here
        """,
    ),
    "loaded under a name of its own": (
        f"{NN}.all_reduce",
        """
        import importlib.util
        spec = importlib.util.spec_from_file_location("mine", dist.nn.functional.__file__)
        mine = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(mine)
        def mean_over_ranks(x):
            mine.all_reduce(x)  # here
        """,
    ),
    "with a fallback": (
        REDUCE,
        """
        def mean_over_ranks(x):
            try:
                dist.all_reduce(x)  # here
            except Exception:
                dist.broadcast(x, 0)
            return x
        """,
    ),
    "swallowed": (
        REDUCE,
        """
        def mean_over_ranks(x):
            try:
                dist.all_reduce(x)  # here
            except:
                return x
        """,
    ),
    "swallowed, and something else raised": (
        REDUCE,
        """
        def mean_over_ranks(x):
            try:
                dist.all_reduce(x)  # here
            except:
                raise ValueError("x")
        """,
    ),
    "in a thread": (
        REDUCE,
        """
        import threading
        def reduce(x):
            dist.all_reduce(x)  # here
        def mean_over_ranks(x):
            thread = threading.Thread(target=reduce, args=(x,))
            thread.start()
            thread.join()
            return x
        """,
    ),
}


@pytest.mark.parametrize("way", USES)
def test_it_refuses_whichever_way_a_file_comes_to_it(run: Callable[[str], WorldError | None], way: str) -> None:
    name, text = USES[way]
    text = textwrap.dedent(text)
    error = run(text)
    assert error is not None and error.kind == "refused", error
    here = [number for number, line in enumerate((HEAD + text).splitlines(), 1) if line.endswith("# here")]
    site = f"answer.py:{here[0]}" if here else "answer.py"
    assert error.message == f"{site} uses {name}, which this question asks you to write yourself"
    assert not here or error.site == site


ALLOWED = {
    "an import": "from torch.nn.parallel import DistributedDataParallel\nfrom torch.distributed import all_reduce",
    "a question": "assert not isinstance(nn.Linear(1, 1), nn.parallel.DistributedDataParallel)\n"
    "assert issubclass(nn.parallel.DistributedDataParallel, nn.Module)\nassert callable(dist.all_reduce)",
    "torch's own use": "def mean_over_ranks(x):\n    found = [None]\n    dist.all_gather_object(found, 'x')\n"
    "    assert found == ['x']\n    return x",
    "a class of torch's that inherits": "from torch.nn.parallel import DataParallel\nDataParallel(nn.Linear(1, 1))",
    "what is like it": "def mean_over_ranks(x):\n    dist.broadcast(x, 0)\n    return x",
    "its signature": "import inspect\nassert 'async_op' in inspect.signature(dist.all_reduce).parameters\n"
    "assert 'bucket_cap_mb' in inspect.signature(nn.parallel.DistributedDataParallel).parameters",
    "a function of its own of that name": "def all_reduce(x): return x\n\ndef mean_over_ranks(x): return all_reduce(x)",
}


@pytest.mark.parametrize("what", ALLOWED)
def test_what_is_no_use_of_it_is_let_be(run: Callable[[str], WorldError | None], what: str) -> None:
    text = ALLOWED[what]
    if "def mean_over_ranks" not in text:
        text += "\n\ndef mean_over_ranks(x):\n    return x\n"
    error = run(text)
    assert error is None, error


# -- through the grade ------------------------------------------------------------------------------------------------


@pytest.fixture
def forbidding(toy: Bank, tmp_path: Path) -> Bank:
    """toy/mean, of which all_reduce is the answer; its checks use the collective themselves."""
    shutil.copytree(toy.root, tmp_path / "bank")
    bank = Bank(tmp_path / "bank")
    file = bank.question("toy/mean")
    file.write_text(file.read_text(encoding="utf-8") + f"forbidden: [{REDUCE}, {DDP}]\n", encoding="utf-8")
    checks = bank.checks("toy/mean")
    text = checks.read_text(encoding="utf-8").replace(
        "    mean = solution",
        "    import torch.distributed as dist\n    dist.all_reduce(torch.ones(1))\n    mean = solution",
    )
    checks.write_text(text, encoding="utf-8")
    return bank


def graded(bank: Bank, zygote: Zygote, tmp_path: Path, text: str) -> GradeResult:
    file = tmp_path / "answer.py"
    file.write_text(HEAD + text, encoding="utf-8")
    return grade("toy/mean", file, bank=bank, zygote=zygote, seed=7, transport="switchboard")


def test_the_grade_is_refused_with_the_line(forbidding: Bank, zygote: Zygote, tmp_path: Path) -> None:
    text = "\ndef mean_over_ranks(tensor, group=None):\n    dist.all_reduce(tensor)\n    return tensor\n"
    result = graded(forbidding, zygote, tmp_path, text)
    assert (result.verdict, result.score) == ("refused", 0)
    assert result.failed_checks == {"test_every_rank_finishes"}
    first = result.first_failure
    assert first is not None and first.site == "answer.py:6"
    assert first.message == f"answer.py:6 uses {REDUCE}, which this question asks you to write yourself"


def test_the_checks_may_use_it(forbidding: Bank, zygote: Zygote, tmp_path: Path) -> None:
    text = """
def mean_over_ranks(tensor, group=None):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, tensor, group=group)
    return sum(parts) / len(parts)
"""
    result = graded(forbidding, zygote, tmp_path, text)
    assert {check.proof for check in result.checks if check.verdict == "failed"} == {"traffic"}, result.first_failure


def test_the_next_file_meets_a_clean_torch(forbidding: Bank, toy: Bank, zygote: Zygote, tmp_path: Path) -> None:
    text = "\ndef mean_over_ranks(tensor, group=None):\n    return tensor\n\ndist.all_reduce(torch.ones(1))\n"
    assert graded(forbidding, zygote, tmp_path, text).verdict == "refused"
    right = grade("toy/mean", toy.reference("toy/mean"), bank=toy, zygote=zygote, transport="switchboard")
    assert right.verdict == "passed"


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (REDUCE, ""),
        (NN, ""),
        (LOAD, ""),
        ("torch.distributed.all_reduc", "torch.distributed has no 'all_reduc'; closest: 'all_reduce'"),
        ("torch.distributed.pipelinin.Pipe", "torch.distributed has no 'pipelinin'; closest: 'pipelining'"),
        ("torch.nn.Module.no_such_method", "torch.nn.Module has no 'no_such_method'"),
        ("torch.float32", "torch.float32 is a dtype that cannot be made to refuse"),
        ("torch.Size", "torch.Size is a type that cannot be made to refuse"),
        ("torch.version", "the module torch.version offers nothing that could refuse"),
    ],
)
def test_a_name_that_cannot_be_forbidden_is_said(name: str, problem: str) -> None:
    assert problem_of(name).startswith(problem) and bool(problem_of(name)) == bool(problem)


def test_a_module_stands_for_all_that_it_offers() -> None:
    names = [name for name, _, _ in members(NN)]
    assert {f"{NN}.all_reduce", f"{NN}.reduce_scatter"} <= set(names)
    assert f"{NN}.ReduceOp" not in names  # imported there, and offered by another module
