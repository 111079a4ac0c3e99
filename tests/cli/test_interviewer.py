"""An interviewer at a real terminal: sees everything, scores, grades, leaves, is killed, and keeps a scorecard."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from rich.cells import cell_len

from tests.cli.conftest import ROOT, Shardkit, environment
from tests.cli.terminal import Start, press, screen, until

PLAN = """\
seed: 4711
parts:
  - {name: design, minutes: 20, questions: [{id: layout/design, seed: 3}, {id: links/ring, seed: 3}]}
  - {name: coding, minutes: 20, questions: [{id: toy/mean, seed: 3}]}
"""

RIGHT = """\
# shardkit: toy/mean
import torch.distributed as dist


def mean_over_ranks(tensor, group=None):
    result = tensor.clone()
    dist.all_reduce(result, group=group)
    return result / dist.get_world_size(group)
"""


@pytest.fixture
def interviews(tmp_path: Path) -> tuple[str | Path, ...]:
    """The command's words: a bank with a code question whose checks run, and a plan of it."""
    bank = tmp_path / "bank"
    shutil.copytree(ROOT / "tests/interview/bank", bank)
    for part in ("questions", "reference"):
        shutil.copytree(ROOT / "tests/grading/bank" / part / "toy", bank / part / "toy")
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN, encoding="utf-8")
    return "interview", "--role", "interviewer", "--bank", bank, "--plan", plan


@pytest.fixture
def resumed(interviews: tuple[str | Path, ...]) -> tuple[str | Path, ...]:
    return (*interviews[:5], "--resume")


def test_everything_is_shown_scored_and_kept(start: Start, interviews: tuple[str | Path, ...], tmp_path: Path) -> None:
    child = start(*interviews, "--name", "Ada <b>", "--lang", "en", NO_COLOR="1")
    shown = until(child, "? all keys")
    for text in (
        "Design, question 1 of 3",
        "0:00 of 20 min",
        "A 13B model does not fit",
        "16 x 13e9 bytes are 208 GB",
        "  2. [- of 2] Shards it.",
        "  1. What if the link is slow?",
        "     Shard inside the node.",
        "  [ ] 2. Misses, even when asked: Shards it.",
    ):
        assert text in shown, text
    press(child, "2 1.5")
    assert "  2. [1.5 of 2] Shards it.\nscored, 19%; saved" in until(child, "saved") + "saved"
    until(child, "Points that are not scored yet count nothing: 3")
    press(child, "f 1 y")
    until(child, "  1. [100%] What if the link is slow?")
    press(child, "x 2")
    until(child, "  [x] 2. Misses, even when asked: Shards it.")
    press(child, "t <script>slow</script> start")
    until(child, "saved")
    press(child, "")
    until(child, "question 2 of 3")
    press(child, "a b")
    until(child, "right, 100%; saved")
    press(child, "p")
    shown = until(child, "? all keys")
    assert "question 1 of 3" in shown and "[1.5 of 2]" in shown and "<script>slow</script> start" in shown
    press(child, "end card.pdf")
    until(child, "a scorecard is a .md or .html file")
    press(child, "end card.html")
    until(child, "Questions without an answer: 1 of 3. `end` again ends it")
    press(child, "end card.html")
    child.expect(pexpect.EOF)
    assert "59% over 2 of 3 questions" in screen(child) and "Scorecard: card.html" in screen(child)
    card = (tmp_path / "card.html").read_text("utf-8")
    assert "Ada &lt;b&gt;" in card and "&lt;script&gt;slow&lt;/script&gt; start" in card and "<script" not in card
    child.close()
    assert child.exitstatus == 0


