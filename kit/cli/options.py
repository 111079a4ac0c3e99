"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LANGUAGE = "Language of the questions [default: that of the locale]"

BankOption = Annotated[Path | None, typer.Option("--bank", metavar="DIR", help="Folder that contains questions/")]
LanguageOption = Annotated[str | None, typer.Option("--lang", metavar="en|zh", help=LANGUAGE)]
TopicOption = Annotated[list[str] | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Repeat for several")]
KindOption = Annotated[list[str] | None, typer.Option("--kind", "-k", metavar="KIND", help="Repeat for several")]
LevelOption = Annotated[
    list[str] | None, typer.Option("--level", "-l", metavar="1..4", help="1 junior to 4 staff; repeat for several")
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A question, for example one that `list` shows")]
