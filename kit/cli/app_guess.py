"""The commands that ask for guesses before they show what a run brings: `hunt` and `predict`."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.cli.options import BankOption, LanguageOption, LevelOption, TopicOption, seed_option


def hunt(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="A code question [default: one is drawn]")] = None,
    mutant: Annotated[
        str | None, typer.Option("--mutant", metavar="NAME", help="This wrong answer [default: one is drawn]")
    ] = None,
    topic: TopicOption = None,
    level: LevelOption = None,
    seed: Annotated[int | None, seed_option("The same wrong answer and inputs")] = None,
    fix: Annotated[
        str | None, typer.Option("--fix", metavar="DIR", help="Ask nothing: write the file there, to be put right")
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


def predict(
    words: Annotated[
        list[str], typer.Argument(metavar="[ID] FILE", help="ID may be left out where the file's first line names it")
    ],
    reference: Annotated[bool, typer.Option("--reference", help="Launch the bank's own answer to ID")] = False,
    world_size: Annotated[
        int | None, typer.Option("--world-size", metavar="N", help="Ranks [default: the most that are checked]", min=1)
    ] = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help="Of the question's checks, or a part of its name")
    ] = None,
    mark: Annotated[
        str | None, typer.Option("--mark", metavar="NAME", help="Measure from this mark on [default: the first part]")
    ] = None,
    seed: Annotated[int | None, seed_option("The same inputs as a run before")] = None,
    no_save: Annotated[bool, typer.Option("--no-save", help="Keep nothing of these guesses")] = False,
    lang: LanguageOption = None,
    bank: BankOption = None,
) -> None:
    """Guess bytes, bubble, exposed communication and memory of a launch, then see them.

    Shows the program, its inputs and what it computes; the figures only after your guesses.
    """
    from kit.cli import predict as command

    options = command.PredictOptions(bank, world_size, scenario, mark, seed, lang, is_saved=not no_save)
    raise typer.Exit(command.predict(words, options, with_reference=reference))
