"""`progress`, `export` and `import` as a user runs them."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from kit.progress.store import open_store
from tests.cli.conftest import Shardkit, environment
from tests.progress.made import review


@pytest.fixture
def filled() -> datetime:
    """Two answers of yesterday and a bookmark in the test's own folder; returns the time of the first."""
    yesterday = datetime.now(timezone.utc) - timedelta(days=1)
    with open_store() as store:
        store.add_review(review(0, "sums/which", asked_at=yesterday, verdict="wrong", score=0.0, rating="again"))
        store.add_review(review(1, "sums/double", asked_at=yesterday, mode="grade", confidence=0.8))
        store.bookmark("sums/double", True)
    return yesterday


def test_progress_before_the_first_answer(shardkit: Shardkit, bank: Path) -> None:
    ended = shardkit("progress", "--bank", bank)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "No question was answered yet. Begin with: shardkit quiz\n"


def test_progress_of_all_of_a_topic_and_of_a_question(shardkit: Shardkit, bank: Path, filled: datetime) -> None:
    text = shardkit("progress", "--bank", bank).stdout
    assert "Answers        2, to 2 of 2 questions" in text and "Due            1 today, 1 more" in text
    assert "What is due: shardkit quiz --due\n" in text
    assert "shardkit quiz --topic sums --due\n" in shardkit("progress", "--bank", bank, "--topic", "sums").stdout
    text = shardkit("progress", "sums/which", "--bank", bank, "--lang", "zh").stdout
    assert "哪个和" in text and "错误" in text and "已收藏" not in text
    assert "已收藏" in shardkit("progress", "sums/double", "--bank", bank, "--lang", "zh").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sums/whihc"], "closest: sums/which"),
        (["--topic", "summs"], "closest: sums"),
        (["--topic", ","], "',' names no topic"),
        (["--topic", ""], "'' names no topic"),
        (["sums"], "'sums' is a topic, and no question\nhint: shardkit progress --topic sums"),
        (["sums/which", "--topic", "sums"], "either a question or topics"),
        (["--lang", "fr"], "no language 'fr'"),
    ],
    ids=str,
)
def test_what_progress_cannot_show_is_the_user_s_mistake(
    shardkit: Shardkit, bank: Path, arguments: list[str], says: str
) -> None:
    ended = shardkit("progress", *arguments, "--bank", bank)
    assert ended.returncode == 2 and says in ended.stderr and ended.stdout == ""


def test_progress_as_json(shardkit: Shardkit, bank: Path, filled: datetime, tmp_path: Path) -> None:
    found = json.loads(shardkit("progress", "--bank", bank, "--json", "-").stdout)
    assert found["schema"] == 1 and (found["num_answers"], found["num_answered"]) == (2, 2)
    assert found["due"] == ["sums/which"] and found["soon"] == ["sums/double"] and found["bookmarks"] == ["sums/double"]
    assert found["topics"] == [{"topic": "sums", "answered": 2, "num_questions": 2, "score": 0.5}]
    assert sum(day["answers"] for day in found["days"]) == 2 and len(found["days"]) == 14
    assert found["calibration"]["count"] == 1 and found["calibration"]["bins"][0]["low"] == 0.8
    ended = shardkit("progress", "sums/which", "--bank", bank, "--json", "one.json")
    assert "Which sum" in ended.stdout  # a file leaves the screen to the reader
    one = json.loads((tmp_path / "one.json").read_text("utf-8"))
    assert (one["question"], one["is_bookmarked"], one["card"]["num_reviews"]) == ("sums/which", False, 1)
    assert one["reviews"][0]["asked_at"].startswith(filled.strftime("%Y-%m-%dT%H:%M"))


