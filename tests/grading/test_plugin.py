"""The pytest plugin, as a project of somebody else uses it: a test file in an empty directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOY_CHECKS = Path(__file__).parent / "bank" / "questions" / "toy" / "test_mean.py"


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """pytest with the plugin given by name: as well where shardkit is installed as where it is only on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "kit.grading.plugin", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": path, "COLUMNS": "100", **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )


def outcome(text: str) -> dict[str, int]:
    """`2 failed, 3 passed` of the last line."""
    return {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", text.strip().splitlines()[-1])}


PROJECT = """
    import pytest
    import torch
    import torch.distributed as dist


    def average(x):
        dist.all_reduce(x)
        return x / dist.get_world_size()


    def rank_and_size():
        return dist.get_rank(), dist.get_world_size()


    def waits_for_nobody():
        print("about to wait")
        if dist.get_rank() == 0:
            dist.barrier()


    def raises(x):
        if dist.get_rank() == 1:
            raise ValueError("no good")
        dist.all_reduce(x)


    def test_two_ranks_without_a_marker(world):
        assert world.run(rank_and_size).ranks == ((0, 2), (1, 2))


    @pytest.mark.world_size(1, 3, transport=("switchboard", "gloo"), deadline_s=60)
    def test_average(world):
        parts = [torch.full((3,), float(rank)) for rank in range(world.size)]
        for mean in world.run(average, parts).ranks:
            assert torch.equal(mean, sum(parts) / world.size)


    @pytest.mark.world_size(4)
    class TestOfAClass:
        def test_sizes_come_from_the_class(self, world):
            assert world.size == 4

        @pytest.mark.world_size(1)
        def test_and_are_overridden(self, world):
            assert world.size == 1


    @pytest.mark.parametrize("factor", [1, 2])
    @pytest.mark.world_size(2)
    def test_other_parameters_go_with_it(world, factor):
        assert world.size == 2


    def test_a_hang_is_told_by_its_diagnosis(world):
        world.run(waits_for_nobody)


    def test_a_crash_too(world):
        world.run(raises, [torch.ones(1)] * 2)


    def test_an_error_can_be_expected(world):
        from kit.world import WorldError

        with pytest.raises(WorldError, match="never called barrier"):
            world.run(waits_for_nobody)
"""


def test_a_project_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(textwrap.dedent(PROJECT))
    ended = run_pytest(tmp_path, "--shardkit-seed", "12345", "--junitxml", "report.xml")
    shown = ended.stdout
    assert outcome(shown) == {"failed": 2, "passed": 10}, shown + ended.stderr
    assert ended.returncode == 1
    assert "shardkit: seed 12345" in shown
    hang = shown.split("test_a_hang_is_told_by_its_diagnosis[2] ___")[1].split("test_a_crash_too[2] ___")[0]
    lines = hang.splitlines()
    assert lines[1].startswith("E   rank 1 never called barrier #1 of group WORLD in which rank 0 waits (test_mine.py:")
    assert any("returned" in line for line in lines)
    assert any(re.fullmatch(r"test_mine\.py:\d+", line) for line in lines)
    assert "rank 1, stdout" in hang
    assert "about to wait" in hang
    assert "run_loop" not in shown and "kit/world" not in shown  # no frames of the kit
    crash = shown.split("test_a_crash_too[2] ___")[1]
    assert "E   rank 1 raised ValueError: no good" in crash
    assert 'raise ValueError("no good")' in crash
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == [
        "report.xml",
        "test_mine.py",
    ]
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("errors")) == ("2", "0")
    messages = [found.get("message", "") for found in suite.iter("failure")]
    assert any("never called barrier" in message for message in messages)


