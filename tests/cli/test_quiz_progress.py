"""What a quiz keeps, and what it asks because of what was kept."""

from __future__ import annotations

import os
import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from kit.progress.records import Review
from kit.progress.store import open_store
from tests.cli.conftest import CHOICE, Shardkit
from tests.cli.terminal import Start, press, screen, until
from tests.progress.made import review

NOW = datetime.now(timezone.utc)


@pytest.fixture
def chain(bank: Path) -> Path:
    """The bank with three more questions: last requires middle, middle requires the code question, that one requires
    first; levels say the opposite."""
    topic = bank / "questions" / "sums"
    for name, requires, level in (("first", "[]", 4), ("middle", "[sums/double]", 2), ("last", "[sums/middle]", 1)):
        text = CHOICE.replace("level: 1", f"level: {level}\nrequires: {requires}")
        (topic / f"{name}.yaml").write_text(text, encoding="utf-8")
    code = (topic / "double.yaml").read_text("utf-8").replace("level: 2", "level: 3\nrequires: [sums/first]")
    (topic / "double.yaml").write_text(code, encoding="utf-8")
    (topic / "which.yaml").unlink()
    return bank


def kept() -> tuple[Review, ...]:
    with open_store() as store:
        return store.reviews()


def asked(shown: str) -> list[str]:
    return [line.split(",")[0] for line in shown.splitlines() if line.startswith("sums/") and ", choice, level" in line]


def test_an_answer_is_kept_as_it_was(shardkit: Shardkit, bank: Path) -> None:
    before = datetime.now(timezone.utc)
    ended = shardkit("quiz", "--bank", bank, "--seed", "1", "--confidence", stdin="?\na\n70\n")
    (found,) = kept()
    assert before <= found.asked_at <= datetime.now(timezone.utc)
    assert (found.question_id, found.kind, found.topic, found.level) == ("sums/which", "choice", "sums", 1)
    assert (found.num_hints, found.confidence, found.seed, found.mode) == (1, 0.7, 1, "quiz")
    is_right = "\nRight\n" in ended.stdout
    assert (found.verdict, found.score) == (("right", 1.0) if is_right else ("wrong", 0.0))
    assert found.rating == ("hard" if is_right else "again")
    assert 0 <= found.seconds < 120


def test_a_quiz_that_is_killed_has_lost_no_answer(start: Start, chain: Path) -> None:
    child = start("quiz", "--bank", chain, "--seed", "1")
    press(child, "a")
    until(child, "Enter: next question")
    press(child, "")
    press(child, "s")
    until(child, "Skipped")
    child.kill(signal.SIGKILL)
    child.wait()
    first, second = kept()
    assert first.verdict in ("right", "wrong") and second.verdict == "skipped" and second.rating is None
    assert first.question_id != second.question_id


def test_undo_takes_the_review_back(start: Start, bank: Path) -> None:
    child = start("quiz", "--bank", bank, "--seed", "1")
    press(child, "b")
    until(child, "u: undo")
    (wrong,) = kept()
    press(child, "u")
    until(child, "Question 1 of 1")
    assert kept() == ()
    press(child, "a")
    until(child, "u: undo")
    (again,) = kept()
    assert again.id != wrong.id and again.question_id == wrong.question_id
    press(child, "b")
    until(child, "Bookmarked.")
    press(child, "")
    until(child, "of 1 right")
    with open_store() as store:
        assert store.bookmarks() == ["sums/which"]


def test_no_save_keeps_nothing(shardkit: Shardkit, bank: Path) -> None:
    ended = shardkit("quiz", "--bank", bank, "--seed", "1", "--no-save", stdin="bookmark\na\n")
    assert ended.returncode == 0 and "With --no-save no bookmark is kept." in ended.stdout
    assert not Path(os.environ["SHARDKIT_DATA"]).exists()


def test_new_questions_come_in_the_order_in_which_to_study_them(shardkit: Shardkit, chain: Path) -> None:
    for seed in ("1", "2", "3"):
        ended = shardkit("quiz", "--bank", chain, "--new", "2", "--seed", seed, "--no-save", stdin="s\ns\ns\n")
        assert asked(ended.stdout) == ["sums/first", "sums/middle"], seed
    shardkit("quiz", "--bank", chain, "--new", "1", stdin="a\n")
    shardkit("quiz", "--bank", chain, "--new", "1", stdin="s\n")  # what was skipped stays new
    assert asked(shardkit("quiz", "--bank", chain, "--new", "9", stdin="a\na\n").stdout) == ["sums/middle", "sums/last"]
    ended = shardkit("quiz", "--bank", chain, "--new", "9")
    assert (ended.returncode, ended.stdout) == (0, "All of these were answered before.\n")


