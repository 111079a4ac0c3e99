"""The progress file under kill -9, under two processes, and after damage."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.errors import KitError
from kit.progress import opening
from kit.progress.opening import connected
from kit.progress.schedule import card_after
from kit.progress.schema import MIGRATIONS, migrate, version_of
from kit.progress.store import Store, open_store
from tests.progress.made import START, ended, forked, review, start_forked

VERSIONS = sorted((Path(__file__).parent / "versions").glob("*.sql"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "progress.sqlite3"


def ids(store: Store) -> list[str]:
    return [one.id for one in store.reviews()]


# --- kill -9 ------------------------------------------------------------------------------------------------


def dying_after(num_instructions: int) -> Callable[..., sqlite3.Connection]:
    """A `sqlite3.connect` whose process is killed after so many instructions of SQLite's machine."""
    connect, left = sqlite3.connect, [num_instructions]

    def count() -> int:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    def patched(*arguments: object, **options: object) -> sqlite3.Connection:
        connection = connect(*arguments, **options)  # type: ignore[arg-type]
        connection.set_progress_handler(count, 1)
        return connection

    return patched


def write_everything(path: Path, say: Callable[[str], None]) -> None:
    """Opens the file, new or not, and says each review once it is in it."""
    with open_store(path) as store:
        say("opened")
        for number in range(4):
            store.add_review(review(number))
            say(f"review-{number:04}")
            store.cards()
        store.undo_review("review-0001")
        say("undone")


@pytest.mark.parametrize("is_new", [True, False], ids=["new file", "old file"])
def test_a_process_killed_at_any_instruction_leaves_what_it_acknowledged(path: Path, is_new: bool) -> None:
    num_killed = num_between = 0
    for instructions in range(0, 6000, 23):
        for file in path.parent.glob("*"):
            file.unlink()
        if not is_new:
            open_store(path).close()

        def run(say: Callable[[str], None], instructions: int = instructions) -> None:
            sqlite3.connect = dying_after(instructions)  # type: ignore[assignment]
            write_everything(path, say)

        status, said = forked(run)
        with open_store(path) as store:
            assert store.set_aside is None
            acknowledged = [line for line in said if line.startswith("review")]
            written = [f"review-{number:04}" for number in range(4)]
            found, without = ids(store), [one for one in written if one != "review-0001"]
            if found == without:
                assert acknowledged == written  # taken back in the end, said or not
            else:
                assert "undone" not in said
                assert found == written[: len(found)] and 0 <= len(found) - len(acknowledged) <= 1
            card = card_after(store.reviews())
            assert store.cards() == ({} if card is None else {card.question_id: card})
        if not os.WIFSIGNALED(status):
            assert said[-1] == "undone"
            break
        num_killed += 1
        num_between += 0 < len(acknowledged) < 4
    else:
        pytest.fail("never came to its end")
    assert num_killed > 20 and num_between > 5


