"""Which question and which file the words of a command mean: `[ID] FILE`, or `ID` alone with `--reference`."""

from __future__ import annotations

from pathlib import Path

from kit.bank.layout import ID, Bank, require_id
from kit.bank.load import load_header
from kit.errors import KitError


def named(words: list[str], bank: Bank, command: str, *, with_reference: bool) -> tuple[str | None, Path | None]:
    """(question, file): no question where the file is to say it, no file with the reference."""
    if with_reference:
        if len(words) != 1:
            does = {"grade": "grades", "timeline": "draws", "predict": "launches"}[command]
            raise KitError(f"--reference {does} the bank's own answer", f"shardkit {command} ID --reference")
        return words[0], None
    if not 1 <= len(words) <= 2:
        raise KitError(f"{len(words)} arguments where [ID] FILE belongs", f"shardkit {command} ID FILE")
    for word in words[1:]:
        if _is_question(bank, word) and not Path(word).exists():
            raise KitError(f"{word} is a question; the file comes after it", f"shardkit {command} {word} FILE")
    if len(words) == 1:
        if _is_question(bank, words[0]) and not Path(words[0]).exists():
            raise KitError(f"which file answers {words[0]}?", f"shardkit {command} {words[0]} FILE")
        return None, Path(words[0])
    return words[0], Path(words[1])


def _is_question(bank: Bank, word: str) -> bool:
    """Looks for the file and reads none."""
    return ID.fullmatch(word) is not None and bank.question(word).is_file()


def reference(bank: Bank, question_id: str | None) -> Path:
    """The bank's own answer. KitError where it was given out without answers."""
    assert question_id is not None
    path = bank.reference(require_id(bank, question_id))
    kind = load_header(bank, question_id).kind
    if kind != "code":
        raise KitError(f"{question_id} is a {kind} question; only code has a reference", "`shardkit quiz` asks it")
    if not path.is_file():
        raise KitError(f"this bank has no reference for {question_id}", "it may have been given out without answers")
    return path
