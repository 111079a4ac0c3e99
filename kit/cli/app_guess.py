"""The commands that let guess before something is run: `hunt`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kit.cli.options import BankOption, LanguageOption, LevelOption, TopicOption


def hunt(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="A code question [default: one is drawn]")] = None,
    mutant: Annotated[
        str | None, typer.Option("--mutant", metavar="NAME", help="This wrong answer [default: one is drawn]")
    ] = None,
    topic: TopicOption = None,
    level: LevelOption = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="The same wrong answer and inputs")] = None,
    fix: Annotated[
        Path | None, typer.Option("--fix", metavar="DIR", help="Ask nothing: write the file there, to be put right")
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Only read; the line alone counts")] = False,
    no_save: Annotated[bool, typer.Option("--no-save", help="Keep nothing of this hunt")] = False,
    lang: LanguageOption = None,
    bank: BankOption = None,
) -> None:
    """Find the mistake in a wrong answer, foretell how it shows, then see it run.

    Needs torch only for the run.
    """
    from kit.cli import hunt as command

    options = command.HuntOptions(
        bank, id, mutant, seed, topic or [], level or [], fix, lang, is_run=not no_run, is_saved=not no_save
    )
    raise typer.Exit(command.hunt(options))
