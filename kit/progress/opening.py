"""Opening the progress file: where it is, one process at a time, and what happens to a file that is damaged."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from kit.errors import KitError
from kit.progress.salvage import Salvaged, carry_over
from kit.progress.schema import MIGRATIONS, migrate, version_of

FILE_NAME = "progress.sqlite3"
FOLDER_VARIABLE = "SHARDKIT_DATA"
BUSY_S = 10.0  # how long a write waits for another process; each takes milliseconds
SIDECARS = ("-wal", "-shm")  # what SQLite keeps beside the file while it is open, or was when its process was killed
HINT = f"{FOLDER_VARIABLE}=DIR puts the progress elsewhere, and `quiz --no-save` keeps none"


class Damaged(Exception):
    """The file is none of ours, or no longer whole."""


def progress_path() -> Path:
    """Under the user's data directory, or in the folder that SHARDKIT_DATA names."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        return Path(folder) / FILE_NAME
    import platformdirs

    return Path(platformdirs.user_data_dir("shardkit", appauthor=False)) / FILE_NAME


def opened(path: Path) -> tuple[sqlite3.Connection, Salvaged | None]:
    """A connection in autocommit mode to a file of the newest version, and where a damaged one was put, if it was.

    Raises KitError where the file cannot be opened, or belongs to a newer kit; then nothing was touched.
    """
    path = real(path)
    with refusals(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with only_one(path):
            try:
                return connected(path), None
            except Damaged:
                aside = set_aside(path)
            return connected(path), Salvaged(aside)


def reopened(path: Path, damaged: int) -> tuple[sqlite3.Connection, Salvaged | None]:
    """After rows were found that cannot be read in the file of this inode: a new file with all that can be.

    Where another process was first, its file is opened. Raises KitError as `opened` does.
    """
    path = real(path)
    with refusals(path), only_one(path):
        if inode_of(path) != damaged:
            return connected(path), None
        aside = set_aside(path)
        connection = connected(path)
        try:
            return connection, carry_over(aside, connection)
        except sqlite3.Error:
            return connection, Salvaged(aside)


def real(path: Path) -> Path:
    """SQLite keeps what belongs to a file beside the one that a link names, and there a damaged one is put aside."""
    return Path(os.path.realpath(path))


def inode_of(path: Path) -> int:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0


@contextlib.contextmanager
def refusals(path: Path) -> Iterator[None]:
    """What the machine refuses, as KitError."""
    try:
        yield
    except OSError as error:
        raise KitError(f"{error.filename or path}: {error.strerror or error}", hint=HINT) from error
    except (sqlite3.Error, Damaged) as error:
        raise KitError(f"{path}: {error}", hint=HINT) from error


@contextlib.contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Two processes that find the same damaged file, or none, must not both act. A killed one lets go."""
    import fcntl

    with open(path.with_name(f"{path.name}.lock"), "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        require_whole(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # what was acknowledged survives a power cut too
        migrate(connection)
        require_tables(connection)
    except BaseException as error:
        connection.close()
        if is_damage(error):
            raise Damaged(str(error)) from error
        raise
    return connection


def require_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Reads all of the file, a few milliseconds for ten thousand reviews. Raises KitError for one of a newer kit."""
    version = version_of(connection)
    if version < 0:
        raise Damaged(f"it is of version {version}")
    if version > len(MIGRATIONS):
        raise KitError(
            f"{path} is of version {version}, and this shardkit knows versions up to {len(MIGRATIONS)}",
            hint=f"upgrade shardkit, or set {FOLDER_VARIABLE} to another folder",
        )
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise Damaged("it is a database of something else")
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise Damaged(found)


def require_tables(connection: sqlite3.Connection) -> None:
    """That this file has the tables and columns which a new one gets. Raises Damaged."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        migrate(new)
        for (table,) in new.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = f"PRAGMA table_info({table})"
            if connection.execute(columns).fetchall() != new.execute(columns).fetchall():
                raise Damaged(f"its table {table} is not as it was made")


def is_damage(error: BaseException) -> bool:
    """What SQLite says of a corrupt file is of this very class; a lock or a full disk is of a subclass."""
    return type(error) in (sqlite3.DatabaseError, Damaged)


def set_aside(path: Path) -> Path:
    """Renames the file and what belongs to it, so that `sqlite3 FILE .recover` finds all. Returns the new path."""
    stem = f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
    aside, number = path.with_name(stem), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{stem}-{number}")
    for suffix in SIDECARS:
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{aside}{suffix}")
    os.rename(path, aside)
    return aside