def test_the_same_in_chinese(start: Start, interviews: tuple[str | Path, ...], tmp_path: Path) -> None:
    child = start(*interviews, "--lang", "zh", "--scorecard", "card.md", LANG="C.UTF-8", NO_COLOR="1")
    shown = until(child, "? 全部按键")
    for text in (
        "设计，第 1/3 题",
        "答案",
        "  2. [-/2] 切分状态。",
        "追问后仍未提到：切分状态。",
    ):
        assert text in shown, text
    press(child, "１　是")
    until(child, "  1. [3/3] 算出状态")
    until(child, "已评分，38%；已保存")
    press(child, "？")
    assert "暂停计时" in until(child, "用 --resume 继续")
    press(child, "t 开头慢")
    until(child, "已保存")
    press(child, "end")
    until(child, "还有 2/3 题没有作答")
    press(child, "end")
    child.expect(pexpect.EOF)
    assert "评分表：card.md" in screen(child)
    card = (tmp_path / "card.md").read_text("utf-8")
    assert card.startswith("# 面试评分表\n") and "> 开头慢" in card and "**3/3**：算出状态" in card


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_line_is_wider_than_60_columns(start: Start, interviews: tuple[str | Path, ...], language: str) -> None:
    child = start(*interviews[:3], "--minutes", "60", "--seed", "5", "--lang", language)
    shown = ""
    for line in ("?", "l", "1 9", "x 99", "z", "", "", "", "", "what"):
        press(child, line)
        shown += screen(child)
    press(child, "q")
    child.expect(pexpect.EOF)
    lines = [line for line in (shown + screen(child)).splitlines() if "shardkit interview" not in line]
    assert len(lines) > 100
    assert max(cell_len(line) for line in lines) <= 60


def test_one_that_is_killed_goes_on_where_it_was(
    start: Start, interviews: tuple[str | Path, ...], resumed: tuple[str | Path, ...]
) -> None:
    child = start(*interviews, "--name", "Ada", "--lang", "en")
    press(child, "n")
    press(child, "a b")
    press(child, "t quick")
    until(child, "saved")
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    child = start(*resumed, "--lang", "en")
    shown = until(child, "? all keys")
    assert "question 2 of 3" in shown and "[2 of 2]" in shown and "quick" in shown
    press(child, "end card.md")
    press(child, "end card.md")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    child = start(*resumed, "--lang", "en")
    child.expect(pexpect.EOF)
    assert "no interview was left" in screen(child)


def test_one_that_is_left_says_how_it_goes_on(
    shardkit: Shardkit, interviews: tuple[str | Path, ...], resumed: tuple[str | Path, ...]
) -> None:
    ended = shardkit(*interviews, "--lang", "en", stdin="1 y\n")
    assert ended.returncode == 0 and "shardkit interview --resume --role interviewer" in ended.stdout
    ended = shardkit(*resumed, "--lang", "en", stdin="u\nq\n")
    assert "[3 of 3]" in ended.stdout and "nothing to take back" in ended.stdout


def test_a_candidate_s_file_is_graded_inside(
    shardkit: Shardkit, interviews: tuple[str | Path, ...], tmp_path: Path
) -> None:
    (tmp_path / "mean.py").write_text(RIGHT, encoding="utf-8")
    ended = shardkit(
        *interviews, "--lang", "en", stdin="c mean.py\ng 3\nc gone.py\nc mean.py\nf 1\nend card.md\nend card.md\n"
    )
    assert ended.returncode == 0, ended.stderr
    assert "Only a code question has a file to grade" in ended.stdout
    assert "gone.py" in ended.stdout and "scored, 100%; saved" in ended.stdout
    card = (tmp_path / "card.md").read_text("utf-8")
    assert "passed, 8 of 8 points, seed" in card and "✓ **4 of 4**" in card and str(tmp_path) not in card


