"""`calc`: the cost model on the command line. Its commands are built only when one is called."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kit.cli import NOT_PASSED
from kit.cli.calc_options import (
    BatchOption,
    CausalOption,
    ChunksOption,
    CpOption,
    DpOption,
    DtypeOption,
    EpOption,
    EtpOption,
    HardwareOption,
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
    SeqOption,
    ShapeOption,
    SpOption,
    StageOption,
    TpOption,
    figures,
    in_unit,
    number,
    plain_count,
    seconds,
)  # fmt: skip
from kit.cli.calc_result import tell
from kit.costmodel.arguments import exact
from kit.errors import KitError

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
    try:
        invoke(arguments)
    except OverflowError:
        raise KitError("these figures come to more than 1e308", "are the units right?") from None


def invoke(arguments: list[str]) -> None:
    command: Any = typer.main.get_command(app)
    with command.make_context("shardkit calc", arguments or ["--help"]) as context:
        command.invoke(context)


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
    chunks: ChunksOption = 1,
    profile: ProfileOption = None,
    json: JsonOption = None,
    lang: LangOption = None,
) -> None:
    """What one rank holds: parameters, gradients, optimizer state, activations."""
    from kit.costmodel.calculations.memory import calculate

    it = calculate(
        model, figures(shape), plain_count("params", params), recipe, zero, dp, tp, pp, stage, cp, ep, etp, seq,
        microbatch, microbatches, recompute, sp, schedule, chunks, profile,
    )  # fmt: skip
    tell(it, json, lang)


@app.command()
def traffic(
    model: ModelOption = None,
    shape: ShapeOption = None,
    params: ParamsOption = None,
    strategy: Annotated[
        str, typer.Option("--strategy", metavar="ddp|zero1|zero2|zero3|...", help="Also fsdp, hsdp, zero++")
    ] = "ddp",
    dp: DpOption = 1,
    param_bytes: Annotated[float, typer.Option("--param-bytes", metavar="N", help="Of a parameter gathered")] = 2,
    grad_bytes: Annotated[float, typer.Option("--grad-bytes", metavar="N", help="Of a gradient reduced")] = 2,
    sync_every: Annotated[
        str | None, typer.Option("--sync-every", metavar="step|microbatch", help="ddp: step; fsdp: microbatch")
    ] = None,
    keep_params: Annotated[bool, typer.Option("--keep-params", help="Not freed after forward (ZeRO-3, FSDP)")] = False,
    shard_size: Annotated[int | None, number("--shard-size", "hsdp: ranks that share one copy")] = None,
    ranks_per_node: Annotated[int, number("--ranks-per-node", "zero++: ranks of a node")] = 8,
    tp: TpOption = 1,
    sp: SpOption = False,
    pp: PpOption = 1,
    stage: Annotated[int | None, number("--stage", "Which pipeline stage, from 0 [default: one in the middle]")] = None,
    chunks: ChunksOption = 1,
    cp: CpOption = 1,
    cp_method: Annotated[str, typer.Option("--cp-method", metavar="ring|all_gather|ulysses")] = "ring",
    ep: EpOption = 1,
    seq: Annotated[int | None, number("--seq", "Sequence length: for tp, pp, cp, ep")] = None,
    microbatch: MicrobatchOption = 1,
    microbatches: MicrobatchesOption = 1,
    element_bytes: Annotated[float, typer.Option("--element-bytes", metavar="N", help="Of an activation sent")] = 2,
    recompute: RecomputeOption = "none",
    json: JsonOption = None,
    lang: LangOption = None,
) -> None:
    """What one rank sends in a step: DDP, ZeRO, FSDP, HSDP, TP, PP, CP, EP."""
    from kit.costmodel.calculations.traffic import calculate

    it = calculate(
        model, figures(shape), plain_count("params", params), strategy, dp, exact(param_bytes), exact(grad_bytes),
        sync_every, keep_params, shard_size, ranks_per_node, tp, sp, pp, stage, chunks, cp, cp_method, ep, seq,
        microbatch, microbatches, exact(element_bytes), recompute,
    )  # fmt: skip
    tell(it, json, lang)


@app.command()
def bubble(
    pp: Annotated[int, number("--pp", "Pipeline stages")],
    microbatches: Annotated[int, number("--microbatches", "Microbatches in a step")],
    schedule: Annotated[
        str, typer.Option("--schedule", metavar="NAME", help="gpipe, 1f1b, interleaved, zb_h1, ...")
    ] = "1f1b",
    chunks: ChunksOption = 1,
    rank: Annotated[int, number("--rank", "Whose activations are counted, from 0")] = 0,
    forward: Annotated[str | None, seconds("--forward", "Of one microbatch [default: one slot]")] = None,
    backward: Annotated[str | None, seconds("--backward", "The whole of it [default: twice forward]")] = None,
    weight_grad: Annotated[str | None, seconds("--weight-grad", "Its part for weights [default: half]")] = None,
    target: Annotated[
        float | None, typer.Option("--target", metavar="F", help="How many microbatches for this bubble?")
    ] = None,
    json: JsonOption = None,
    lang: LangOption = None,
) -> None:
    """Idle time of a pipeline schedule, beside every other one's."""
    from kit.costmodel.calculations.bubble import calculate

    times = (
        in_unit("forward", forward, "s"),
        in_unit("backward", backward, "s"),
        in_unit("weight_grad", weight_grad, "s"),
    )
    tell(calculate(pp, microbatches, schedule, chunks, rank, *times, target), json, lang)