WRITER = """
import sys
from pathlib import Path
from kit.progress.store import open_store
from tests.progress.made import review
with open_store(Path(sys.argv[1])) as store:
    number = int(sys.argv[2])
    while True:
        store.add_review(review(number))
        print(f"review-{number:04}", flush=True)
        number += 1
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_process_killed_from_outside_leaves_what_it_acknowledged(path: Path, seed: int) -> None:
    rng, acknowledged = random.Random(seed), list[str]()
    for _ in range(3):
        arguments = [sys.executable, "-c", WRITER, str(path), str(len(acknowledged))]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            acknowledged += [writer.stdout.readline().strip() for _ in range(rng.randrange(1, 40))]
            for _ in range(rng.randrange(20_000)):
                pass
            writer.kill()
            acknowledged += writer.stdout.read().split()
        with open_store(path) as store:
            found = ids(store)
            assert found[: len(acknowledged)] == acknowledged and len(found) - len(acknowledged) in (0, 1)
            acknowledged = found


# --- two at once --------------------------------------------------------------------------------------------


def test_two_processes_make_the_file_and_write_at_once(path: Path) -> None:
    reading, writing = os.pipe()

    def writer(name: str) -> Callable[[Callable[[str], None]], None]:
        def run(say: Callable[[str], None]) -> None:
            os.read(reading, 1)  # both start when the pipe has something for each
            with open_store(path) as store:
                for number in range(60):
                    store.add_review(review(number, f"sums/{name}", id=f"{name}-{number}"))
                    store.bookmark("sums/both", number % 2 == 0)
                    if number % 10 == 0:
                        store.cards()
                say("done")

        return run

    writers = [start_forked(writer(name)) for name in ("one", "two", "three")]
    os.write(writing, b"...")
    assert [ended(each) for each in writers] == [(0, ["done"])] * 3
    os.close(reading), os.close(writing)
    with open_store(path) as store:
        assert len(store.reviews()) == 180
        assert {card.num_reviews for card in store.cards().values()} == {60}


def test_two_processes_that_find_the_same_damage_put_one_file_aside(path: Path) -> None:
    path.parent.mkdir(parents=True)
    for _ in range(5):
        path.write_bytes(b"no database" * 1000)
        reading, writing = os.pipe()

        def run(say: Callable[[str], None], reading: int = reading) -> None:
            name = os.read(reading, 1).decode()
            with open_store(path) as store:
                store.add_review(review(0, id=f"{name}-{os.getpid()}"))

        writers = [start_forked(run) for _ in range(3)]
        os.write(writing, b"abc")
        assert [ended(each)[0] for each in writers] == [0, 0, 0]
        os.close(reading), os.close(writing)
        with open_store(path) as store:
            assert len(store.reviews()) == 3
        path.unlink()
    assert len([file for file in path.parent.glob("*.damaged-*") if file.suffix != ".lock"]) == 5


# --- damage -------------------------------------------------------------------------------------------------


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite_a_page(path: Path) -> None:
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size - 4096)
        file.write(b"\xa5" * 4096)


def write_nonsense(path: Path) -> None:
    path.write_bytes(b"this is no database, but a long text" * 200)


def drop_a_table(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE bookmarks")


def rename_a_column(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE reviews RENAME COLUMN score TO points")


def put_something_else(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")


@pytest.mark.parametrize(
    "damage",
    [cut_in_half, overwrite_a_page, write_nonsense, drop_a_table, rename_a_column, put_something_else],
    ids=lambda damage: damage.__name__,
)
def test_a_damaged_file_is_put_aside_whole_and_work_goes_on(path: Path, damage: Callable[[Path], None]) -> None:
    with open_store(path) as store:
        for number in range(100):
            store.add_review(review(number, f"sums/q{number}"))
    damage(path)
    remains = path.read_bytes()
    with open_store(path) as store:
        assert store.set_aside is not None
        assert store.set_aside.name.startswith("progress.sqlite3.damaged-")
        assert store.set_aside.read_bytes() == remains
        assert store.reviews() == ()
        store.add_review(review(1))
    damage(path)
    with open_store(path) as again:
        assert again.set_aside not in (None, store.set_aside)
        assert store.set_aside.read_bytes() == remains
    with open_store(path) as whole:
        assert whole.set_aside is None


def test_damage_that_shows_only_later_is_told_and_nothing_is_overwritten(path: Path) -> None:
    with open_store(path) as store:
        store.add_review(review(1))
        store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store._connection.execute("PRAGMA shrink_memory")
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * (path.stat().st_size - 4096))
        remains = path.read_bytes()
        with pytest.raises(KitError, match=r"progress\.sqlite3: "):
            open_other(path)
            store.reviews()
    assert path.read_bytes()[4096:] == remains[4096:]


def open_other(path: Path) -> None:
    """A commit of another process makes the first one read the file anew."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")


def test_a_file_of_a_newer_kit_is_not_touched(path: Path) -> None:
    with open_store(path) as store:
        store.add_review(review(1))
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
        connection.execute("ALTER TABLE reviews ADD COLUMN mood TEXT")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(KitError, match=f"is of version {len(MIGRATIONS) + 1}") as caught:
        open_store(path)
    assert "upgrade" in str(caught.value.hint)
    assert path.read_bytes() == before and not list(path.parent.glob("*damaged*"))


def test_a_file_that_may_not_be_written_is_the_user_s_mistake(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(opening.sqlite3, "connect", refused)
    with pytest.raises(KitError, match="unable to open") as caught:
        open_store(path)
    assert "--no-save" in str(caught.value.hint)


def test_a_full_disk_keeps_what_was_there(path: Path) -> None:
    with open_store(path) as store:
        store.add_review(review(0))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(KitError, match="full"):
            for number in range(1, 500):
                store.add_review(review(number))
        count = len(store.reviews())
        assert 1 <= count < 500
    with open_store(path) as store:
        assert len(store.reviews()) == count


# --- versions -----------------------------------------------------------------------------------------------


def test_there_is_a_file_of_every_version() -> None:
    assert [file.stem for file in VERSIONS] == [str(number) for number in range(1, len(MIGRATIONS) + 1)]


@pytest.mark.parametrize("dump", VERSIONS, ids=lambda dump: dump.stem)
def test_a_file_of_every_version_is_read(dump: Path, path: Path) -> None:
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.executescript(dump.read_text("utf-8"))
    connection.close()
    with open_store(path) as store:
        assert store.set_aside is None and version_of(store._connection) == len(MIGRATIONS)
        first, second = store.reviews()
        assert (first.id, first.asked_at, first.score, first.confidence) == ("review-0000", START, 1.0, None)
        assert (second.verdict, second.score, second.confidence, second.seed) == ("marked", 0.75, 0.5, None)
        assert store.bookmarks() == ["sums/which"]
        assert store.interviews()[0].plan == {"parts": [1, 2.5]}
        assert store.cards()["sums/which"] == card_after(store.reviews())


def test_a_migration_that_fails_leaves_the_version_before(path: Path) -> None:
    open_store(path).close()
    connection = connected(path)
    later = (*MIGRATIONS, ("CREATE TABLE moods (x)",), ("CREATE TABLE more (x)", "CREATE TABLE moods (x)"))
    with pytest.raises(sqlite3.OperationalError, match="moods"):
        migrate(connection, later)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    assert version_of(connection) == len(MIGRATIONS) and not tables & {"moods", "more"}
    migrate(connection, later[:-1])
    assert version_of(connection) == len(MIGRATIONS) + 1
    connection.close()