def test_torch_is_not_imported_before_a_file_is_graded(
    shardkit: Shardkit, interviews: tuple[str | Path, ...], tmp_path: Path
) -> None:
    hidden = tmp_path / "hidden"
    (hidden / "torch").mkdir(parents=True)
    (hidden / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')\n", encoding="utf-8")
    ended = shardkit(
        *interviews, "--lang", "en", stdin="1 y\nend card.md\nend card.md\n", PYTHONPATH=f"{hidden}:{ROOT}"
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_scorecard_that_cannot_be_written_is_said_before_the_interview(
    shardkit: Shardkit, interviews: tuple[str | Path, ...]
) -> None:
    for path in ("nowhere/card.md", "/proc/card.md"):
        for role in ("interviewer", "candidate"):
            ended = shardkit(*interviews, "--role", role, "--scorecard", path)
            assert ended.returncode == 2 and f"{path} cannot be written: " in ended.stderr and ended.stdout == ""


def test_a_folder_that_takes_no_scorecard_is_said_before_the_interview(interviews: tuple[str | Path, ...]) -> None:
    for role in ("interviewer", "candidate"):
        ended = subprocess.run(
            [sys.executable, "-m", "kit", *map(str, interviews), "--role", role],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            cwd="/dev/fd",
            env=environment(),
        )
        assert ended.returncode == 2 and ended.stdout == "", ended.stdout
        assert "scorecard-" in ended.stderr and "cannot be written" in ended.stderr
        assert "hint: --scorecard FILE names another place" in ended.stderr


def test_every_line_is_in_the_file_of_progress(
    shardkit: Shardkit, interviews: tuple[str | Path, ...], tmp_path: Path
) -> None:
    shardkit(*interviews, "--lang", "en", stdin="t \u4e2d <x>\n", SHARDKIT_DATA=str(tmp_path / "data"))
    (file,) = (tmp_path / "data").glob("*.sqlite3")
    with sqlite3.connect(file) as connection:
        ((state,),) = connection.execute("SELECT state FROM interviews")
    kept = json.loads(state)
    assert kept["role"] == "interviewer" and kept["record"]["parts"][0]["items"][0]["notes"] == "\u4e2d <x>"
    connection.close()


def test_notes_and_answers_may_be_written_in_an_editor(
    shardkit: Shardkit, interviews: tuple[str | Path, ...], tmp_path: Path
) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys\n"
        "with open(sys.argv[1], 'r+', encoding='utf-8') as file:\n"
        "    text = file.read()\n"
        "    file.seek(0)\n"
        "    file.write(text.upper() + '\\nand more')\n",
        encoding="utf-8",
    )
    lines = "t one\nt\na two\na\nend card.md\nend card.md\n"
    ended = shardkit(*interviews, "--lang", "en", stdin=lines, EDITOR=f"{sys.executable} {editor}", VISUAL="")
    assert ended.returncode == 0, ended.stderr
    card = (tmp_path / "card.md").read_text("utf-8")
    assert "> ONE\n>\n> and more\n" in card and "```text\nTWO\nand more\n```" in card


def test_without_an_editor_the_interview_goes_on(
    shardkit: Shardkit, interviews: tuple[str | Path, ...], tmp_path: Path
) -> None:
    ended = shardkit(
        *interviews, "--lang", "en", stdin="t one\nt\nt two\nend card.md\nend card.md\n", EDITOR="", VISUAL=""
    )
    assert ended.returncode == 0 and "neither VISUAL nor EDITOR names an editor" in ended.stdout
    assert "> one\n>\n> two\n" in (tmp_path / "card.md").read_text("utf-8")


def test_no_scorecard_takes_the_place_of_another(
    shardkit: Shardkit, interviews: tuple[str | Path, ...], tmp_path: Path
) -> None:
    (tmp_path / "card.md").write_text("of another", encoding="utf-8")
    ended = shardkit(*interviews, "--lang", "en", stdin="end card.md\nend other.md\nend other.md\n")
    assert "card.md is there already" in ended.stdout and (tmp_path / "other.md").is_file()
    assert (tmp_path / "card.md").read_text("utf-8") == "of another"
    ended = shardkit(*interviews, "--scorecard", "card.md")
    assert ended.returncode == 2 and "card.md is there already" in ended.stderr


def test_a_question_that_cannot_be_read_is_said_before_the_first_one(
    shardkit: Shardkit, interviews: tuple[str | Path, ...], tmp_path: Path
) -> None:
    file = tmp_path / "bank" / "questions" / "links" / "ring.yaml"
    file.write_text(file.read_text("utf-8").replace("explanation:", "explanations:"), encoding="utf-8")
    ended = shardkit(*interviews, "--lang", "en", stdin="q\n")
    assert ended.returncode == 2 and "explanations" in ended.stderr and ended.stdout == ""
