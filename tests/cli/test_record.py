"""What becomes of answers while the progress file cannot be written."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.bank.draw import draw
from kit.cli.record import Recorder
from kit.errors import KitError
from kit.practice.quiz import Quiz, begin, present, reply
from kit.progress.store import Store, open_store
from tests.cli.conftest import environment
from tests.cli.terminal import Start, press, until
from tests.practice.questions import choice, multi

PLAN = ("topic/choice", "topic/multi")
QUESTIONS = {question.id: question for question in (choice(), multi())}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "progress.sqlite3") as opened:
        opened.wait_at_most(0)
        yield opened


@pytest.fixture
def other(store: Store) -> Iterator[sqlite3.Connection]:
    """Another process, which may hold the file."""
    connection = sqlite3.connect(store.path, isolation_level=None)
    yield connection
    connection.close()


class Sitting:
    """A quiz whose every step is recorded."""

    def __init__(self, store: Store) -> None:
        self.warnings: list[str | None] = []
        self.recorder = Recorder(store, "quiz", self.warnings.append)
        self.quiz = begin(PLAN)

    def step(self, line: str) -> Quiz:
        before = self.quiz
        if before.phase == "choosing":
            before = present(before, draw(QUESTIONS[before.wanted], 1))
            self.recorder(self.quiz, before)
        self.quiz = reply(before, line)
        self.recorder(before, self.quiz)
        return self.quiz


def test_what_cannot_be_written_waits_for_the_next_answer(
    store: Store, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.cli.record.RETRY_S", 0.0)
    sitting = Sitting(store)
    other.execute("BEGIN IMMEDIATE")
    sitting.step("s")
    (why,) = sitting.warnings
    assert why is not None and "database is locked" in why and len(sitting.recorder.waiting) == 1
    sitting.step("bookmark")
    sitting.step("")
    assert len(sitting.recorder.waiting) == 2 and len(sitting.warnings) == 2
    assert store.reviews() == () and store.bookmarks() == []
    other.execute("ROLLBACK")
    sitting.step("s")
    assert [one.question_id for one in store.reviews()] == list(PLAN) and store.bookmarks() == [PLAN[0]]
    assert sitting.warnings[-1] is None and sitting.recorder.waiting == []
    sitting.recorder.require_written()


def test_an_answer_that_waits_can_be_taken_back(
    store: Store, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.cli.record.RETRY_S", 0.0)
    sitting = Sitting(store)
    other.execute("BEGIN IMMEDIATE")
    sitting.step("s")
    sitting.step("u")
    sitting.step("a")
    with pytest.raises(KitError, match=r"3 answers or bookmarks could not be saved: .*locked"):
        sitting.recorder.require_written()
    other.execute("ROLLBACK")
    sitting.recorder.require_written()
    (found,) = store.reviews()
    assert found.verdict in ("right", "wrong")


def test_a_quiz_while_another_process_holds_the_file(start: Start, bank: Path) -> None:
    child = start("quiz", "--bank", bank, "--seed", "1", "--lang", "zh")
    until(child, "q 退出")
    holder = sqlite3.connect(Path(os.environ["SHARDKIT_DATA"]) / "progress.sqlite3", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    press(child, "s")
    until(child, "暂时无法保存")
    until(child, "回车：看成绩")
    holder.execute("ROLLBACK")
    holder.close()
    press(child, "")
    until(child, "跳过 1 题")
    child.wait()
    assert child.exitstatus == 0
    with open_store() as opened:
        assert len(opened.reviews()) == 1


def test_a_full_disk_is_said_and_the_quiz_goes_on(bank: Path, tmp_path: Path) -> None:
    open_store().close()
    program = (
        "import kit.practice.quiz as quiz, resource, sys\n"
        "from kit.cli import run\n"
        "whole = quiz.present\n"
        "def present(*arguments):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "    return whole(*arguments)\n"
        "quiz.present = present\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    arguments: list[Any] = [sys.executable, "-c", program, "quiz", "--bank", str(bank), "--seed", "1"]
    ended = subprocess.run(
        arguments, input="a\n", capture_output=True, encoding="utf-8", cwd=tmp_path, env=environment(), timeout=60
    )
    assert "This is not saved yet; it is kept in memory" in " ".join(ended.stdout.split())
    assert "of 1 right" in ended.stdout
    assert ended.returncode == 2 and "error: 1 answer or bookmark could not be saved:" in ended.stderr
