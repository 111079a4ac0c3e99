"""What results of calculations are called, in both languages. Inputs keep the names of their options."""

from __future__ import annotations

from kit.screen.words import Language

LABELS: dict[str, dict[Language, str]] = {
    # memory
    "rank_params": {"en": "parameters on the rank", "zh": "本 rank 参数量"},
    "params_bytes": {"en": "parameters", "zh": "参数"},
    "grads_bytes": {"en": "gradients", "zh": "梯度"},
    "optimizer_bytes": {"en": "optimizer state", "zh": "优化器状态"},
    "state_bytes": {"en": "model state", "zh": "模型状态合计"},
    "activation_bytes": {"en": "activations", "zh": "激活"},
    "recomputed_bytes": {"en": "one layer recomputed", "zh": "重算中的一层"},
    "gathered_bytes": {"en": "two layers gathered", "zh": "all-gather 出的两层"},
    "total_bytes": {"en": "total", "zh": "总计"},
    "memory_share": {"en": "share of the GPU's memory", "zh": "占显存比例"},
}


def label(language: Language, name: str) -> str:
    """A name without a label is shown as it is."""
    return LABELS[name][language] if name in LABELS else name
