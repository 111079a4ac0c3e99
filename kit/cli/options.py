"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kit.errors import KitError
from kit.grading.choices import MAX_SEED

LANGUAGE = "Language of the questions [default: that of the locale]"

BankOption = Annotated[Path | None, typer.Option("--bank", metavar="DIR", help="Folder that contains questions/")]
LanguageOption = Annotated[str | None, typer.Option("--lang", metavar="en|zh", help=LANGUAGE)]
TopicOption = Annotated[list[str] | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Repeat for several")]
KindOption = Annotated[list[str] | None, typer.Option("--kind", "-k", metavar="KIND", help="Repeat for several")]
LevelOption = Annotated[
    list[str] | None, typer.Option("--level", "-l", metavar="1..4", help="1 junior to 4 staff; repeat for several")
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A question, for example one that `list` shows")]


def require_seed(seed: int | None) -> int | None:
    """Before anything begins. Raises KitError for one that no command draws, and that the progress file cannot hold."""
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise KitError(f"seed {seed} is not a whole number from 0 to {MAX_SEED}")
    return seed


def seed_option(help: str) -> Any:
    return typer.Option("--seed", metavar="N", help=help, callback=require_seed)
