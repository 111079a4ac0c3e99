"""The command `interview` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kit.cli.options import BankOption, LanguageOption, LevelOption, TopicOption, seed_option


def interview(
    minutes: Annotated[
        float | None, typer.Option("--minutes", "-m", metavar="M", help="How long it is to be [default: 60]")
    ] = None,
    level: LevelOption = None,
    topic: TopicOption = None,
    role: Annotated[
        str, typer.Option("--role", metavar="candidate|interviewer", help="Which side of the table")
    ] = "candidate",
    candidate: Annotated[str, typer.Option("--name", metavar="NAME", help="Of the candidate, for the scorecard")] = "",
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="F", help="Ask what this file says, the same of every candidate")
    ] = None,
    write_plan: Annotated[
        Path | None, typer.Option("--write-plan", metavar="F", help="Write the plan as a file, and ask nothing")
    ] = None,
    seed: Annotated[int | None, seed_option("The same plan as before")] = None,
    share: Annotated[
        bool, typer.Option("--share", help="Prompts alone, for a shared screen: of a plan, or of what goes on")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the interview that was left")] = False,
    scorecard: Annotated[
        Path | None, typer.Option("--scorecard", metavar="F.md|F.html", help="Where the scorecard goes")
    ] = None,
    no_save: Annotated[bool, typer.Option("--no-save", help="Keep nothing but the scorecard")] = False,
    lang: LanguageOption = None,
    bank: BankOption = None,
) -> None:
    """A timed mock interview with a scorecard; or the interviewer's desk.

    Warm-up, estimation, design, coding and debugging, with follow-ups; what was right is told at the end. The
    interviewer sees answers, rubrics, follow-ups and red flags, takes notes and scores points.
    """
    from kit.cli import interview as command

    command.interview(
        command.InterviewOptions(
            bank,
            minutes,
            topic or [],
            level or [],
            role,
            candidate,
            plan,
            write_plan,
            seed,
            is_shared=share,
            is_resumed=resume,
            scorecard=scorecard,
            is_saved=not no_save,
            lang=lang,
        )
    )
