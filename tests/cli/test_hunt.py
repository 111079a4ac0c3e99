"""`hunt` in a real terminal and in a pipe: guesses, the run beside them, and the file to be put right."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from rich.cells import cell_len

from kit.progress.records import Review
from kit.progress.store import open_store
from tests.cli.conftest import ROOT, Shardkit, environment
from tests.cli.terminal import Start, press, screen, until

TOY = ROOT / "tests" / "grading" / "bank"
MUTANTS = """\
mutants:
  - name: summed
    what: {en: Nothing divides the sum., zh: 求和之后没有相除。}
    edits: [{find: "total / dist.get_world_size(group)", replace: "total"}]
    caught_by: [test_every_rank_has_the_mean]
  - name: waits-alone
    what: {en: Rank 1 waits for a message that nobody sends., zh: rank 1 等一条没有人发的消息。}
    edits: [{find: "dist.all_reduce(total, group=group)", replace: "if dist.get_rank() == 1: dist.recv(total, 0)"}]
    caught_by: [test_every_rank_finishes]
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """The toy bank with two wrong answers."""
    bank = tmp_path / "toy"
    shutil.copytree(TOY, bank, ignore=shutil.ignore_patterns("__pycache__"))
    (bank / "reference/toy/mean.mutants.yaml").write_text(MUTANTS, encoding="utf-8")
    return bank


def kept() -> tuple[Review, ...]:
    with open_store() as store:
        return store.reviews()


def line_of(shown: str, code: str) -> str:
    return re.findall(rf"^ *(\d+)  +{re.escape(code)}", shown, flags=re.MULTILINE)[0]


def fits(shown: str, columns: int = 60) -> bool:
    prose = [line for line in shown.splitlines() if "shardkit hunt" not in line and "shardkit " not in line]
    return max(map(cell_len, prose)) <= columns


def test_a_hunt_from_the_code_to_the_points(start: Start, toy: Path) -> None:
    child = start("hunt", "toy/mean", "--mutant", "summed", "--seed", "3", "--bank", toy)
    shown = until(child, "Which line is wrong?")
    assert "Mean over ranks" in shown and " 1  # shardkit: toy/mean\n" in shown and fits(shown)
    assert "summed" not in shown and "divides" not in shown
    number = line_of(shown, "return total")
    press(child, "?")
    until(child, "It is in mean_over_ranks.")
    press(child, "99")
    until(child, "a line number, 1-")
    press(child, number)
    shown = until(child, "What shows first when it runs?")
    assert "e  It runs, and values are wrong." in shown
    press(child, "e")
    until(child, "Which rank does the diagnosis name?")
    press(child, "0")
    until(child, "How many times the expected values?")
    press(child, "n")
    shown = until(child, "f: write the file")
    assert shown.index("First cause") < shown.index("The mistake") < shown.index("Your guesses")
    assert "toy/mean  mean.py\n" in shown and "wrong   0 of 8 points" in shown
    assert "is 2.000x the expected one" in shown and "Nothing divides the sum." in shown
    assert re.search(rf"- +{number} +return total\n", shown)
    assert re.search(r"\+ +return total / dist.get_world_size\(group\)", shown)
    assert "you: 2 times, at world_size=2; seen: 2" in shown and "7 of 7 points, hints used: 1" in shown and fits(shown)
    press(child, "")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    (review,) = kept()
    assert (review.question_id, review.kind, review.topic, review.level) == ("toy/mean", "code", "toy", 1)
    assert (review.mode, review.verdict, review.score, review.num_hints) == ("hunt", "marked", 1.0, 1)
    assert (review.seed, review.rating) == (3, None)