def test_export_and_import_carry_everything_to_another_machine(
    shardkit: Shardkit, filled: datetime, tmp_path: Path
) -> None:
    written = shardkit("export").stdout
    assert shardkit("export", "kept.json").stdout == ""
    assert (tmp_path / "kept.json").read_text("utf-8") == written
    other = str(tmp_path / "other")
    ended = shardkit("import", "kept.json", SHARDKIT_DATA=other)
    assert ended.returncode == 0 and "Answers: 2 new, 0 known already." in ended.stdout
    assert shardkit("export", SHARDKIT_DATA=other).stdout == written
    ended = shardkit("import", "-", "--lang", "zh", stdin=written, SHARDKIT_DATA=other)
    assert "新增 0 条，已有 2 条" in ended.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "bad.json is no JSON"),
        ('{"schema": NaN}', "NaN is no number of JSON"),
        ("[" * 100_000, "bad.json is nested too deeply"),
        ("{}", "no export of shardkit's progress"),
        ('{"schema": 99}', "this export has schema 99"),
        ('{"schema": 1, "schema": 1}', "bad.json: the key 'schema' is there 2 times"),
        ('{"schema": 1, "reviews": [{"id": "a", "score": 0, "score": 1}]}', "the key 'score' of 'a' is there 2 times"),
        ('{"schema": 1, "interviews": [{"plan": {"minutes": 1e999}}]}', "1e999 is too large a number"),
    ],
    ids=["half", "nan", "deep", "other", "newer", "twice", "twice inside", "huge"],
)
def test_what_is_no_export_is_refused(shardkit: Shardkit, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")
    ended = shardkit("import", "bad.json")
    assert ended.returncode == 2 and says in ended.stderr
    assert shardkit("import", "none.json").returncode == 2


def test_a_damaged_file_is_named_and_kept(shardkit: Shardkit, bank: Path, filled: datetime) -> None:
    path = Path(os.environ["SHARDKIT_DATA"]) / "progress.sqlite3"
    path.write_bytes(b"nothing like a database" * 500)
    ended = shardkit("progress", "--bank", bank)
    assert ended.returncode == 0 and "No question was answered yet" in ended.stdout
    assert "the progress file was damaged; it is now" in ended.stderr
    (kept,) = path.parent.glob("progress.sqlite3.damaged-*")
    assert kept.read_bytes() == b"nothing like a database" * 500 and str(kept) in ended.stderr
    assert shardkit("progress", "--bank", bank).stderr == ""


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE reviews SET verdict = 'splendid' WHERE id = 'review-0000'",
        "UPDATE reviews SET topic = CAST(x'ff' AS TEXT) WHERE id = 'review-0000'",
        "UPDATE reviews SET asked_at = 'yesterday' WHERE id = 'review-0000'",
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [("progress", "--bank", "{bank}"), ("progress", "sums/which", "--bank", "{bank}"), ("export",),
     ("quiz", "--due", "--bank", "{bank}"), ("quiz", "--new", "1", "--no-save", "--bank", "{bank}")],
    ids=lambda arguments: " ".join(arguments[:2]),
)  # fmt: skip
def test_a_row_that_cannot_be_read_is_said_and_the_others_are_kept(
    shardkit: Shardkit, bank: Path, filled: datetime, arguments: tuple[str, ...], change: str
) -> None:
    path = Path(os.environ["SHARDKIT_DATA"]) / "progress.sqlite3"
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(change).rowcount == 1
    connection.close()
    ended = shardkit(*(word.format(bank=bank) for word in arguments))
    assert ended.returncode == 0, ended.stderr
    assert "note: the progress file was damaged; it is now" in ended.stderr
    assert "1 of its 2 answers, which could be read, are in a new one" in ended.stderr
    ended = shardkit("progress", "--bank", bank, "--lang", "zh")
    assert ended.returncode == 0 and ended.stderr == "" and "共 1 次" in ended.stdout


def test_the_note_on_damage_is_chinese_in_chinese(shardkit: Shardkit, bank: Path, filled: datetime) -> None:
    path = Path(os.environ["SHARDKIT_DATA"]) / "progress.sqlite3"
    path.write_bytes(b"nothing like a database" * 500)
    assert shardkit("progress", "--bank", bank, "--lang", "zh").stderr.startswith("注意：进度文件已损坏")


def test_progress_on_a_full_disk_is_read(shardkit: Shardkit, bank: Path, filled: datetime, tmp_path: Path) -> None:
    """Files may not grow by a byte; what goes to a pipe may."""
    for arguments in (("progress", "--bank", bank), ("export",), ("quiz", "--due", "--no-save", "--bank", bank)):
        ended = subprocess.run(
            [sys.executable, "-m", "kit", *map(str, arguments)],
            capture_output=True,
            encoding="utf-8",
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
            timeout=60,
        )
        assert ended.returncode == 0, ended.stderr
        assert "sums/which" in ended.stdout or "sums  " in ended.stdout
