"""Text that is written in the user's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kit.errors import KitError

VARIABLES = ("VISUAL", "EDITOR")


def edit(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """`text` as the editor of $VISUAL or $EDITOR leaves it, from a file that is gone afterwards.

    Raises KitError where neither names one, or it cannot be started, or ends with an error.
    """
    command = next((environ[name] for name in VARIABLES if environ.get(name, "").strip()), "")
    if not command:
        raise KitError("neither VISUAL nor EDITOR names an editor; the answer can be typed here")
    with tempfile.TemporaryDirectory(prefix="shardkit-") as folder:
        file = Path(folder) / "answer.md"
        file.write_text(text, encoding="utf-8")
        try:
            code = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
            written = file.read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError) as error:
            raise KitError(f"{command!r} cannot be started: {getattr(error, 'strerror', None) or error}") from None
    if code:
        raise KitError(f"{command!r} ended with code {code}; nothing was taken over")
    return written.replace("\r\n", "\n")
