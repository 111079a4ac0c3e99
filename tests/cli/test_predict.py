"""`predict` in a real terminal and in a pipe: nothing measured is shown before the guesses, and all of it after."""

from __future__ import annotations

from pathlib import Path

import pexpect
import pytest
from rich.cells import cell_len

from kit.progress.records import Review
from kit.progress.store import open_store
from tests.cli.conftest import ROOT, Shardkit
from tests.cli.terminal import Start, press, until

TOY = ROOT / "tests" / "grading" / "bank"
RIGHT = TOY / "reference/toy/mean.py"


def kept() -> tuple[Review, ...]:
    with open_store() as store:
        return store.reviews()


def fits(shown: str, columns: int = 60) -> bool:
    return max(cell_len(line.rstrip()) for line in shown.splitlines() if "shardkit " not in line) <= columns


def test_a_pipeline_is_foretold(start: Start) -> None:
    child = start("predict", "pp/gpipe", "--reference", "--seed", "1")
    shown = until(child, "How many bytes does rank 0 send?")
    assert "from the mark 'batch 0' to its end" in shown and "def run_each(" in shown and fits(shown)
    assert "5 x F, 1 s each" in shown and "37.5" not in shown and "makespan" not in shown
    press(child, "720")
    until(child, "720 of what?")
    press(child, "720 B")
    until(child, "How large is the bubble")
    press(child, "3/7")
    until(child, "By how much does rank 0 grow at most")
    press(child, "s")
    shown = until(child, "the same again: shardkit predict pp/gpipe --reference --seed 1")
    assert "you: 720 B; measured: 720 B" in shown
    assert "1/2" in shown and "measured: 37.5%; yours is 1.14 x that" in shown.replace("\n                     ", " ")
    assert "3 of 6 points" in shown and "makespan 24 s, bubble 37.5%" in shown and fits(shown)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    (review,) = kept()
    assert (review.question_id, review.mode, review.verdict, review.rating) == ("pp/gpipe", "predict", "marked", None)
    assert (review.score, review.seed) == (0.5, 1)


def test_the_same_in_chinese(start: Start) -> None:
    child = start("predict", "toy/mean", RIGHT, "--bank", TOY, "--lang", "zh", LANG="C.UTF-8")
    shown = until(child, "rank 0 发送多少字节？")
    assert "整个运行" in shown and "rank 0 的输入" in shown and fits(shown)
    press(child, "很多")
    until(child, "这不是有效的答案，不计分：'很多' 不是数；请带单位")
    press(child, "160 B")
    shown = until(child, "再来一次：")
    assert "猜测与实测" in shown and "你猜 160 B；实测 160 B" in shown and "2/2 分" in shown and fits(shown)
    child.expect(pexpect.EOF)


def test_piped_without_colour_and_unicode(shardkit: Shardkit) -> None:
    ended = shardkit(
        "predict", "toy/mean", "--reference", "--bank", TOY, "--world-size", "2", "--no-save",
        stdin="1 KB\n", COLUMNS="60", LANG="C", LC_ALL="C", PYTHONIOENCODING="ascii",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "\x1b" not in ended.stdout and ended.stdout.isascii() and fits(ended.stdout)
    assert "> 1 KB\n" in ended.stdout and "0 of 2 points" in ended.stdout and "world_size=2" in ended.stdout
    # 2 (n - 1) / n of 15 float64
    assert "measured: 120 B" in ended.stdout and not kept()


def test_without_any_guess_no_figure_is_shown(shardkit: Shardkit) -> None:
    ended = shardkit("predict", "toy/mean", "--reference", "--bank", TOY, stdin="")
    assert ended.returncode == 0 and "measured" not in ended.stdout.partition("?")[2] and not kept()


def test_a_launch_that_fails_is_diagnosed(shardkit: Shardkit, tmp_path: Path) -> None:
    file = tmp_path / "mean.py"
    file.write_text(RIGHT.read_text("utf-8").replace("total = tensor.clone()", "total = tensor.cone()"), "utf-8")
    ended = shardkit("predict", "toy/mean", file, "--bank", TOY, stdin="1 KB\n")
    assert ended.returncode == 1 and "crashed" in ended.stdout and "cone" in ended.stdout and not kept()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("toy/mean",), "which file answers toy/mean?"),
        (("toy/mean", "--reference", "--mark", "step 1"), "rank 0 has no mark 'step 1'; its marks: none"),
        (("toy/mean", "--reference", "--scenario", "nothing"), "no scenario 'nothing'"),
        (("toy/men", "--reference"), "closest: toy/mean"),
    ],
)
def test_what_makes_no_sense_is_said(shardkit: Shardkit, arguments: tuple[str, ...], message: str) -> None:
    ended = shardkit("predict", *arguments, "--bank", TOY)
    assert ended.returncode == 2 and message in ended.stderr and not ended.stdout


def test_a_question_that_is_no_code_has_no_reference_and_is_said_to_be_none(shardkit: Shardkit) -> None:
    ended = shardkit("predict", "pp/gpipe_idle", "--reference")
    assert ended.returncode == 2 and "pp/gpipe_idle is a number question" in ended.stderr
    assert "given out without answers" not in ended.stderr
