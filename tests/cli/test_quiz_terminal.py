"""The quiz in a real terminal, typed by pexpect: what a learner sees and may press."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from rich.cells import cell_len

from tests.cli.conftest import Shardkit, environment
from tests.cli.terminal import Start, press, screen, until


def test_a_question_is_answered_with_one_letter(start: Start, bank: Path) -> None:
    child = start("quiz", "--bank", bank, "--seed", "1")
    shown = until(child, "q quit")
    assert "Question 1 of 1" in shown and "What is 1 + 1?" in shown
    letter = re.findall(r"^  ([abc])  two$", shown, flags=re.MULTILINE)[0]
    press(child, "zz")
    until(child, "That is no answer, and does not count")
    press(child, "?")
    until(child, "Use fingers.")
    press(child, letter.upper())
    shown = until(child, "Enter: the score")
    for text in ("Right\n", f"> {letter}  two", "Right. Counting shows it.", "Explanation", "And 2 + 2?", "chapter 2"):
        assert text in shown, text
    press(child, "")
    child.expect(pexpect.EOF)
    assert "1 of 1 right, hints used: 1" in screen(child)
    child.close()
    assert child.exitstatus == 0


def test_the_same_in_chinese(start: Start, bank: Path) -> None:
    child = start("quiz", "--bank", bank, "--seed", "1", "--lang", "zh", LANG="C.UTF-8")
    shown = until(child, "q 退出")
    letter = re.findall(r"^  ([abc])  十一$", shown, flags=re.MULTILINE)[0]
    press(child, "？")
    until(child, "用手指。")
    press(child, letter)
    shown = until(child, "回车：看成绩")
    for text in ("错误", "错。那是拼数字。", "对。数一数。", "解析", "面试官可能追问"):
        assert text in shown, text
    press(child, "")
    child.expect(pexpect.EOF)
    assert "答对 0/1 题，用了 1 条提示" in screen(child)


def test_keys_between_questions(start: Start) -> None:
    child = start("quiz", "--seed", "2", "--count", "3", "--lang", "en")
    until(child, "Question 1 of 3")
    press(child, "s")
    until(child, "Skipped")
    until(child, "Enter: next question, b: bookmark, u: undo, q: quit")
    press(child, "a")
    until(child, "Enter: next question, b: bookmark, u: undo, q: quit")  # what is no command changes nothing
    press(child, "")
    until(child, "Question 2 of 3")
    press(child, "s")
    until(child, "Enter: next question")
    press(child, "q")
    child.expect(pexpect.EOF)
    assert "0 of 2 right, 2 skipped, 1 not asked" in screen(child)


def test_the_end_of_the_input_is_polite(start: Start) -> None:
    child = start("quiz", "--seed", "2")
    until(child, "> ")
    child.sendeof()
    child.expect(pexpect.EOF)
    assert "No question was answered." in screen(child)
    child.close()
    assert child.exitstatus == 0


def test_ctrl_c_ends_without_a_word(start: Start) -> None:
    child = start("quiz", "--seed", "2")
    until(child, "> ")
    child.sendintr()
    child.expect(pexpect.EOF)
    assert screen(child).strip() in ("", "^C")
    child.close()
    assert child.exitstatus == 130


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_line_is_wider_than_60_columns(start: Start, language: str) -> None:
    child = start("quiz", "--seed", "4", "--count", "3", "--lang", language)
    shown = ""
    for _ in range(3):
        press(child, "s")
        shown += screen(child)
        press(child, "")
        shown += screen(child)
    child.expect(pexpect.EOF)
    shown += screen(child)
    lines = [line for line in shown.splitlines() if "://" not in line]
    assert len(lines) > 60
    assert max(cell_len(line) for line in lines) <= 60


def test_colour_is_there_and_goes(start: Start, bank: Path) -> None:
    child = start("quiz", "--bank", bank, "--seed", "1")
    child.expect_exact("q quit")
    assert "\x1b[1m" in (child.before or "")
    press(child, "s")
    child.expect_exact("Enter")
    assert "\x1b[1;32mRight." in (child.before or "").replace("\x1b[1m\x1b[32m", "\x1b[1;32m")
    child = start("quiz", "--bank", bank, "--seed", "1", NO_COLOR="1")
    press(child, "s")
    child.expect_exact("Enter")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", child.before or "")


def test_the_c_locale_gets_ascii(start: Start) -> None:
    child = start("quiz", "--seed", "4", "--count", "2", "--lang", "en", LANG="C")
    press(child, "s")
    shown = screen(child)
    press(child, "")
    shown += screen(child)
    press(child, "q")
    child.expect(pexpect.EOF)
    assert (shown + screen(child)).isascii()


def test_a_window_that_shrinks_is_followed(start: Start) -> None:
    child = start("quiz", "--seed", "4", "--count", "2", "--lang", "en", columns=100)
    press(child, "s")
    until(child, "> ")
    child.setwinsize(40, 60)
    child.sendline("")
    shown = until(child, "q quit")
    assert max(cell_len(line) for line in shown.splitlines()) <= 60


@pytest.mark.parametrize("columns", [60, 100])
def test_the_list_fits_the_window(start: Start, columns: int) -> None:
    for language in ("en", "zh"):
        child = start("list", "--lang", language, columns=columns)
        child.expect(pexpect.EOF)
        shown = screen(child)
        assert "dp/bucketed" in shown
        assert max(cell_len(line) for line in shown.splitlines()) <= columns


def test_a_pipe_in_and_out_reads_like_a_session(shardkit: Shardkit, bank: Path) -> None:
    ended = shardkit("quiz", "--bank", bank, "--seed", "1", stdin="nonsense\n?\na\n")
    assert ended.returncode == 0 and ended.stderr == ""
    assert "> nonsense\n" in ended.stdout and "> ?\nHint 1 of 2" in ended.stdout and "> a\n" in ended.stdout
    assert ended.stdout.endswith("The same questions again: --seed 1\n")
    assert "\x1b" not in ended.stdout


def test_a_quiz_that_is_also_written_to_a_file_waits_all_the_same(start: Start, bank: Path, tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m kit quiz --bank '{bank}' --seed 1 | tee log.txt"
    child = pexpect.spawn(
        "/bin/sh",
        ["-c", command],
        cwd=str(tmp_path),
        env=environment(),
        encoding="utf-8",
        dimensions=(40, 60),
        timeout=30,
    )
    press(child, "s")
    until(child, "Enter: the score")
    press(child, "")
    child.expect(pexpect.EOF)
    child.close()
    assert "0 of 1 right, 1 skipped" in (tmp_path / "log.txt").read_text("utf-8")


def test_bytes_that_are_no_text_are_no_answer(shardkit: Shardkit, bank: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "kit", "quiz", "--bank", str(bank), "--seed", "1"],
        input=b"\xff\xfe\x00\n\x1b[A\ns\n",
        capture_output=True,
        env=environment(),
        cwd=tmp_path,
        timeout=60,
    )
    assert ended.returncode == 0 and ended.stderr == b""
    assert ended.stdout.count(b"does not count") == 2
    assert b"\x1b" not in ended.stdout


def test_the_same_seed_asks_the_same(shardkit: Shardkit) -> None:
    first = shardkit("quiz", "--seed", "9", "--count", "4", stdin="s\ns\ns\ns\n").stdout
    assert first == shardkit("quiz", "--seed", "9", "--count", "4", stdin="s\ns\ns\ns\n").stdout
    assert first != shardkit("quiz", "--seed", "10", "--count", "4", stdin="s\ns\ns\ns\n").stdout
    assert first.count("Question") == 4
