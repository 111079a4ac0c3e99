"""Reading the progress file where nothing can be written: a read-only folder, or a disk that is full."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from kit.errors import KitError
from kit.progress.opening import connected, is_damage, real, require_tables, require_whole
from kit.progress.schema import migrate


def opened_for_reading(path: Path) -> sqlite3.Connection | None:
    """None where the file cannot be read without writing either. An empty one where there is none.

    Raises KitError where it is damaged or of a newer kit.
    """
    path = real(path)
    if not path.exists():
        return empty()
    wal = path.with_name(f"{path.name}-wal")
    has_wal = wal.exists() and wal.stat().st_size > 0
    ways: list[Callable[[Path], sqlite3.Connection]] = [of_its_copy] if has_wal else [unchanging]
    for way in [*([read_only] if has_wal else []), *ways]:
        try:
            return way(path)
        except (sqlite3.Error, OSError) as error:
            if is_damage(error):
                message = f"{path} is damaged ({error}), and its folder cannot be written to put it aside"
                raise KitError(message) from None
    return None


def empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    return connection


def read_only(path: Path) -> sqlite3.Connection:
    return checked(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None), path)


def unchanging(path: Path) -> sqlite3.Connection:
    """Without a lock and without files beside it, which is right where all of it is in the file itself."""
    return checked(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True, isolation_level=None), path)


def of_its_copy(path: Path) -> sqlite3.Connection:
    """With what SQLite has not yet moved into the file; all of it in memory in the end."""
    with tempfile.TemporaryDirectory(prefix="shardkit-") as folder:
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)
        shutil.copyfile(f"{path}-wal", f"{copy}-wal")
        with contextlib.closing(connected(copy)) as connection:
            memory = sqlite3.connect(":memory:", isolation_level=None)
            connection.backup(memory)
            return memory


def checked(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    with closed_on_error(connection):
        require_whole(connection, path)
        require_tables(connection)
        return connection


@contextlib.contextmanager
def closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise
