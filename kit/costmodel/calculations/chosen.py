"""The model that a calculation is about: a name, or a shape of one's own."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from kit import hardware
from kit.costmodel import shapes
from kit.costmodel.arguments import one_of
from kit.costmodel.breakdown import Input, Note, Working
from kit.costmodel.shapes import Shape
from kit.errors import KitError
from kit.hardware import Profile

# What the commands call a figure -> what Shape calls it.
FIGURES = {
    "layers": "num_layers",
    "hidden": "hidden_size",
    "heads": "num_heads",
    "kv_heads": "num_kv_heads",
    "head_size": "head_size",
    "ffn": "ffn_size",
    "vocab": "vocab_size",
    "positions": "max_positions",
    "experts": "num_experts",
    "experts_per_token": "experts_per_token",
    "shared_experts": "num_shared_experts",
    "expert_ffn": "expert_ffn_size",
    "dense_layers": "num_dense_layers",
    "v_head_size": "v_head_size",
    "q_rank": "q_lora_rank",
    "kv_rank": "kv_lora_rank",
    "nope": "qk_nope_size",
    "rope": "qk_rope_size",
}
ALWAYS_SHOWN = ("layers", "hidden", "heads", "kv_heads", "head_size", "ffn", "vocab")
FAMILIES: dict[str, dict[str, str | bool]] = {
    "gpt": {"norm": "layernorm", "linear_biases": True, "gated": False, "tied_embeddings": True},
    "llama": {"norm": "rmsnorm", "linear_biases": False, "gated": True, "tied_embeddings": False},
}
FAMILY_NOTES = {
    "gpt": Note(
        "A shape of family gpt: LayerNorm, biases, an MLP of two matrices.",
        "gpt 结构：LayerNorm、带 bias、MLP 两个矩阵。",
    ),
    "llama": Note(
        "A shape of family llama: RMSNorm, no biases, SwiGLU's three matrices.",
        "llama 结构：RMSNorm、无 bias、SwiGLU 三个矩阵。",
    ),
}
NEEDED = ("layers", "hidden", "heads", "ffn", "vocab")


@dataclass(frozen=True, slots=True)
class Chosen:
    """`name` is empty for a shape of one's own."""

    name: str
    shape: Shape
    note: Note

    @property
    def inputs(self) -> dict[str, Input]:
        """Name and figures, as the formulas call them; zeros that stand for "has none" are left out."""
        found: dict[str, Input] = {"model": self.name} if self.name else {}
        for name, value in figures_of(self.shape).items():
            if name in ALWAYS_SHOWN or (value and not (name == "v_head_size" and self.shape.attention != "mla")):
                found[name] = value
        return found


def figures_of(shape: Shape) -> dict[str, int]:
    return {name: getattr(shape, field) for name, field in FIGURES.items()}


def known_model(name: str) -> str:
    """The kit's spelling: `known_model("Llama-3.1-70B")` -> "llama3.1-70b". Raises KitError with what is close."""
    known = {bare(each): each for each in shapes.names()}
    if bare(name) in known:
        return known[bare(name)]
    close = [known[it] for it in get_close_matches(bare(name), known, n=3, cutoff=0.5)]
    raise KitError(
        f"no model {name!r}" + (f"; closest: {', '.join(close)}" if close else ""),
        f"models: {', '.join(shapes.names())}; or give its layers, hidden, heads, ffn and vocab",
    )


def bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def is_shape_given(model: str | None, figures: Mapping[str, Input]) -> bool:
    return model is not None or bool(figures)


def chosen(model: str | None, figures: Mapping[str, Input], needed: tuple[str, ...] = NEEDED) -> Chosen:
    """A named model, or a shape of `FIGURES`, "family" and "tied"; both together are refused.

    Raises KitError for neither, for figures that are missing, and for those that do not fit one another.
    """
    if model is not None:
        if figures:
            raise KitError(f"model {model!r} has its own shape; leave out {', '.join(figures)}")
        name = known_model(model)
        source = shapes.source_of(name)
        return Chosen(name, shapes.shape_named(name), Note(f"{name}: {source}.", f"{name}：{source}。"))
    if not figures:
        raise KitError("which model?", f"a named one, as in llama3.1-70b, or a shape: {', '.join(needed)}")
    family = one_of("family", figures.get("family", "llama"), FAMILIES)
    missing = [name for name in needed if name not in figures and not (name == "ffn" and family == "gpt")]
    if "experts" in figures:
        missing = [name for name in missing if name != "ffn"]
        missing += [name for name in ("experts_per_token", "expert_ffn") if name not in figures]
    if missing:
        raise KitError(f"a shape needs {', '.join(needed)}; missing: {', '.join(missing)}", "or name a model")
    values = {FIGURES[name]: value for name, value in figures.items() if name in FIGURES}
    values = {**FAMILIES[family], "vocab_size": 1, **values}
    if "experts" in figures:
        values.setdefault("ffn_size", 0)
    if "kv_rank" in figures:
        values["attention"] = "mla"
    if "tied" in figures:
        values["tied_embeddings"] = bool(figures["tied"])
    note = FAMILY_NOTES[family]
    return Chosen("", shapes.shape_of(**values), note)


def working_for(shape: Shape) -> Working:
    """A breakdown whose formulas may use the shape's figures."""
    work = Working()
    work.given(**figures_of(shape))
    return work


def memory_of(profile: str) -> Profile:
    """A profile by its name. Raises KitError where its memory has no limit to hold anything against."""
    machine = hardware.profile(profile)
    if math.isinf(machine.memory_bytes):
        raise KitError(f"profile {machine.name} has memory without limit", "name a real GPU, as in a100 or h100")
    return machine
