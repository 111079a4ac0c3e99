"""Programs of questions do what is said of them; every one of the bank does, and what differs is said with its line."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kit.bank.layout import find_bank
from kit.bank.lint.entry import read_entry
from kit.bank.load import load_question
from kit.bank.schema import Experiment
from kit.grading.experiments import Happened, difference, experiment_finding, experiments, run_experiment
from kit.world import Zygote
from tests.bank.conftest import BankBuilder, build  # noqa: F401  the fixture

ROOT = Path(__file__).resolve().parents[2]
LINT = """
import json, sys
from pathlib import Path
from kit.bank.layout import Bank
from kit.grading import lint_bank
trials = []
findings = lint_bank(Bank(Path(sys.argv[1])), tell=trials.append)
print(json.dumps([list(map(str, findings)), [[each.question, each.kind, each.problem] for each in trials]]))
"""
PRELUDE = "import torch\nimport torch.distributed as dist\n\nrank = dist.get_rank()\n"

PROGRAMS = {
    "prints": ("if rank != 1:\n    print(rank)\nprint(dist.get_world_size(), __name__ == '__main__')\n", ""),
    "hangs": ("if rank == 0:\n    dist.barrier()\n", "ranks 1, 2 never called barrier #1"),
    "raises": ("if rank == 1:\n    raise ValueError('a bad shape')\n", "ValueError: a bad shape"),
    "race": (
        "x = torch.ones(4)\nwork = dist.all_reduce(x, async_op=True)\nx.add_(1)\nwork.wait()\n",
        "race on rank",
    ),
    "mismatch": ("dist.all_reduce(torch.ones(2 + rank))\n", "mismatch at operation"),
}


def experiment(outcome: str, program: str, expect: str, world_size: int = 3) -> Experiment:
    return Experiment(world_size=world_size, program=program, outcome=outcome, expect=expect)


@pytest.mark.parametrize("outcome", PROGRAMS)
def test_each_outcome_is_known_for_what_it_is(outcome: str, zygote: Zygote) -> None:
    program, expect = PROGRAMS[outcome]
    wanted = experiment(outcome, PRELUDE + program, expect or "0\n3 False\n3 False\n2\n3 False\n")
    happened = run_experiment(wanted, zygote)
    assert happened.outcome == outcome
    assert difference(wanted, happened) == ""
    others = [each for each in PROGRAMS if each != outcome]
    for other in others:
        assert difference(wanted.model_copy(update={"outcome": other}), happened).startswith(
            f"outcome is {other}, and what happened is {outcome}: "
        )
    assert difference(wanted.model_copy(update={"expect": "something else"}), happened)


def test_a_diagnosis_names_the_line_of_the_program_that_is_shown(zygote: Zygote) -> None:
    happened = run_experiment(experiment("hangs", PRELUDE + "\n\nif rank:\n    dist.barrier()\n", "x"), zygote)
    assert "program.py:8" in happened.text


def test_what_is_printed_counts_to_the_letter_but_for_blanks_at_ends_of_lines() -> None:
    wanted = experiment("prints", "print()", "a b\n 1\n")
    assert difference(wanted, Happened("prints", "a b  \n 1")) == ""
    assert difference(wanted, Happened("prints", "a  b\n 1")) == "the ranks print 'a  b\\n 1'"
    assert difference(wanted, Happened("prints", "a b\n 1\n2")) == "the ranks print 'a b\\n 1\\n2'"


def test_another_ending_is_no_outcome(zygote: Zygote) -> None:
    """A program that prints without end is ended, and the finding says by what."""
    endless = experiment("prints", "while True:\n    print('x' * 1000000)\n", "x", world_size=1)
    assert difference(endless, run_experiment(endless, zygote)).startswith(
        "outcome is prints, and what happened is output"
    )


def test_a_wrong_claim_is_a_finding_at_its_line(build: BankBuilder) -> None:  # noqa: F811
    def claims_too_much(values):
        values["expect"] = "0\n2\n"
        values["options"][0]["text"] = {"en": "`0 2`", "zh": "打印 `0 2`"}
        values["proof"] = {"world_size": 1, "program": "print(1)\n", "outcome": "raises", "expect": "1"}

    build.question("predict", "topic/right")
    build.question("predict", "topic/wrong", claims_too_much)
    build.question("choice", change=lambda values: values.update(requires=["topic/right"]))
    path = build.bank.question("topic/wrong")
    lines = path.read_text(encoding="utf-8").split("\n")
    ended = subprocess.run(
        [sys.executable, "-c", LINT, str(build.root)], capture_output=True, text=True, timeout=240, cwd=ROOT
    )
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
    findings, trials = json.loads(ended.stdout)
    expect = next(number for number, line in enumerate(lines, 1) if line.startswith("expect: "))
    advice = "say what happens, or change the program"
    assert findings == [
        f"questions/topic/wrong.yaml:{expect}: the ranks print '0\\n1'; {advice}",
        f"questions/topic/wrong.yaml:{lines.index('  outcome: raises') + 1}: "
        f"outcome is raises, and what happened is prints: 1; {advice}",
    ]
    assert trials == [
        ["topic/right", "program", ""],
        ["topic/wrong", "program", "the ranks print '0\\n1'"],
        ["topic/wrong", "proof", "outcome is raises, and what happened is prints: 1"],
    ]


def test_every_program_of_the_bank_does_what_its_question_says(zygote: Zygote) -> None:
    bank = find_bank()
    wrong = []
    for question_id in bank.ids():
        question = load_question(bank, question_id)
        if question.kind == "predict" or question.proof is not None:
            entry = read_entry(bank, question_id)
            found = [experiment_finding(entry, place, each, zygote) for _, place, each in experiments(entry)]
            wrong += [textwrap.shorten(str(finding), 300) for finding in found if finding]
    assert wrong == []
