"""Every file of the bank belongs to a question, and every question has its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kit.bank.document import read_text
from kit.bank.layout import ID, Bank
from kit.bank.lint.finding import Finding
from kit.bank.load import load_header
from kit.errors import KitError

# What running or looking at the files leaves behind; git ignores it.
LEFT_BEHIND = {"__pycache__", ".DS_Store", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


def file_findings(bank: Bank) -> Iterator[Finding]:
    """Stray files, topics without a README, and blanks that nobody sees."""
    for topic in bank.topics():
        readme = bank.topic_readme(topic)
        if not readme.is_file():
            yield Finding(bank.shown(readme), 0, "missing", "say what the topic is, in what order, from which sources")
    if not bank.answers.is_dir():
        yield Finding("reference", 0, "missing, so that no answer was looked at", "lint a bank that has its answers")
    belongs = set(files_that_belong(bank))
    for path in tree(bank.questions) + tree(bank.answers):
        if path not in belongs:
            yield Finding(bank.shown(path), 0, "belongs to no question", "remove it, or name it after its question")
        else:
            yield from blank_findings(path, bank.shown(path))


def tree(folder: Path) -> list[Path]:
    """Every file and every empty folder below `folder`, sorted."""
    found: list[Path] = []
    if not folder.is_dir():
        return found
    for path in sorted(folder.iterdir()):
        if path.name in LEFT_BEHIND:
            continue
        if path.is_dir() and not path.is_symlink():
            below = tree(path)
            found += below if below else [path]
        else:
            found.append(path)
    return found


def files_that_belong(bank: Bank) -> Iterator[Path]:
    for topic in bank.topics():
        yield bank.topic_readme(topic)
    for question_id in bank.ids():
        if not ID.fullmatch(question_id):
            continue
        yield bank.question(question_id)
        if kind_of_question(bank, question_id) in ("code", ""):
            yield bank.starter(question_id)
            yield bank.checks(question_id)
            yield bank.reference(question_id)
            yield bank.mutants(question_id)
            yield from bank.variants(question_id)
        if kind_of_question(bank, question_id) == "predict":
            yield bank.starter(question_id)


def kind_of_question(bank: Bank, question_id: str) -> str:
    """Empty where the header cannot be read, which is another finding."""
    try:
        return load_header(bank, question_id).kind
    except KitError:
        return ""


def blank_findings(path: Path, shown: str) -> Iterator[Finding]:
    try:
        text = read_text(path, shown)
    except KitError as error:
        yield Finding(shown, getattr(error, "line", 0), getattr(error, "what", error.message))
        return
    if not text.strip():
        yield Finding(shown, 0, "empty file", "write it or remove it")
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.endswith("\r"):
            yield Finding(shown, number, "the line ends in CR", "save the file with LF line ends")
            return
        if line != line.rstrip():
            yield Finding(shown, number, "trailing blanks", "remove them")
    if not text.endswith("\n"):
        yield Finding(shown, text.count("\n") + 1, "no newline at the end of the file", "end the last line")


def question_file_findings(bank: Bank, question_id: str) -> Iterator[Finding]:
    """The files of a code question that are not there."""
    if kind_of_question(bank, question_id) != "code":
        return
    wanted = [(bank.starter(question_id), "the starter"), (bank.checks(question_id), "the checks")]
    if bank.answers.is_dir():
        wanted += [(bank.reference(question_id), "the reference"), (bank.mutants(question_id), "the mutants")]
    for path, what in wanted:
        if not path.is_file():
            yield Finding(bank.shown(path), 0, f"missing: {what} of {question_id}", "write it")
