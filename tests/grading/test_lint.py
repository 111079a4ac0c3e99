"""Lint by running: what the starter, the reference, variants and mutants of a question must do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kit.bank.layout import Bank

ROOT = Path(__file__).resolve().parents[2]

MUTANTS = """
mutants:
  - name: summed
    what: {en: Summed., zh: 求和。}
    edits: [{find: " / dist.get_world_size(group)", replace: ""}]
    caught_by: [test_every_rank_has_the_mean]
    says: Summed over RANKS
  - name: says-something-else
    what: {en: Summed., zh: 求和。}
    edits: [{find: " / dist.get_world_size(group)", replace: ""}]
    caught_by: [test_every_rank_has_the_mean]
    says: local gradient
  - name: survives
    what: {en: The same., zh: 一样。}
    edits: [{find: "total = tensor.clone()", replace: "total = tensor + 0"}]
    caught_by: [test_every_rank_has_the_mean]
  - name: fails-more
    what: {en: In place., zh: 原地修改。}
    edits: [{find: "total = tensor.clone()", replace: "total = tensor"}]
    caught_by: [test_every_rank_finishes]
  - name: hangs
    what: {en: One rank stays away., zh: 有一个 rank 不参加。}
    edits: [{find: "    dist.all_reduce", replace: "    if dist.get_rank(): dist.all_reduce"}]
    caught_by: [test_every_rank_has_the_mean, test_one_all_reduce]
"""

PROGRAM = """
import json, sys
from pathlib import Path
from kit.bank.layout import Bank
from kit.grading import lint_bank
trials = []
findings = lint_bank(Bank(Path(sys.argv[1])), jobs=int(sys.argv[2]), tell=trials.append)
print(json.dumps({
    "findings": [str(finding) for finding in findings],
    "trials": [[trial.kind, trial.name, trial.seed, trial.problem] for trial in trials],
}))
"""


@pytest.fixture
def bank(toy: Bank, tmp_path: Path) -> Bank:
    shutil.copytree(toy.root, tmp_path / "bank")
    copy = Bank(tmp_path / "bank")
    copy.mutants("toy/mean").write_text(MUTANTS, encoding="utf-8")
    variants = copy.answers / "toy" / "mean.variants"
    variants.mkdir()
    right = copy.reference("toy/mean").read_text(encoding="utf-8")
    (variants / "other_words.py").write_text(right.replace("total", "result"), encoding="utf-8")
    (variants / "wrong.py").write_text(right.replace("tensor.clone()", "tensor.float()"), encoding="utf-8")
    return copy


def lint(bank: Bank, jobs: int) -> tuple[list[str], dict[str, str]]:
    """(findings, problem by name of the trial)."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(bank.root), str(jobs)],
        capture_output=True, text=True, timeout=240, cwd=ROOT,
    )  # fmt: skip
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
    said = json.loads(ended.stdout)
    assert [trial[:3] for trial in said["trials"][:4]] == [
        ["starter", "starter", 1], ["reference", "reference", 1],
        ["reference", "reference", 2], ["reference", "reference", 3],
    ]  # fmt: skip
    return said["findings"], {name: problem for _, name, _, problem in said["trials"]}


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_trial_that_breaks_its_rule_is_said(bank: Bank, jobs: int) -> None:
    findings, problems = lint(bank, jobs)
    assert problems.pop("wrong").startswith("a right answer is wrong: test_every_rank_has_the_mean: world_size=1")
    assert problems.pop("says-something-else").startswith("no failure says 'local gradient'; the first says: ")
    assert problems.pop("survives") == (
        "survives test_every_rank_has_the_mean (caught_by says test_every_rank_has_the_mean)"
    )
    assert problems.pop("fails-more") == (
        "survives test_every_rank_finishes; also fails test_the_input_is_left_alone "
        "(caught_by says test_every_rank_finishes)"
    )
    # What did not run has not failed; at world size 1 nothing hangs, and the traffic is short of one.
    assert problems.pop("hangs") == (
        "survives test_every_rank_has_the_mean; also fails test_every_rank_finishes "
        "(caught_by says test_every_rank_has_the_mean, test_one_all_reduce)"
    )
    assert set(problems) == {"starter", "reference", "other_words", "summed"}
    assert not any(problems.values())
    assert sum("mean.mutants.yaml" in line and "mutant " in line for line in findings) == 4
    assert any(line.startswith("reference/toy/mean.variants/wrong.py: variant wrong: ") for line in findings)


def test_a_starter_that_passes_a_check_and_a_forbidden_name_that_is_none_are_said(bank: Bank) -> None:
    starter = bank.starter("toy/mean")
    text = starter.read_text(encoding="utf-8")
    starter.write_text(text.replace("raise NotImplementedError", "return tensor.clone()"), encoding="utf-8")
    question = bank.question("toy/mean")
    num_lines = len(question.read_text(encoding="utf-8").splitlines())
    with question.open("a", encoding="utf-8") as file:
        file.write("forbidden:\n  - torch.distributed.all_gather\n  - torch.distributed.all_reduc\n")
    findings, problems = lint(bank, 2)
    assert [finding for finding in findings if "forbidden" in finding] == [
        f"questions/toy/mean.yaml:{num_lines + 3}: forbidden: torch.distributed has no 'all_reduc'; "
        "closest: 'all_reduce'"
    ]
    assert problems["starter"].startswith("the starter passes test_every_rank_finishes, test_every_rank_has_the_mean")
