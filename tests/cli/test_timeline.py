"""`timeline`, and `grade --timeline`: what they print, what they write, and how they end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import ROOT, Shardkit

QUESTION = """\
kind: code
level: 2
title: {en: Relay, zh: 接力}
prompt: {en: "Write `relay(x)`.", zh: "实现 `relay(x)`。"}
interface: ["def relay(x)"]
points: {values: 4}
hints: [{en: Add., zh: 相加。}, {en: "x + x", zh: "x + x"}]
explanation: {en: Twice is a sum., zh: 两倍就是和。}
follow_ups: [{question: {en: And three times?, zh: 三倍呢？}, answer: {en: Once more., zh: 再加一次。}}]
sources: [{title: Arithmetic, where: chapter 1}]
"""

STARTER = """\
def relay(x):
    raise NotImplementedError
"""

CHECKS = '''\
"""Checks of sums/relay: a stage computes for a second when the one before it is done."""

import torch
import torch.distributed as dist

from kit.grading import Scenario, fail
from kit.world.inside import compute, mark


def relay_once(solution, inputs):
    for step in range(2):
        mark(f"step {step}")
        rank, world_size = dist.get_rank(), dist.get_world_size()
        token = torch.zeros(1)
        if rank > 0:
            dist.recv(token, rank - 1)
        compute(1.0, "F", label="stage", microbatch=step)
        token = solution.relay(token)
        if rank + 1 < world_size:
            dist.send(token, rank + 1)
        dist.barrier()
        mark(f"step {step} done")
    return {"token": token}


def nothing(solution, inputs):
    return {"token": torch.zeros(1)}


def problem(rng, world_size):
    if world_size == 7:
        raise KeyError(7)
    return {}


def rank_inputs(problem, rank):
    return {}


def expected(problem):
    return {}


FIRST = Scenario(nothing, problem=problem, rank_inputs=rank_inputs, expected=expected, world_sizes=(2,), gloo=())
RELAY = Scenario(relay_once, problem=problem, rank_inputs=rank_inputs, expected=expected, world_sizes=(2, 3), gloo=())


@FIRST.check("values")
def test_nothing_comes_back(run):
    """The first scenario has no check of time."""


@RELAY.check("values")
def test_the_token_counts(run):
    """Each rank has added one."""
    if any(returned["token"].item() != rank + 1 for rank, returned in enumerate(run.ranks)):
        fail("a rank did not add one")


@RELAY.check("time")
def test_stages_follow_one_another(run):
    """Two rounds, a second for each stage."""


@RELAY.completes
def test_every_rank_finishes(run):
    """No rank hangs."""
'''

RIGHT = "def relay(x):\n    return x + 1\n"
WRONG = "def relay(x):\n    return x + 2\n"
HANGS = (
    "import torch.distributed as dist\n\n\ndef relay(x):\n    dist.recv(x, (dist.get_rank() + 1) % 2)\n    return x\n"
)
BREAKS = "def relay(x):\n    return x + undefined\n"
NOT_WRITTEN = "def relay(x):\n    x = x + 0\n    raise NotImplementedError\n"


@pytest.fixture
def relay(bank: Path, tmp_path: Path) -> Path:
    """The bank with the question sums/relay; solutions lie beside it."""
    topic = bank / "questions" / "sums"
    (topic / "relay.yaml").write_text(QUESTION, encoding="utf-8")
    (topic / "relay.py").write_text(STARTER, encoding="utf-8")
    (topic / "test_relay.py").write_text(CHECKS, encoding="utf-8")
    for name, text in (("right", RIGHT), ("wrong", WRONG), ("hangs", HANGS), ("breaks", BREAKS), ("todo", NOT_WRITTEN)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return bank


def test_it_draws_the_scenario_that_has_a_check_of_time(shardkit: Shardkit, relay: Path, tmp_path: Path) -> None:
    ended = shardkit("timeline", "sums/relay", "right.py", "--bank", relay, "--seed", "3")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (
        ended.stdout
        == f"""\
sums/relay, relay_once/problem, world_size=3

rank 0  F0──────────························F1──────────························
rank 1  ············F0──────────························F1──────────············
rank 2  ························F0──────────························F1──────────
        ┴───────────┴───────────┴───────────┴───────────┴───────────┴──────────┴
     s  0           1           2           3           4           5          6