@app.command()
def flops(
    seq: SeqOption,
    model: ModelOption = None,
    shape: ShapeOption = None,
    batch: BatchOption = 1,
    recompute: RecomputeOption = "none",
    causal: CausalOption = False,
    gpus: Annotated[int | None, number("--gpus", "With --step: MFU and HFU")] = None,
    step: Annotated[str | None, seconds("--step", "Of one iteration")] = None,
    profile: HardwareOption = "h100",
    dtype: DtypeOption = "bf16",
    json: JsonOption = None,
    lang: LangOption = None,
) -> None:
    """FLOPs of a training step, of a token, by 6ND; MFU and HFU."""
    from kit.costmodel.calculations.flops import calculate

    step_s = in_unit("step", step, "s")
    it = calculate(seq, model, figures(shape), batch, recompute, causal, gpus, step_s, profile, dtype)
    tell(it, json, lang)


@app.command()
def kv(
    seq: SeqOption,
    model: ModelOption = None,
    shape: ShapeOption = None,
    batch: BatchOption = 1,
    dtype: Annotated[str, typer.Option("--dtype", metavar="NAME", help="Of the cache")] = "bf16",
    tp: TpOption = 1,
    profile: ProfileOption = None,
    weights: Annotated[str, typer.Option("--weights", metavar="NAME", help="Their dtype, with --profile")] = "bf16",
    reserved: Annotated[
        str, typer.Option("--reserved", metavar="SIZE", help="Memory for other things, as 4GB")
    ] = "0 B",
    json: JsonOption = None,
    lang: LangOption = None,
) -> None:
    """The cache of keys and values; with a profile, how many sequences fit."""
    from kit.costmodel.calculations.kv import calculate

    free = in_unit("reserved", reserved, "B") or 0
    tell(calculate(seq, model, figures(shape), batch, dtype, tp, profile, weights, free), json, lang)


@app.command()
def format(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="fp16, bf16, fp8_e4m3 ... [default: all]")
    ] = None,
    value: Annotated[float | None, typer.Option("--value", metavar="X", help="What it becomes in the format")] = None,
    json: JsonOption = None,
    lang: LangOption = None,
) -> None:
    """What number formats can hold, and what a value becomes in one."""
    from kit.costmodel.calculations.format import calculate

    tell(calculate(names or [], value), json, lang)


@app.command()
def time(
    tokens: Annotated[str | None, typer.Option("--tokens", metavar="N", help="Of the run, as in 2e12 or 2T")] = None,
    gpus: Annotated[int | None, number("--gpus", "GPUs, or ranks of the collective")] = None,
    model: ModelOption = None,
    shape: ShapeOption = None,
    params: ParamsOption = None,
    mfu: Annotated[float | None, typer.Option("--mfu", metavar="F", help="Of the profile's peak, as in 0.4")] = None,
    achieved: Annotated[
        str | None, typer.Option("--achieved", metavar="RATE", help="Of each GPU, as in 140TFLOP/s")
    ] = None,
    recompute: RecomputeOption = "none",
    price: Annotated[float | None, typer.Option("--price", metavar="N", help="Of one GPU hour")] = None,
    batch: Annotated[int | None, number("--batch", "Sequences in a step")] = None,
    seq: Annotated[int | None, number("--seq", "Sequence length")] = None,
    save: Annotated[str | None, seconds("--save", "One checkpoint")] = None,
    mtbf: Annotated[str | None, seconds("--mtbf", "Between failures of the whole job")] = None,
    restart: Annotated[str, seconds("--restart", "After a failure")] = "0 s",
    collective: Annotated[
        str | None,
        typer.Option("--collective", metavar="NAME", help="all_reduce, all_gather, ...: one collective instead"),
    ] = None,
    bytes: Annotated[str | None, typer.Option("--bytes", metavar="SIZE", help="Its full buffer, as in 1GB")] = None,
    algorithm: Annotated[
        str, typer.Option("--algorithm", metavar="NAME", help="ring, double_tree, hierarchical, ...")
    ] = "ring",
    profile: HardwareOption = "h100",
    dtype: DtypeOption = "bf16",
    json: JsonOption = None,
    lang: LangOption = None,
) -> None:
    """A training run: time, cost, checkpoints. Or, with --collective, one collective."""
    from kit.costmodel.calculations import time as calculations

    if gpus is None:
        raise KitError("how many GPUs?", "--gpus N")
    if collective is not None:
        size = in_unit("bytes", bytes, "B")
        if size is None:
            raise KitError("how many bytes?", "--bytes 1GB: the full buffer")
        return tell(calculations.collective(collective, size, gpus, profile, algorithm), json, lang)
    trained = plain_count("tokens", tokens)
    if trained is None:
        raise KitError(
            "a run of how many tokens?", "--tokens 2T; or one collective: --collective all_reduce --bytes 1GB"
        )
    it = calculations.training_run(
        trained, gpus, model, figures(shape), plain_count("params", params), profile, dtype, mfu,
        in_unit("achieved", achieved, "FLOP/s"), recompute, price, batch, seq, in_unit("save", save, "s"),
        in_unit("mtbf", mtbf, "s"), in_unit("restart", restart, "s") or 0,
    )  # fmt: skip
    tell(it, json, lang)


