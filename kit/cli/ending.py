"""How a command ends that cannot go on: the user's mistake, the machine's refusal, or the kit's own fault."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from kit.cli import KITS_FAULT, USERS_MISTAKE
from kit.errors import KitError

REFUSALS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


def explain(error: Exception) -> int:
    """Prints what happened to standard error. Returns the exit code."""
    if isinstance(error, KitError):
        return say(error.message, error.hint)
    if isinstance(error, OSError) and error.errno in REFUSALS:
        where = f"{error.filename}: " if error.filename else "output cannot be written: "
        return say(f"{where}{error.strerror}")
    if isinstance(error, OSError) and error.errno in EXHAUSTED:
        return say(f"the machine allows no more: {error.strerror}", "`ulimit -a` shows the limits of this shell")
    return own_fault(error)


def say(message: str, hint: str | None = None) -> int:
    from kit.screen.grade import visible  # names of files and lines of them are not the kit's own words

    print(f"error: {visible(message)}", file=sys.stderr)
    if hint:
        print(f"hint: {visible(hint)}", file=sys.stderr)
    return USERS_MISTAKE


def own_fault(error: Exception) -> int:
    """The traceback goes to a file, its path to standard error."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    print(f"error: this is a fault of shardkit, not of your file ({what[:200]})", file=sys.stderr)
    report = keep(error)
    if report is not None:
        print(f"hint: please report it with the traceback in {report}", file=sys.stderr)
    return KITS_FAULT


def keep(error: Exception) -> Path | None:
    """Writes the report where it stays, or at least where it can be written."""
    text = "".join([heading(), *traceback.format_exception(error)])
    name = f"fault-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    for directory in (cache_directory(), Path(tempfile.gettempdir())):
        try:
            directory.mkdir(parents=True, exist_ok=True)
            path = directory / name
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
            return path
        except OSError:
            continue
    return None


def heading() -> str:
    from kit import __version__

    return f"shardkit {__version__}, Python {sys.version}, {sys.platform}\narguments: {sys.argv[1:]!r}\n\n"


def cache_directory() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("shardkit", appauthor=False)) / "faults"