def test_the_same_in_chinese(start: Start, toy: Path) -> None:
    child = start("hunt", "toy/mean", "--mutant", "waits-alone", "--bank", toy, "--lang", "zh", LANG="C.UTF-8")
    shown = until(child, "哪一行有错")
    assert "跨 rank 求平均" in shown and fits(shown)
    press(child, "？")
    until(child, "错误在 mean_over_ranks 里。")
    press(child, line_of(shown, "return total"))
    until(child, "最先暴露的是什么")
    press(child, "zz")
    until(child, "请输入字母 a-i")
    press(child, "a")
    until(child, "点名哪个 rank")
    press(child, "-")
    shown = until(child, "f：写出文件")
    for text in ("错在哪里", "rank 1 等一条没有人发的消息。", "你的判断", "实际 "):
        assert text in shown, text
    assert fits(shown)
    press(child, "f")
    shown = until(child, "题目：shardkit show toy/mean")
    assert "已写出 mean.py" in shown
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_piped_without_colour_and_unicode(shardkit: Shardkit, toy: Path) -> None:
    stdin = "1\nhang\n-\n"
    ended = shardkit(
        "hunt", "toy/mean", "--mutant", "summed", "--seed", "1", "--bank", toy,
        stdin=stdin, COLUMNS="60", LANG="C", LC_ALL="C", PYTHONIOENCODING="ascii",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "\x1b" not in ended.stdout and ended.stdout.isascii() and fits(ended.stdout)
    assert "> 1\n" in ended.stdout and "> hang\n" in ended.stdout
    assert "0 of 6 points" in ended.stdout and "you: hangs; seen: values" in ended.stdout
    assert f"shardkit hunt toy/mean --mutant summed --bank {toy} --fix ." in ended.stdout.replace("\n", " ")


def test_the_same_seed_is_the_same_hunt_and_the_diagnosis_has_the_lines_that_are_shown(
    shardkit: Shardkit, toy: Path
) -> None:
    first, again = (shardkit("hunt", "--seed", "5", "--bank", toy, "--no-save", stdin="1\ns\n") for _ in range(2))
    assert first.stdout == again.stdout and "A candidate's answer to toy/mean" in first.stdout
    hung = shardkit("hunt", "toy/mean", "--mutant", "waits-alone", "--bank", toy, stdin="1\na\n-\n").stdout
    assert f"mean.py:{line_of(hung, 'if dist.get_rank()')}" in hung and "seen: hangs" in hung


def test_without_a_run_the_line_alone_counts(shardkit: Shardkit, toy: Path) -> None:
    ended = shardkit("hunt", "toy/mean", "--mutant", "summed", "--bank", toy, "--no-run", stdin="1\n")
    assert "It was not run, so the line alone counts." in ended.stdout and "0 of 3 points" in ended.stdout
    assert "First cause" not in ended.stdout
    assert ended.stdout.count("\n> ") == 1 and "What shows first" not in ended.stdout
    (review,) = kept()
    assert review.score == 0 and review.verdict == "marked"


def test_without_torch_the_line_alone_is_asked_for(tmp_path: Path, toy: Path) -> None:
    """A module finder that knows no torch, as where it is not installed; importing it would end the process."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u, sys\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'torch' else find(name, package)\n"
        "sys.modules['torch'] = None\n",
        encoding="utf-8",
    )
    ended = subprocess.run(
        [sys.executable, "-m", "kit", "hunt", "toy/mean", "--mutant", "summed", "--bank", str(toy), "--no-save"],
        input="1\n", capture_output=True, text=True, cwd=tmp_path, timeout=60,
        env=environment(PYTHONPATH=f"{tmp_path}:{ROOT}"),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "torch is not installed" in ended.stdout and "0 of 3 points" in ended.stdout
    assert "What shows first" not in ended.stdout


def test_the_file_is_written_to_be_put_right_and_never_over_another(shardkit: Shardkit, toy: Path) -> None:
    arguments = ("hunt", "toy/mean", "--mutant", "summed", "--bank", toy, "--fix")
    ended = shardkit(*arguments, "work")
    assert ended.returncode == 0 and not kept()
    assert f"shardkit watch work/mean.py --bank {toy}" in ended.stdout and "grade work/mean.py" in ended.stdout
    file = toy.parent / "work/mean.py"
    text = file.read_text("utf-8")
    assert text.startswith("# shardkit: toy/mean\n") and "return total\n" in text
    file.write_text(text.replace("return total\n", "return total / dist.get_world_size(group)\n"), encoding="utf-8")
    graded = shardkit("grade", file, "--bank", toy, "--transport", "switchboard")
    assert "passed   8 of 8 points" in graded.stdout
    again = shardkit(*arguments, "work")
    assert again.returncode == 2 and "is there already" in again.stderr and "get_world_size" in file.read_text("utf-8")


def test_leaving_keeps_nothing_and_fix_can_be_typed_at_once(start: Start, toy: Path) -> None:
    child = start("hunt", "toy/mean", "--bank", toy)
    press(child, "q")
    child.expect(pexpect.EOF)
    child = start("hunt", "toy/mean", "--bank", toy)
    press(child, "fix")
    child.expect(pexpect.EOF)
    assert "wrote mean.py" in screen(child)
    assert (toy.parent / "mean.py").is_file() and not kept()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("toy/men",), "closest: toy/mean"),
        (("toy/mean", "--mutant", "sumed"), "no mutant 'sumed'; closest: summed"),
        (("--mutant", "summed"), "--mutant names a wrong answer to one question"),
        (("toy/mean", "--topic", "toy"), "with an ID there is nothing to draw"),
        (("--topic", "tooy"), "no topic 'tooy'"),
        (("toy/mean", "--seed", "99999999999999999999999"), "is not a whole number from 0 to"),
        (("toy/mean", "--fix", ""), "--fix names no folder"),
        (("toy/mean", "--seed", "-1"), "seed -1 is not a whole number from 0 to"),
    ],
)
def test_what_makes_no_sense_is_said(shardkit: Shardkit, toy: Path, arguments: tuple[str, ...], message: str) -> None:
    ended = shardkit("hunt", *arguments, "--bank", toy)
    assert ended.returncode == 2 and message in ended.stderr and not ended.stdout


def test_a_bank_without_answers_says_so(shardkit: Shardkit, bank: Path) -> None:
    for arguments in (("sums/double",), ()):
        ended = shardkit("hunt", *arguments, "--bank", bank)
        assert ended.returncode == 2 and "has no wrong answers to" in ended.stderr
    ended = shardkit("hunt", "sums/which", "--bank", bank)
    assert ended.returncode == 2 and "only code is hunted" in ended.stderr
