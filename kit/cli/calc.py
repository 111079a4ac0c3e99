"""`calc`: the cost model on the command line. Its commands are built only when one is called."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kit.cli.calc_options import (
    CpOption,
    DpOption,
    EpOption,
    EtpOption,
    JsonOption,
    LangOption,
    MicrobatchesOption,
    MicrobatchOption,
    ModelOption,
    ParamsOption,
    PpOption,
    ProfileOption,
    RecipeOption,
    RecomputeOption,
    ShapeOption,
    SpOption,
    StageOption,
    TpOption,
    figures,
    plain_count,
)  # fmt: skip
from kit.costmodel.breakdown import Calculation

SCHEMA = 1

app = typer.Typer(
    name="shardkit calc",
    help="Memory, traffic, bubbles, FLOPs and times by the cost model, each formula with the numbers put in.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def run(arguments: list[str]) -> None:
    """One command. Usage errors leave as typer's own, to be told like those of every command."""
    command: Any = typer.main.get_command(app)
    with command.make_context("shardkit calc", arguments or ["--help"]) as context:
        command.invoke(context)


def tell(it: Calculation, target: Path | None, lang: str | None) -> None:
    """To the screen, into a file, or as JSON alone to standard output."""
    from kit.cli.language import chosen_language
    from kit.screen.calc import show_calculation
    from kit.screen.page import Page

    language = chosen_language(lang)
    if target is not None:
        text = json.dumps({"schema": SCHEMA, **it.to_json()}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if str(target) == "-":
            sys.stdout.write(text)
            return
        from kit.grading.report import require_writable, write

        require_writable(target)
        write(target, text)
    show_calculation(Page(language), it)


@app.callback()
def root() -> None:
    pass


@app.command()
def memory(
    model: ModelOption = None,
    shape: ShapeOption = None,
    params: ParamsOption = None,
    recipe: RecipeOption = "zero",
    zero: Annotated[int, typer.Option("--zero", metavar="0..3", help="ZeRO stage")] = 0,
    dp: DpOption = 1,
    tp: TpOption = 1,
    pp: PpOption = 1,
    stage: StageOption = 0,
    cp: CpOption = 1,
    ep: EpOption = 1,
    etp: EtpOption = 0,
    seq: Annotated[
        int | None, typer.Option("--seq", metavar="N", help="Sequence length: also counts activations")
    ] = None,
    microbatch: MicrobatchOption = 1,
    microbatches: MicrobatchesOption = 1,
    recompute: RecomputeOption = "none",
    sp: SpOption = False,
    schedule: Annotated[str, typer.Option("--schedule", metavar="gpipe|1f1b|interleaved")] = "1f1b",
    chunks: Annotated[int, typer.Option("--chunks", metavar="N", help="Of a rank, with interleaved")] = 1,
    profile: ProfileOption = None,
    json: JsonOption = None,
    lang: LangOption = None,
) -> None:
    """What one rank holds: parameters, gradients, optimizer state, activations."""
    from kit.costmodel.calculations.memory import calculate

    it = calculate(
        model, figures(shape), plain_count("params", params), recipe, zero, dp, tp, pp, stage, cp, ep, etp, seq, microbatch,
        microbatches, recompute, sp, schedule, chunks, profile,
    )  # fmt: skip
    tell(it, json, lang)
