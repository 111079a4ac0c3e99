"""Programs that questions are about, or that prove what questions claim: run, and held against what is said of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kit.bank.lint import Finding
from kit.bank.lint.entry import Entry
from kit.grading.launches import clean_environment
from kit.world import World, WorldError

if TYPE_CHECKING:
    from kit.bank.schema import Experiment
    from kit.world import Zygote

FILE_NAME = "program.py"  # what a diagnosis calls it: `program.py:3`
DEADLINE_S = 20.0
MOST_SHOWN = 600  # characters of what really happened

# What a world says of a run that failed, as questions say it; other endings are no outcome to ask for.
_OUTCOMES = {"hang": "hangs", "crash": "raises", "race": "race", "mismatch": "mismatch"}


@dataclass(frozen=True, slots=True)
class Happened:
    """What a program came to: `text` is all that its ranks printed, in their order, or the whole diagnosis."""

    outcome: str
    text: str


def run_experiment(experiment: Experiment, zygote: Zygote) -> Happened:
    """Run the program on the switchboard, in an empty directory, as the lines that the question shows."""
    from kit.grading.entry import program_on_rank

    with tempfile.TemporaryDirectory(prefix="shardkit-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "program" / FILE_NAME
        empty = Path(folder) / "empty"
        file.parent.mkdir()
        empty.mkdir()
        file.write_text(experiment.program, encoding="utf-8")
        world = World(
            experiment.world_size,
            zygote=zygote,
            deadline_s=DEADLINE_S,
            cwd=str(empty),
            env=clean_environment(str(empty)),
        )
        try:
            result = world.run(program_on_rank, [str(file)] * experiment.world_size)
        except WorldError as error:
            return Happened(_OUTCOMES.get(error.kind, error.kind), str(error))
    return Happened("prints", "\n".join(text.strip() for text in result.stdout if text.strip()))


def difference(experiment: Experiment, happened: Happened) -> str:
    """Empty where the program did what is said of it; else what it did."""
    really = happened.text if len(happened.text) <= MOST_SHOWN else happened.text[:MOST_SHOWN] + "..."
    if happened.outcome != experiment.outcome:
        return f"outcome is {experiment.outcome}, and what happened is {happened.outcome}: {really}"
    if experiment.outcome == "prints":
        is_so = without_blank_ends(experiment.expect) == without_blank_ends(happened.text)
        return "" if is_so else f"the ranks print {really!r}"
    return "" if experiment.expect.strip() in happened.text else f"{experiment.expect.strip()!r} is not said: {really}"


def without_blank_ends(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().split("\n"))


def experiments(entry: Entry) -> Iterator[tuple[str, tuple[str, ...], Experiment]]:
    """(its name, where it stands in the file, the experiment) for all that a question has."""
    question = entry.question
    if question.kind == "predict":
        yield "program", (), question.experiment
    if question.proof is not None:
        yield "proof", ("proof",), question.proof


def experiment_finding(entry: Entry, location: Sequence[str], experiment: Experiment, zygote: Zygote) -> Finding | None:
    """The line that says what does not happen, with what does."""
    happened = run_experiment(experiment, zygote)
    what = difference(experiment, happened)
    if not what:
        return None
    key = "outcome" if happened.outcome != experiment.outcome else "expect"
    return entry.finding((*location, key), what, "say what happens, or change the program")
