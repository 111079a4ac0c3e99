"""Options that several commands of `calc` share, and how their texts become numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kit.costmodel import units
from kit.costmodel.arguments import exact, one_of
from kit.errors import KitError

Figure = int | str | bool
MOST_DIGITS = 15
THOUSANDS = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def number(flag: str, what: str, metavar: str = "N") -> typer.models.OptionInfo:
    return typer.Option(flag, metavar=metavar, help=what)  # type: ignore[no-any-return]


def seconds(flag: str, what: str) -> typer.models.OptionInfo:
    return typer.Option(flag, metavar="TIME", help=f"{what}, as in 20ms, 90s or 3h")  # type: ignore[no-any-return]


ModelOption = Annotated[str | None, typer.Option("--model", "-m", metavar="NAME", help="For example llama-3.1-70b")]
ParamsOption = Annotated[
    str | None,
    typer.Option("--params", metavar="N", help="Parameters, as in 7.5e9 or 7.5B, for a model without a shape"),
]
RecipeOption = Annotated[
    str, typer.Option("--recipe", metavar="NAME", help="Bytes of a parameter: zero (2 + 2 + 12), megatron_bf16, ...")
]
DpOption = Annotated[int, number("--dp", "Data-parallel ranks")]
TpOption = Annotated[int, number("--tp", "Tensor-parallel ranks")]
PpOption = Annotated[int, number("--pp", "Pipeline stages")]
StageOption = Annotated[int, number("--stage", "Which pipeline stage, from 0")]
CpOption = Annotated[int, number("--cp", "Context-parallel ranks")]
EpOption = Annotated[int, number("--ep", "Expert-parallel ranks")]
EtpOption = Annotated[int, number("--etp", "Ranks that share one expert [default: tp]")]
SpOption = Annotated[bool, typer.Option("--sp", help="Sequence parallelism beside tensor parallelism")]
MicrobatchOption = Annotated[int, number("--microbatch", "Sequences in a microbatch")]
MicrobatchesOption = Annotated[int, number("--microbatches", "Microbatches in a step")]
RecomputeOption = Annotated[str, typer.Option("--recompute", metavar="none|selective|full", help="Of activations")]
ChunksOption = Annotated[int, number("--chunks", "Of a rank, with the interleaved schedule")]
SeqOption = Annotated[int, number("--seq", "Sequence length")]
BatchOption = Annotated[int, number("--batch", "Sequences")]
CausalOption = Annotated[bool, typer.Option("--causal", help="A causal mask halves attention's core")]
DtypeOption = Annotated[str, typer.Option("--dtype", metavar="NAME", help="bf16, fp8_e4m3, tf32, ...")]
HardwareOption = Annotated[str, typer.Option("--profile", metavar="NAME|PATH", help="Hardware: a100, h100, ...")]
ProfileOption = Annotated[str | None, typer.Option("--profile", metavar="NAME|PATH", help="Hardware: a100, h100, ...")]
ShapeOption = Annotated[
    str | None,
    typer.Option("--shape", metavar="FIGURES", help="A model of your own, as in layers=32,hidden=4096,heads=32,..."),
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="F|-", help="As JSON, in a file or on standard output")
]
LangOption = Annotated[
    str | None, typer.Option("--lang", metavar="en|zh", help="Language [default: that of the locale]")
]


def figures(text: str | None) -> dict[str, Figure]:
    """`"layers=32,heads=32,family=gpt"` -> {"layers": 32, "heads": 32, "family": "gpt"}. Raises KitError."""
    from kit.costmodel.calculations.chosen import FAMILIES, FIGURES

    found: dict[str, Figure] = {}
    for part in (text or "").replace(",", " ").split():
        name, sign, value = part.partition("=")
        name = one_of("shape", name.replace("-", "_"), (*FIGURES, "family", "tied"))
        if name in found:
            raise KitError(f"shape: {name} is given twice")
        if name == "family":
            found[name] = one_of("family", value, FAMILIES)
        elif name == "tied":
            found[name] = one_of("tied", value, ("yes", "no")) == "yes"
        elif sign and value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS:
            found[name] = int(value)
        else:
            raise KitError(f"shape: {name} must be a whole number, as in {name}=32, got {part!r}")
    if text is not None and not found:
        raise KitError("shape is empty", "--shape layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256")
    return found


def plain_count(name: str, text: str | None) -> int | float | None:
    """`"7.5B"`, `"7.5e9"` or `"7_500_000_000"` -> 7500000000; B is a billion. Raises KitError for the rest."""
    if text is None:
        return None
    bare = text.strip().replace("_", "").replace(",", "")
    factor = THOUSANDS.get(bare[-1:].upper(), 1)
    digits = bare[:-1] if factor > 1 else bare
    try:
        return exact(units.parse(digits, "count") * factor)
    except KitError:
        raise KitError(f"{name} must be a number, as in 7.5e9 or 7.5B, got {text!r}") from None


def in_unit(name: str, text: str | None, unit: str) -> int | float | None:
    """A quantity in base units; a bare number is in `unit`. `("save", "2 min", "s")` -> 120. Raises KitError."""
    if text is None:
        return None
    try:
        written = units.split_unit(text)[1]
        if written is not None and units.unit_named(written).dimension != units.unit_named(unit).dimension:
            raise KitError(f"a unit like {unit} is needed")
        return units.parse(text, unit)
    except KitError as error:
        raise KitError(f"{name}: {error.message}, got {text!r}", error.hint) from None
