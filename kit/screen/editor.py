"""Text that is written in the user's own editor."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from kit.errors import KitError
from kit.screen.words import say

VARIABLES = ("VISUAL", "EDITOR")
IN_ENGLISH = partial(say, "en")


def edit(text: str, environ: Mapping[str, str] = os.environ, say: Callable[..., str] = IN_ENGLISH) -> str:
    """`text` as the editor of $VISUAL or $EDITOR leaves it, from a file that is gone afterwards.

    Raises KitError, in the words of `say`, where neither names one, or it cannot be started, or ends with an error.
    Ctrl-C is the editor's alone while it runs.
    """
    command = next((environ[name] for name in VARIABLES if environ.get(name, "").strip()), "")
    if not command:
        raise KitError(say("editor_none"))
    with tempfile.TemporaryDirectory(prefix="shardkit-") as folder:
        file = Path(folder) / "answer.md"
        file.write_text(text, encoding="utf-8")
        try:
            with interrupts_left_alone():
                code = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
            written = file.read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise KitError(say("editor_not_started", command=command, why=why)) from None
    if code < 0:
        raise KitError(say("editor_stopped", command=command, signal=-code))
    if code:
        raise KitError(say("editor_failed", command=command, code=code))
    return written.replace("\r\n", "\n")


@contextlib.contextmanager
def interrupts_left_alone() -> Iterator[None]:
    """A handler that does nothing, and not SIG_IGN, which the editor would inherit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