@app.command()
def gemm(
    sizes: Annotated[
        list[int] | None, typer.Argument(metavar="M N K", help="[M, K] by [K, N]; or a layer: --model")
    ] = None,
    model: ModelOption = None,
    shape: ShapeOption = None,
    batch: BatchOption = 1,
    seq: Annotated[int | None, number("--seq", "Sequence length of a layer; in decode the tokens in the cache")] = None,
    phase: Annotated[str, typer.Option("--phase", metavar="prefill|training|decode")] = "prefill",
    tp: TpOption = 1,
    causal: CausalOption = False,
    flash: Annotated[bool, typer.Option("--flash/--no-flash", help="Whether scores stay on the chip")] = True,
    count: Annotated[int, number("--count", "So many products")] = 1,
    profile: HardwareOption = "h100",
    dtype: DtypeOption = "bf16",
    json: JsonOption = None,
    lang: LangOption = None,
) -> None:
    """The roofline of a matrix product, or of every product of a layer."""
    from kit.costmodel.calculations import gemm as calculations

    own = figures(shape)
    if model is not None or own:
        if sizes:
            raise KitError("M N K and a model are two questions", "shardkit calc gemm --help")
        if seq is None:
            raise KitError("a layer over how many tokens?", "--seq N")
        return tell(calculations.layer(model, own, batch, seq, phase, dtype, profile, tp, flash, causal), json, lang)
    if sizes is None or len(sizes) != 3:
        raise KitError(
            f"a product has three sizes, got {len(sizes or [])}", "shardkit calc gemm M N K, or --model NAME --seq N"
        )
    tell(calculations.calculate(sizes[0], sizes[1], sizes[2], dtype, profile, count), json, lang)


@app.command()
def plan(
    gpus: Annotated[int, number("--gpus", "How many")],
    model: ModelOption = None,
    shape: ShapeOption = None,
    profile: HardwareOption = "h100",
    seq: Annotated[int, number("--seq", "Sequence length")] = 4096,
    batch: Annotated[int, number("--batch", "Sequences in a step, all ranks together")] = 1024,
    recipe: RecipeOption = "megatron_bf16",
    dtype: DtypeOption = "bf16",
    efficiency: Annotated[float, typer.Option("--efficiency", metavar="F", help="Of the peak, in kernels")] = 0.6,
    usable: Annotated[float, typer.Option("--usable", metavar="F", help="Of the GPU's memory")] = 0.9,
    overlap: Annotated[
        bool, typer.Option("--overlap/--no-overlap", help="DP and CP communication with compute")
    ] = True,
    max_microbatch: Annotated[int, number("--max-microbatch", "The largest that is tried")] = 8,
    top: Annotated[int, number("--top", "How many layouts to show")] = 5,
    json: JsonOption = None,
    lang: LangOption = None,
) -> None:
    """Which layouts of a model on so many GPUs fit, and which is fastest; 1 where none fits."""
    from kit.costmodel.calculations.plan import calculate

    it = calculate(
        gpus,
        model,
        figures(shape),
        profile,
        seq,
        batch,
        recipe,
        dtype,
        efficiency,
        usable,
        overlap,
        max_microbatch,
        top,
    )
    tell(it, json, lang)
    if it.results["fits"].value == "no":
        raise typer.Exit(NOT_PASSED)
