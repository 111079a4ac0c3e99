"""`calc kv`: the cache of keys and values, and how many sequences a GPU holds beside the weights."""

from __future__ import annotations

from collections.abc import Mapping

from kit.costmodel import formats, kv_cache, memory
from kit.costmodel.arguments import exact, quantity, whole
from kit.costmodel.breakdown import Calculation, Input, Note
from kit.costmodel.calculations.chosen import NEEDED, chosen, memory_of, working_for
from kit.costmodel.calculations.parameters import rank_kv_heads_line

RESULTS = ("bytes_per_token", "sequence_bytes", "cache_bytes", "times_smaller", "weight_bytes", "sequences_that_fit")
ATTENTION = ("layers", "hidden", "heads")


def calculate(
    seq: int,
    model: str | None = None,
    figures: Mapping[str, Input] | None = None,
    batch: int = 1,
    dtype: str = "bf16",
    tp: int = 1,
    profile: str | None = None,
    weights: str = "bf16",
    reserved: int | float = 0,
) -> Calculation:
    """Bytes of one rank for `batch` sequences of `seq` tokens; with a profile also how many of them fit."""
    it = chosen(model, figures or {}, NEEDED if profile is not None else ATTENTION)
    quantity("reserved", reserved)
    shape, work = it.shape, working_for(it.shape)
    each = formats.bytes_per_element(dtype)
    inputs: dict[str, Input] = {**it.inputs, "seq": whole("seq", seq), "batch": whole("batch", batch), "dtype": dtype,
                                "tp": whole("tp", tp)}  # fmt: skip
    work.given(seq=seq, batch=batch, tp=tp, element=each)
    per_token = kv_cache.bytes_per_token_of(shape, each, tp)
    if shape.attention == "mla":
        work.line("bytes_per_token", "layers * (kv_rank + rope) * element", per_token, "B")
        note = Note("MLA: one latent and one rotary key for all heads, whole on every tensor-parallel rank.",
                    "MLA：所有 head 共用一个 latent 和一个 rope key，每个 TP rank 都存全量。")  # fmt: skip
    else:
        rank_kv_heads_line(work, shape, tp)
        work.line("bytes_per_token", "2 * layers * rank_kv_heads * head_size * element", per_token, "B")
        note = Note("A key and a value for each layer, key-value head and token; heads fewer than ranks are copied.",
                    "每层、每个 KV head、每个 token 各一个 K 和 V；KV head 少于 TP rank 时会复制。")  # fmt: skip
    work.line("sequence_bytes", "seq * bytes_per_token", seq * per_token, "B")
    work.line("cache_bytes", "batch * sequence_bytes", batch * seq * per_token, "B")
    if shape.attention != "mla":
        work.line("times_smaller", "heads / kv_heads", kv_cache.reduction(shape.num_heads, shape.num_kv_heads), "count")
    notes = [it.note, note, Note(f"{dtype}: {each} bytes an element.", f"{dtype}：每个元素 {each} 字节。")]
    if profile is not None:
        machine = memory_of(profile)
        weight = formats.bytes_per_element(weights)
        inputs |= {"profile": machine.name, "weights": weights, "reserved": reserved}
        num_params = sum(memory.rank_params_of(shape, tp))
        work.given(rank_params=num_params, weight_element=weight, memory=machine.memory_bytes, reserved=reserved)
        held = work.line("weight_bytes", "rank_params * weight_element", exact(num_params * weight), "B")
        fit = kv_cache.sequences_that_fit(machine.memory_bytes, held, per_token, seq, reserved_bytes=reserved)
        formula = "max(0, floor((memory - weight_bytes - reserved) / sequence_bytes))"
        work.line("sequences_that_fit", formula, fit, "count")
        held_in = f"{machine.memory_bytes / 1e9:g} GB"
        notes.append(
            Note(
                f"Memory of one {machine.name}: {held_in} of 1e9 bytes; activations and workspaces are not counted.",
                f"{machine.name} 单卡显存 {held_in}（1e9 字节）；激活与 workspace 不计。",
            )
        )
    return Calculation("kv", inputs, tuple(notes), work.quantities(RESULTS), tuple(work.lines))
