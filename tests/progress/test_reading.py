"""Reading progress where nothing can be written."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kit.errors import KitError
from kit.progress import reading
from kit.progress.store import Store, open_store
from tests.progress.made import forked, review

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others can reach too."""
    made = Path(tempfile.mkdtemp(prefix="shardkit-reading-"))
    made.chmod(0o755)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def _imported(tmp_path: Path) -> None:
    """Whoever gives rights away may not be able to read the kit's own files any more, as below a folder of root's."""
    with open_store(tmp_path / "progress.sqlite3") as store:
        store.add_review(review(0))
    with open_store(tmp_path / "progress.sqlite3", is_reading=True) as store:
        store.cards()
        store.export()
        with contextlib.suppress(KitError):
            store.bookmark("sums/which", True)


def without_rights(folder: Path, run: Callable[[Callable[[str], None]], None]) -> list[str]:
    """`run` in a process that may read the folder and not write it."""
    folder.chmod(0o555)

    def lowered(say: Callable[[str], None]) -> None:
        if os.geteuid() == 0:
            os.seteuid(NOBODY)
        run(say)

    status, said = forked(lowered)
    assert status == 0, said
    return said


def told(path: Path, say: Callable[[str], None]) -> None:
    with open_store(path, is_reading=True) as store:
        say(" ".join(one.id for one in store.reviews()))
        say(" ".join(store.cards()))
        say(str(len(store.export()["reviews"])))
        with contextlib.suppress(KitError):
            store.bookmark("sums/which", True)
            say("written")


@pytest.mark.parametrize("has_cards", [True, False])
def test_a_folder_that_cannot_be_written_can_be_read(folder: Path, has_cards: bool) -> None:
    path = folder / "progress.sqlite3"
    with open_store(path) as store:
        store.add_review(review(0))
        if has_cards:
            store.cards()
    before = path.read_bytes()
    assert without_rights(folder, lambda say: told(path, say)) == ["review-0000", "sums/which", "1"]
    assert path.read_bytes() == before


def test_what_another_process_has_just_written_is_read_too(folder: Path) -> None:
    """It is in the file beside, which SQLite has not yet moved into the first."""
    path = folder / "progress.sqlite3"
    with open_store(path) as store:
        store.add_review(review(0))
        assert Path(f"{path}-wal").stat().st_size > 0
        assert without_rights(folder, lambda say: told(path, say)) == ["review-0000", "sums/which", "1"]


def test_where_there_is_no_file_there_is_no_progress(folder: Path) -> None:
    said = without_rights(folder, lambda say: told(folder / "none" / "progress.sqlite3", say))
    assert said[:3] == ["", "", "0"]


def test_writing_still_needs_a_folder_that_can_be_written(folder: Path) -> None:
    def run(say: Callable[[str], None]) -> None:
        with pytest.raises(KitError, match="Permission denied"):
            open_store(folder / "progress.sqlite3")
        say("refused")

    assert without_rights(folder, run) == ["refused"]


def test_damage_is_said_where_it_cannot_be_put_aside(folder: Path) -> None:
    path = folder / "progress.sqlite3"
    path.write_bytes(b"no database" * 500)

    def run(say: Callable[[str], None]) -> None:
        with pytest.raises(KitError, match="cannot be written to put it aside"):
            open_store(path, is_reading=True)
        say("refused")

    assert without_rights(folder, run) == ["refused"]


def test_a_full_disk_can_be_read(folder: Path) -> None:
    path = folder / "progress.sqlite3"
    with open_store(path) as store:
        store.add_review(review(0))

    def run(say: Callable[[str], None]) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        told(path, say)

    status, said = forked(run)
    assert (status, said) == (0, ["review-0000", "sums/which", "1"])


def test_all_of_a_copy_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "progress.sqlite3"
    with open_store(path) as store:
        store.add_review(review(0))
        copy = Store(path, reading.of_its_copy(path))
    assert [one.id for one in copy.reviews()] == ["review-0000"]