F forward, number: microbatch, · waits

rank  busy  bubble  exposed comm.  in flight
   0   2 s   66.7%            0 s          2
   1   2 s   66.7%            0 s          2
   2   2 s   66.7%            0 s          2
makespan 6 s, bubble 66.7% (idle / makespan, mean over 3 ranks), profile ideal

one part alone: shardkit timeline sums/relay right.py --bank {relay} --seed 3 --mark 'step 0'
"""
    )


def test_its_files_and_its_numbers(shardkit: Shardkit, relay: Path, tmp_path: Path) -> None:
    ended = shardkit(
        "timeline", "sums/relay", "right.py", "--bank", relay, "--world-size", "2", "--mark", "step 1", "--seed", "3",
        "--svg", "t.svg", "--chrome", "t.json", "--json", "-",
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    numbers = json.loads(ended.stdout)
    ranks = numbers.pop("ranks")
    assert numbers == {
        "schema": 1, "question": "sums/relay", "solution": "right.py", "scenario": "relay_once/problem", "seed": 3,
        "mark": "step 1", "profile": "ideal", "world_size": 2, "makespan_s": 2.0,
    }  # fmt: skip
    one = {"busy_s": 1.0, "idle_s": 1.0, "bubble_fraction": 0.5, "communication_s": 0.0, "exposed_s": 0.0,
           "in_flight": 1}  # fmt: skip
    assert ranks == [{"rank": 0, **one}, {"rank": 1, **one}]
    words = [element.text for element in ElementTree.parse(tmp_path / "t.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert "sums/relay, relay_once/problem, world_size=2, step 1" in words and "F1" in words and "F0" not in words
    trace = json.loads((tmp_path / "t.json").read_text("utf-8"))
    assert [e["pid"] for e in trace["traceEvents"] if e["name"] == "F 1"] == [0, 1]


def test_another_profile_prices_the_same_run(shardkit: Shardkit, relay: Path, tmp_path: Path) -> None:
    arguments = ["timeline", "sums/relay", "right.py", "--bank", relay, "--profile", "a100", "--json", "-"]
    times = json.loads(shardkit(*arguments).stdout)
    assert times["profile"] == "a100" and 6.0 < times["makespan_s"] < 6.1
    assert all(rank["exposed_s"] > 0 for rank in times["ranks"])


def test_scenarios_by_name_and_more_ranks_than_are_checked(shardkit: Shardkit, relay: Path) -> None:
    arguments = ["timeline", "sums/relay", "right.py", "--bank", relay]
    assert "sums/relay, nothing/problem, world_size=2\n" in shardkit(*arguments, "--scenario", "noth").stdout
    five = shardkit(*arguments, "--world-size", "5")
    assert five.returncode == 0 and "rank 4 " in five.stdout
    seven = shardkit(*arguments, "--world-size", "7")
    assert seven.returncode == 2
    assert "relay_once/problem makes no problem for 7 ranks (KeyError: 7)" in seven.stderr
    assert "hint: its checks run at world sizes 2, 3" in seven.stderr


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["right.py", "--scenario", "x"], "no scenario 'x'", "nothing/problem, relay_once/problem"),
        (["right.py", "--scenario", "problem"], "several scenarios fit 'problem'", "nothing/problem"),
        (["right.py", "--profile", "a10"], "no hardware profile 'a10' (did you mean 'a100'?)", "profiles: a100"),
        (["right.py", "--profile", "none.yaml"], "none.yaml: cannot be read", ""),
        (["right.py", "--mark", "steps"], "no rank has the mark 'steps'; marks of this run: step 0", ""),
        (["right.py", "--world-size", "0"], "--world-size", "shardkit timeline --help"),
        (["right.py", "--seed", "-1"], "seed -1 is not", ""),
        (["right.py", "--svg", "no/t.svg"], "there is no directory no", ""),
        (["nofile.py"], "no file nofile.py", ""),
        ([], "which file answers sums/relay?", "shardkit timeline sums/relay FILE"),
        (["--reference"], "this bank has no reference for sums/relay", "without answers"),
    ],
)
def test_a_user_s_mistake(shardkit: Shardkit, relay: Path, arguments: list[str], message: str, hint: str) -> None:
    ended = shardkit("timeline", "sums/relay", *arguments, "--bank", relay)
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
    assert message in ended.stderr and hint in ended.stderr


def test_a_solution_that_does_not_finish_is_diagnosed(shardkit: Shardkit, relay: Path) -> None:
    arguments = ["--bank", relay, "--world-size", "2", "--seed", "4"]
    hung = shardkit("timeline", "sums/relay", "hangs.py", *arguments)
    assert (hung.returncode, hung.stderr) == (1, "")
    assert hung.stdout.startswith("hung\n") and "hangs.py:5" in hung.stdout and "waits in" in hung.stdout
    again = f"the same inputs again: shardkit timeline sums/relay hangs.py --bank {relay} --world-size 2 --seed 4"
    assert hung.stdout.splitlines()[-1] == again
    crashed = shardkit("timeline", "sums/relay", "breaks.py", *arguments)
    assert crashed.returncode == 1 and crashed.stdout.startswith("crashed\n")
    assert "name 'undefined' is not defined" in crashed.stdout
    todo = shardkit("timeline", "sums/relay", "todo.py", *arguments)
    assert todo.returncode == 1 and "relay is not written yet (todo.py:3)" in todo.stdout
    untouched = shardkit("timeline", "sums/relay", relay / "questions" / "sums" / "relay.py", *arguments)
    assert (untouched.returncode, untouched.stdout) == (1, "the file is still the starter; nothing was run\n")


def test_a_grade_writes_the_timeline_of_its_most_telling_launch(
    shardkit: Shardkit, relay: Path, tmp_path: Path
) -> None:
    grade = ["grade", "sums/relay", "--bank", relay, "--transport", "switchboard"]
    assert shardkit(*grade, "right.py", "--timeline", "t.txt").returncode == 0
    text = (tmp_path / "t.txt").read_text("utf-8")
    assert text.startswith("sums/relay, relay_once/problem, world_size=3\n") and "rank 2  ····" in text
    # A check fails, and it is written all the same.
    assert shardkit(*grade, "wrong.py", "--timeline", "t.svg").returncode == 1
    assert "relay_once/problem, world_size=3" in (tmp_path / "t.svg").read_text("utf-8")
    assert shardkit(*grade, "wrong.py", "--timeline", "t.json").returncode == 1
    assert len({e["pid"] for e in json.loads((tmp_path / "t.json").read_text("utf-8"))["traceEvents"]}) == 3


def test_a_grade_whose_telling_scenario_hangs_takes_what_ran(shardkit: Shardkit, relay: Path, tmp_path: Path) -> None:
    grade = ["grade", "sums/relay", "--bank", relay, "--transport", "switchboard"]
    assert shardkit(*grade, "hangs.py", "--timeline", "t.txt").returncode == 1
    assert (tmp_path / "t.txt").read_text("utf-8").startswith("sums/relay, nothing/problem, world_size=2\n")
    only_gloo = shardkit(
        "grade", "sums/relay", "right.py", "--bank", relay, "--timeline", "u.txt", "--transport", "gloo"
    )
    assert "no launch on the switchboard came to its end, so u.txt was not written" in only_gloo.stderr
    assert not (tmp_path / "u.txt").exists()


def test_a_timeline_s_form_is_asked_for_before_anything_runs(shardkit: Shardkit, relay: Path) -> None:
    ended = shardkit("grade", "sums/relay", "right.py", "--bank", relay, "--timeline", "t.png")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "t.png: a timeline is written as .json (Chrome and Perfetto), .svg or .txt" in ended.stderr


def test_the_bank_s_own_answer(shardkit: Shardkit) -> None:
    ended = shardkit("timeline", "pp/gpipe", "--reference", "--seed", "1", "--mark", "batch 0", LANG="C", COLUMNS="60")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"^rank 0  F0F1F2F3F4\.+B0==B1==", ended.stdout, flags=re.MULTILINE)
    assert "bubble 37.5%" in ended.stdout and ended.stdout.isascii()
    assert f"{ROOT}" not in ended.stdout and "timeline pp/gpipe --reference --seed 1 --mark 'batch 0'" in ended.stdout