def test_xdist_runs_the_same_with_one_seed(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_mine.py").write_text(
        textwrap.dedent(PROJECT)
        + textwrap.dedent(
            """
            @pytest.mark.parametrize("number", range(4))
            def test_seed(number, request):
                from kit.grading.plugin import SESSION
                assert request.config.stash[SESSION].seed == 77
            """
        )
    )
    ended = run_pytest(tmp_path, "-n", "2", "--shardkit-seed", "77", "-p", "xdist")
    assert outcome(ended.stdout) == {"failed": 2, "passed": 14}, ended.stdout + ended.stderr
    assert "rank 1 never called barrier #1 of group WORLD" in ended.stdout


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ("world_size(0)", "world sizes are whole numbers from 1 on, got 0"),
        ("world_size()", "world sizes are whole numbers from 1 on, got none"),
        ("world_size('2')", "world sizes are whole numbers from 1 on, got '2'"),
        ("world_size(True)", "world sizes are whole numbers from 1 on, got True"),
        ("world_size([1, 2])", "world sizes are whole numbers from 1 on, got [1, 2]"),
        ("world_size(2, 2)", "a world size is given twice: 2, 2"),
        ("world_size(2, transport='nccl')", "transport='nccl': there are switchboard and gloo"),
        ("world_size(2, transport=3)", "transport=3: there are switchboard and gloo"),
        ("world_size(2, deadline_s=0)", "deadline_s=0 is not a positive number of seconds"),
        ("world_size(2, deadline_s='x')", "deadline_s='x' is not a positive number of seconds"),
        ("world_size(2, deadline=3)", "unknown option 'deadline'; there are transport and deadline_s"),
    ],
)
def test_nonsense_in_the_marker_is_said(pytestconfig: pytest.Config, tmp_path: Path, marker: str, says: str) -> None:
    file = tmp_path / "test_mine.py"
    file.write_text(f"import pytest\n\n@pytest.mark.{marker}\ndef test_it(world):\n    pass\n")
    shown = run_inside(tmp_path, str(file))
    assert f"test_it: @pytest.mark.world_size: {says}" in shown
    assert "plugin.py" not in shown


def run_inside(folder: Path, *arguments: str) -> str:
    """pytest in this process; for what starts no ranks."""
    import contextlib
    import io

    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PYTEST")}
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    shown = io.StringIO()
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            pytest.main(
                ["-p", "kit.grading.plugin", "-p", "no:cacheprovider", "-s", "--import-mode=importlib",
                 "--rootdir", str(folder), "-c", os.devnull, *arguments]
            )  # fmt: skip
    finally:
        del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
        os.environ.update(kept)
        for name in [name for name in sys.modules if name.startswith("test_mine")]:
            del sys.modules[name]
    return shown.getvalue()


def test_fixtures_that_a_project_calls_the_same_stay_its_own(tmp_path: Path) -> None:
    file = tmp_path / "test_mine.py"
    file.write_text(
        textwrap.dedent(
            """
            import pytest

            @pytest.fixture
            def world():
                return "mine"

            @pytest.fixture
            def run():
                return "mine too"

            def test_it(world, run):
                assert (world, run) == ("mine", "mine too")
            """
        )
    )
    shown = run_inside(tmp_path, str(file), "-v")
    assert "test_it PASSED" in shown  # and no [2] behind its name


def test_run_outside_of_a_scenario_is_said(tmp_path: Path) -> None:
    file = tmp_path / "test_mine.py"
    file.write_text("def test_it(run):\n    pass\n")
    assert "the fixture `run` belongs to functions marked with Scenario.check" in run_inside(tmp_path, str(file))


def test_the_plugin_is_light() -> None:
    """It is imported by every pytest run of an environment that has shardkit."""
    program = (
        "import sys, pytest; before = set(sys.modules); import kit.grading.plugin;"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "heavy = new & {'torch', 'numpy', 'rich', 'pydantic', 'yaml', 'typer'}; assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, timeout=60)


def test_the_checks_of_a_question_are_plain_pytest(tmp_path: Path) -> None:
    right = run_pytest(tmp_path, str(TOY_CHECKS), "-q", "--shardkit-transport", "switchboard")
    assert outcome(right.stdout) == {"passed": 12}, right.stdout + right.stderr
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import torch.distributed as dist\n\n\ndef mean_over_ranks(tensor, group=None):\n"
        "    if dist.get_rank() != 2:\n        dist.all_reduce(tensor)\n    return tensor\n"
    )
    wrong = run_pytest(tmp_path, str(TOY_CHECKS), "--solution", "mine.py", "--shardkit-seed", "5", "-rs")
    shown = wrong.stdout
    # One rank is right by chance but for its input. At 2: summed, input written. At 3: hung. gloo: not tried.
    assert outcome(shown) == {"failed": 3, "passed": 6, "skipped": 5}, shown
    assert "mean is 2.000x the expected one: summed over ranks, not averaged" in shown
    assert "rank 2 never called all_reduce" in shown
    assert "not run: it fails on the switchboard at world_size=2" in shown
    assert "compare(" not in shown  # told by the diagnosis, not by the checks' source
    again = run_pytest(tmp_path, str(TOY_CHECKS), "--solution", "mine.py", "--shardkit-seed", "5")
    said = [[line for line in text.splitlines() if line.startswith("E  ")] for text in (shown, again.stdout)]
    assert said[0] == said[1] and said[0]


def test_a_solution_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    shown = run_inside(tmp_path, str(TOY_CHECKS), "--solution", str(tmp_path / "nothing.py"), "-x")
    assert f"no file {tmp_path / 'nothing.py'}" in shown
    assert "Traceback" not in shown and "plugin.py" not in shown
