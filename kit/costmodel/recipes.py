"""Precision recipes: what a parameter costs in training, by the convention of the paper or tool that counts it.

Every figure is in bytes for each parameter. ZeRO-1 shards the optimizer's state (fp32 gradients kept beside 16-bit
ones, master parameters, momentum, variance), ZeRO-2 also the gradients that backward writes, ZeRO-3 also the
parameters that forward reads. Two recipes of the same sum differ in what a stage shards, so a question names one.
"""

from __future__ import annotations

from dataclasses import dataclass

from kit.costmodel.arguments import exact, one_of, quotient, whole

PARTS = ("params", "grads", "main_grads", "master", "momentum", "variance")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Bytes for each parameter; `convention` says in words what they are, `source` who counts so.

    `main_grads` are fp32 gradients that the optimizer keeps beside the `grads` of backward.
    """

    convention: str
    source: str
    params: int
    grads: int
    main_grads: int = 0
    master: int = 0
    momentum: int = 0
    variance: int = 0

    @property
    def optimizer(self) -> int:
        """What ZeRO-1 shards."""
        return self.main_grads + self.master + self.momentum + self.variance

    @property
    def total(self) -> int:
        return self.params + self.grads + self.optimizer


RECIPES = {
    "zero": Recipe(
        "16-bit parameters and gradients; fp32 master parameters, momentum and variance of Adam: 2 + 2 + 12",
        "ZeRO, arXiv 1910.02054, section 3.1",
        params=2, grads=2, master=4, momentum=4, variance=4,
    ),
    "megatron_bf16": Recipe(
        "bf16 parameters, fp32 gradients, fp32 master parameters, momentum and variance: 2 + 4 + 12",
        "Megatron-LM, docs of the distributed optimizer (18, or 6 + 12/dp) and report_theoretical_memory",
        params=2, grads=4, master=4, momentum=4, variance=4,
    ),
    "megatron_fp16": Recipe(
        "fp16 parameters and gradients, fp32 gradients too, fp32 master parameters and Adam: 2 + 2 + 16",
        "Megatron-LM, docs of the distributed optimizer (20, or 4 + 16/dp)",
        params=2, grads=2, main_grads=4, master=4, momentum=4, variance=4,
    ),
    "zero_infinity": Recipe(
        "16-bit parameters and gradients; fp32 parameters, gradients, momentum and variance: 2 + 2 + 16",
        "ZeRO-Infinity, arXiv 2104.07857, section 3; MT-NLG, arXiv 2201.11990",
        params=2, grads=2, main_grads=4, master=4, momentum=4, variance=4,
    ),
    "deepspeed_zero3": Recipe(
        "16-bit parameters; fp32 parameters, gradients, momentum and variance; no 16-bit gradients: 2 + 16",
        "DeepSpeed, docs of memory requirements, ZeRO-3",
        params=2, grads=0, main_grads=4, master=4, momentum=4, variance=4,
    ),
    "hf_mixed": Recipe(
        "weights 6 (fp32 and a 16-bit copy), gradients 4, AdamW 8: 6 + 4 + 8",
        "Hugging Face transformers, docs: model memory anatomy",
        params=2, grads=4, master=4, momentum=4, variance=4,
    ),
    "hf_mixed_adam_8bit": Recipe(
        "weights 6, gradients 4, 8-bit AdamW 2: 6 + 4 + 2",
        "Hugging Face transformers, docs: model memory anatomy",
        params=2, grads=4, master=4, momentum=1, variance=1,
    ),
    "hf_mixed_sgd": Recipe(
        "weights 6, gradients 4, SGD's momentum 4: 6 + 4 + 4",
        "Hugging Face transformers, docs: model memory anatomy",
        params=2, grads=4, master=4, momentum=4,
    ),
    "fp32_adam": Recipe(
        "fp32 parameters, gradients, momentum and variance, no second copy: 4 + 4 + 8",
        "Accelerate, estimate-memory (4 times the model); Megatron-LM, distributed optimizer (16, or 8 + 8/dp)",
        params=4, grads=4, momentum=4, variance=4,
    ),
    "fp32_sgd": Recipe(
        "fp32 parameters and gradients, SGD without momentum: 4 + 4",
        "torch.optim.SGD keeps no state without momentum",
        params=4, grads=4,
    ),
    "fp32_rmsprop": Recipe(
        "fp32 parameters, gradients and one statistic of RMSProp: 4 + 4 + 4",
        "GPipe, arXiv 1811.06965, section 3",
        params=4, grads=4, variance=4,
    ),
    "bf16_adam": Recipe(
        "everything bf16, no master parameters: 2 + 2 + 4",
        "torch.optim.AdamW makes its state in the dtype of the parameters; Accelerate, FSDP 'memory-constrained'",
        params=2, grads=2, momentum=2, variance=2,
    ),
    "bf16_adam_fp32_moments": Recipe(
        "bf16 parameters and gradients, fp32 momentum and variance, no master parameters: 2 + 2 + 8",
        "a common count of 12 bytes; small updates are lost without master parameters",
        params=2, grads=2, momentum=4, variance=4,
    ),
    "fp32_adam_without_grads": Recipe(
        "fp32 parameters, momentum and variance; gradients are not counted: 4 + 8",
        "what a checkpoint of fp32 Adam holds",
        params=4, grads=0, momentum=4, variance=4,
    ),
    "mixed_without_grads": Recipe(
        "16-bit parameters, fp32 master parameters, momentum and variance; gradients are not counted: 2 + 12",
        "what a checkpoint of mixed-precision Adam holds; a common count of 14 bytes",
        params=2, grads=0, master=4, momentum=4, variance=4,
    ),
    "bf16_moments": Recipe(
        "16-bit parameters, fp32 gradients and master parameters, bf16 momentum and variance: 2 + 4 + 4 + 4",
        "DeepSeek-V3, arXiv 2412.19437, section 3.3.3, which keeps moments so; parameters counted at 2",
        params=2, grads=4, master=4, momentum=2, variance=2,
    ),
    "mixed_muon": Recipe(
        "16-bit parameters and gradients, fp32 master parameters and one momentum: 2 + 2 + 8",
        "Muon is Scalable for LLM Training, arXiv 2502.16982: one buffer where Adam has two",
        params=2, grads=2, master=4, momentum=4,
    ),
}  # fmt: skip


def recipe_named(name: str) -> Recipe:
    """Raises KitError that lists the known ones."""
    return RECIPES[one_of("recipe", name, RECIPES)]


def bytes_per_param(recipe: str = "zero", data_parallel: int = 1, zero_stage: int = 0) -> int | float:
    """Bytes of one rank for each parameter of the model, with ZeRO over `data_parallel` ranks.

    Megatron's distributed optimizer is stage 1. `bytes_per_param("megatron_bf16", 8, 1)` -> 6 + 12/8 = 7.5;
    `bytes_per_param("megatron_fp16", 8, 1)` -> 4 + 16/8 = 6; `bytes_per_param("zero")` -> 16.
    Sources: each recipe's own; stages: ZeRO, arXiv 1910.02054, section 5. Raises KitError for unknown names.
    """
    it = recipe_named(recipe)
    n = whole("data_parallel", data_parallel)
    stage = whole("zero_stage", zero_stage, at_least=0, at_most=3)
    parts = ((3, it.params), (2, it.grads), (1, it.optimizer))
    kept = sum(each for sharded_from, each in parts if stage < sharded_from)
    sharded = sum(each for sharded_from, each in parts if stage >= sharded_from)
    return exact(kept + quotient(sharded, n))


def part_bytes(recipe: str, part: str) -> int:
    """Bytes of one part for each parameter. `part_bytes("zero", "momentum")` -> 4.

    `part` is one of params, grads, main_grads, master, momentum, variance, or the sums optimizer and total.
    """
    it = recipe_named(recipe)
    part = one_of("part", part, (*PARTS, "optimizer", "total"))
    return int(getattr(it, part))


def sharded_from_stage(part: str) -> int:
    """The first ZeRO stage that shards a part. `sharded_from_stage("grads")` -> 2; `("main_grads")` -> 1."""
    part = one_of("part", part, PARTS)
    return {"params": 3, "grads": 2}.get(part, 1)


def weight_bytes(recipe: str = "zero") -> int:
    """Parameters and master copy for each parameter. `weight_bytes("hf_mixed")` -> 6."""
    it = recipe_named(recipe)
    return it.params + it.master
