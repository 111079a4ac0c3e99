"""`start`: a starter becomes the learner's own file."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from kit.bank.layout import Bank, find_bank
from kit.bank.load import load_header
from kit.errors import KitError


def write_starter(directory: Path | None, question_id: str, folder: Path, *, force: bool) -> None:
    bank = find_bank(directory)
    target = folder / f"{question_id.rsplit('/', 1)[-1]}.py"
    text = starter_text(bank, question_id)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = set_aside(target) if force else None
        write_new(target, text)
    except FileExistsError:
        if not folder.is_dir():
            raise KitError(f"{folder} is not a folder") from None
        raise KitError(
            f"{target} is there already", hint="--force replaces it and keeps it as .bak; --dir DIR writes elsewhere"
        ) from None
    except OSError as error:
        raise KitError(f"{error.filename or target}: {error.strerror}") from None
    if kept is not None:
        print(f"kept {kept}")
    print(f"wrote {target}")
    given_bank = f" --bank {shlex.quote(str(directory))}" if directory is not None else ""
    print(f"read the question: shardkit show {question_id}{given_bank}")
    print(f"grade your answer: shardkit grade {shlex.quote(str(target))}{given_bank}")


def starter_text(bank: Bank, question_id: str) -> str:
    """The starter with the line that names its question."""
    header = load_header(bank, question_id)
    path = bank.starter(question_id)
    if header.kind != "code":
        raise KitError(f"{question_id} is a {header.kind} question and has no starter", hint="`shardkit quiz` asks it")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise KitError(
            f"{bank.shown(path)}: the starter is missing", hint="`shardkit lint` says what else is"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise KitError(f"{bank.shown(path)}: cannot be read: {error}") from None
    return f"# shardkit: {question_id}\n{text}"


def set_aside(target: Path) -> Path | None:
    """Renames a file that is there to a name that is free. Returns that name."""
    if target.is_dir() and not target.is_symlink():
        raise KitError(f"{target} is a folder")
    if not os.path.lexists(target):
        return None
    number = 0
    while True:
        kept = target.with_name(f"{target.name}.bak{number or ''}")
        if not os.path.lexists(kept):
            target.rename(kept)
            return kept
        number += 1


def write_new(target: Path, text: str) -> None:
    """Raises FileExistsError rather than touch what is there."""
    with open(target, "x", encoding="utf-8", newline="\n") as file:
        file.write(text)
