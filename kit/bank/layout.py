"""Where the bank is, and where each file of a question lives in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import kit
from kit.bank.closest import closest
from kit.errors import KitError

ID = re.compile(r"[a-z0-9_]+/[a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Bank:
    """A folder with questions/ and, unless it was given to a candidate, reference/."""

    root: Path

    @property
    def questions(self) -> Path:
        return self.root / "questions"

    @property
    def answers(self) -> Path:
        return self.root / "reference"

    def question(self, question_id: str) -> Path:
        return self.questions / f"{question_id}.yaml"

    def topic_readme(self, topic: str) -> Path:
        return self.questions / topic / "README.md"

    def starter(self, question_id: str) -> Path:
        return self.questions / f"{question_id}.py"

    def checks(self, question_id: str) -> Path:
        topic, slug = question_id.split("/")
        return self.questions / topic / f"test_{slug}.py"

    def reference(self, question_id: str) -> Path:
        return self.answers / f"{question_id}.py"

    def mutants(self, question_id: str) -> Path:
        return self.answers / f"{question_id}.mutants.yaml"

    def variants_folder(self, question_id: str) -> Path:
        return self.answers / f"{question_id}.variants"

    def variants(self, question_id: str) -> list[Path]:
        return sorted(self.variants_folder(question_id).glob("*.py"))

    @property
    def asked(self) -> Path:
        """What the field asks, by number; a part of the project's documentation, which a package does not carry."""
        return self.root / "docs" / "asked.yaml"

    def ids(self) -> list[str]:
        """Every question's id, sorted."""
        return sorted(f"{path.parent.name}/{path.stem}" for path in self.questions.glob("*/*.yaml"))

    def topics(self) -> list[str]:
        return sorted({question_id.split("/")[0] for question_id in self.ids()})

    def shown(self, path: Path) -> str:
        """`questions/dp/bucketed.yaml`: the path as a person reads it in a message."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return str(path)


def find_bank(directory: Path | None = None) -> Bank:
    """The bank in `directory`, else the checkout's, else the one inside the installed package.

    Raises KitError where there is none.
    """
    if directory is not None:
        return given_bank(directory)
    package = Path(kit.__file__).resolve().parent
    # A wheel always carries _bank; asking for it first keeps a stranger's site-packages/questions out.
    for root in (package / "_bank", package.parent):
        if (root / "questions").is_dir():
            return Bank(root)
    raise KitError(
        f"no questions: neither {package.parent / 'questions'} nor {package / '_bank' / 'questions'} exists",
        hint="give the folder that contains questions/ with --bank DIR",
    )


def given_bank(directory: Path) -> Bank:
    if not directory.exists():
        raise KitError(f"no folder {directory}")
    if not directory.is_dir():
        raise KitError(f"{directory} is a file; --bank takes the folder that contains questions/")
    if not (directory / "questions").is_dir():
        inside = directory.resolve().name == "questions"
        hint = f"give its parent: --bank {directory.parent}" if inside else None
        raise KitError(f"{directory} contains no folder questions/", hint=hint)
    return Bank(directory.resolve())


def require_id(bank: Bank, question_id: str) -> str:
    """`question_id` if the bank has it. Raises KitError with the closest ids."""
    if ID.fullmatch(question_id) and bank.question(question_id).is_file():
        return question_id
    near = closest(question_id, bank.ids())
    if near:
        raise KitError(f"no question {question_id!r}; closest: {', '.join(near)}")
    raise KitError(f"no question {question_id!r}", hint="`shardkit list` shows every id")


def require_topic(bank: Bank, topic: str) -> str:
    """`topic` if the bank has it. Raises KitError with the closest topics."""
    topics = bank.topics()
    if topic in topics:
        return topic
    near = closest(topic, topics)
    raise KitError(f"no topic {topic!r}; {'closest' if near else 'there are'}: {', '.join(near or topics)}")