def test_due_questions_come_the_longest_overdue_first(shardkit: Shardkit, chain: Path) -> None:
    with open_store() as store:
        for number, (name, days) in enumerate({"last": 4, "first": 40, "middle": 0, "gone": 50}.items()):
            store.add_review(review(number, f"sums/{name}", asked_at=NOW - timedelta(days=days)))
    ended = shardkit("quiz", "--bank", chain, "--due", stdin="a\na\n")
    assert asked(ended.stdout) == ["sums/first", "sums/last"] and "--seed" not in ended.stdout
    ended = shardkit("quiz", "--bank", chain, "--due", "--lang", "zh")
    assert (ended.returncode, ended.stdout) == (0, "今天没有到期的题目。学习新题：--new 5\n")


def test_due_and_new_together_are_due_first_and_count_holds_for_both(shardkit: Shardkit, chain: Path) -> None:
    with open_store() as store:
        store.add_review(review(0, "sums/last", asked_at=NOW - timedelta(days=9)))
    options = ("--bank", chain, "--due", "--new", "5", "--no-save")
    assert asked(shardkit("quiz", *options, stdin="s\n" * 9).stdout) == ["sums/last", "sums/first", "sums/middle"]
    assert asked(shardkit("quiz", *options, "--count", "2", stdin="s\n" * 9).stdout) == ["sums/last", "sums/first"]
    assert asked(shardkit("quiz", *options, "--level", "2", stdin="s\n" * 9).stdout) == ["sums/middle"]


def test_cramming_asks_what_is_not_due_and_moves_no_date(shardkit: Shardkit, bank: Path) -> None:
    shardkit("quiz", "--bank", bank, "--seed", "1", stdin="a\n")
    with open_store() as store:
        before = store.cards()
    ended = shardkit("quiz", "--bank", bank, "--cram", stdin="b\n")
    assert "Question 1 of 1" in ended.stdout
    with open_store() as store:
        assert store.cards() == before and [one.mode for one in store.reviews()] == ["quiz", "cram"]
    for option in (["--due"], ["--new", "3"]):
        ended = shardkit("quiz", "--bank", bank, "--cram", *option)
        assert ended.returncode == 2 and option[0] in ended.stderr


def test_only_what_is_bookmarked(shardkit: Shardkit, chain: Path) -> None:
    ended = shardkit("quiz", "--bank", chain, "--bookmarked")
    assert (ended.returncode, ended.stdout) == (0, "None of these is bookmarked.\n")
    with open_store() as store:
        store.bookmark("sums/middle", True)
    ended = shardkit("quiz", "--bank", chain, "--bookmarked", stdin="bookmark\ns\n")
    assert asked(ended.stdout) == ["sums/middle"] and "No longer bookmarked." in ended.stdout
    with open_store() as store:
        assert store.bookmarks() == []


def test_an_answer_in_words_without_its_points_is_not_kept(shardkit: Shardkit) -> None:
    ended = shardkit("quiz", "--kind", "open", "--count", "1", stdin="my answer\n\n")
    assert ended.returncode == 0 and "Not marked" in ended.stdout
    assert kept() == ()
    shardkit("quiz", "--kind", "open", "--count", "1", stdin="my answer\n\n" + "y\n" * 20)
    (found,) = kept()
    assert (found.verdict, found.score, found.rating) == ("marked", 1.0, "good")


def test_a_folder_that_cannot_be_written_says_how_to_go_on(shardkit: Shardkit, bank: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    ended = shardkit("quiz", "--bank", bank, SHARDKIT_DATA=str(tmp_path / "file" / "x"))
    assert ended.returncode == 2 and ended.stdout == ""
    assert str(tmp_path / "file") in ended.stderr and "--no-save" in ended.stderr


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_new_lines_fit_60_columns(start: Start, bank: Path, language: str) -> None:
    from rich.cells import cell_len

    child = start("quiz", "--bank", bank, "--seed", "1", "--confidence", "--lang", language)
    shown = ""
    for line in ("u", "bookmark", "a", "x", "50", "b", ""):
        press(child, line)
        shown += screen(child)
    until(child, "--seed 1")
    shown += screen(child)
    assert max(cell_len(line) for line in shown.splitlines()) <= 60
