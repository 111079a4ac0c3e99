"""Activations that one rank keeps for backward: of a layer, of a pipeline stage, with and without recomputation.

16-bit activations, 1-byte dropout masks, fp32 logits. `layer_bytes` is the GPT block of Korthikanti et al. (arXiv
2205.05198) with the scores kept; `gated_layer_bytes` is a Llama block with flash attention, whose convention is its
own docstring. Buffers of communication, workspaces and what the allocator wastes are left out.
"""

from __future__ import annotations

from kit.costmodel import pipeline
from kit.costmodel.arguments import evenly, exact, one_of, quantity, quotient, whole
from kit.costmodel.memory import RECOMPUTATIONS, layers_on_stage
from kit.costmodel.pipeline import SCHEDULES, chunks_in_flight, slots
from kit.costmodel.shapes import Shape, kv_heads_of_rank, shape_named
from kit.errors import KitError


def layer_bytes(
    seq_len: int,
    microbatch_size: int,
    hidden_size: int,
    num_heads: int,
    tensor_parallel: int = 1,
    sequence_parallel: bool | int = False,
    recomputation: str = "none",
    context_parallel: int = 1,
) -> int | float:
    """One GPT layer: sbh(10 + 24/t + 5as/(ht)), with sequence parallelism sbh(34 + 5as/h)/t; all of it over cp.

    "selective" drops the term with a, "full" keeps the layer's input, 2sbh. Context parallelism splits the sequence:
    a rank's s/cp queries meet all s keys, so the term with a shrinks by cp as well, not by its square.
    `layer_bytes(2048, 1, 12288, 96, 8, True, "selective")` -> 102 MiB. Source: arXiv 2205.05198, Table 2.
    """
    s, b, h = whole("seq_len", seq_len), whole("microbatch_size", microbatch_size), whole("hidden_size", hidden_size)
    a, t = whole("num_heads", num_heads), whole("tensor_parallel", tensor_parallel)
    one_of("recomputation", recomputation, RECOMPUTATIONS)
    evenly("num_heads", a, "tensor_parallel", t)
    tokens = b * evenly("seq_len", s, "context_parallel", whole("context_parallel", context_parallel))
    if recomputation == "full":
        return 2 * tokens * h
    scores = 5 * a * s * tokens if recomputation == "none" else 0
    if sequence_parallel:
        return quotient(34 * tokens * h + scores, t)
    return 10 * tokens * h + quotient(24 * tokens * h + scores, t)


def weight_gradient_bytes(seq_len: int, microbatch_size: int, hidden_size: int) -> int:
    """32sbh: what a GPT layer still keeps when its input's gradient is done and its weights' is not, M_W.

    Inputs of the four linear layers, 14sbh, and the gradients of their outputs, 18sbh. Source: arXiv 2401.10241,
    Table 1, which prints 32sbh; there M_B is `layer_bytes` without recomputation.
    """
    tokens = whole("seq_len", seq_len) * whole("microbatch_size", microbatch_size)
    return 32 * tokens * whole("hidden_size", hidden_size)


def gated_layer_bytes(
    seq_len: int,
    microbatch_size: int,
    hidden_size: int,
    num_heads: int,
    num_kv_heads: int,
    ffn_size: int,
    tensor_parallel: int = 1,
    sequence_parallel: bool | int = False,
    recomputation: str = "none",
    context_parallel: int = 1,
    head_size: int = 0,
    flash: bool | int = True,
) -> int | float:
    """One Llama layer without dropout, each tensor that autograd saves counted once, 2 bytes an element.

    Replicated by TP unless sequence parallelism splits them: inputs of both norms, of QKV and of the MLP, 8sbh.
    Split by heads: q and attention's output, 4sb ad/t, k and v, 4sb gd/t. Split by columns: gate, up, silu(gate) and
    their product, 8sbf/t. Attention keeps 4sba/t of log-sum-exp (fp32) with flash, else the softmax, 2abs^2/t.
    "selective" drops this last part, "full" keeps the layer's input, 2sbh. A norm's statistics are left out.
    `gated_layer_bytes(8192, 1, 4096, 32, 8, 14336)` -> 1.38e9, of which 0.94e9 are the MLP's 8sbf.
    Source: the same count as arXiv 2205.05198, section 4, for this block; held against what autograd saves by a test.
    """
    s, b, h = whole("seq_len", seq_len), whole("microbatch_size", microbatch_size), whole("hidden_size", hidden_size)
    a, t = whole("num_heads", num_heads), whole("tensor_parallel", tensor_parallel)
    one_of("recomputation", recomputation, RECOMPUTATIONS)
    heads = evenly("num_heads", a, "tensor_parallel", t)
    f = evenly("ffn_size", whole("ffn_size", ffn_size), "tensor_parallel", t)
    d = whole("head_size", head_size, at_least=0) or evenly("hidden_size", h, "num_heads", a)
    tokens = b * evenly("seq_len", s, "context_parallel", whole("context_parallel", context_parallel))
    if recomputation == "full":
        return 2 * tokens * h
    around = quotient(8 * tokens * h, t) if sequence_parallel else 8 * tokens * h
    kept = tokens * (4 * heads * d + 4 * kv_heads_of_rank(num_kv_heads, t) * d + 8 * f)
    core = tokens * heads * (4 if flash else 2 * s)
    return around + kept + (core if recomputation == "none" else 0)


def layer_bytes_of(
    shape: Shape,
    seq_len: int,
    microbatch_size: int = 1,
    tensor_parallel: int = 1,
    sequence_parallel: bool | int = False,
    recomputation: str = "none",
    context_parallel: int = 1,
) -> int | float:
    """`layer_bytes` of a GPT shape with an MLP of 4h, `gated_layer_bytes` of a gated one.

    Raises KitError for mixtures of experts and MLA: what they keep depends on the implementation.
    """
    how = (tensor_parallel, sequence_parallel, recomputation, context_parallel)
    if shape.num_experts or shape.attention == "mla":
        raise KitError("activations are modelled for dense models without MLA only")
    if shape.gated:
        sizes = (shape.hidden_size, shape.num_heads, shape.num_kv_heads, shape.ffn_size)
        return gated_layer_bytes(seq_len, microbatch_size, *sizes, *how, head_size=shape.head_size)
    if shape.ffn_size != 4 * shape.hidden_size or shape.num_kv_heads != shape.num_heads:
        raise KitError("activations of a GPT are modelled with an MLP of 4h and as many key-value heads as heads only")
    return layer_bytes(seq_len, microbatch_size, shape.hidden_size, shape.num_heads, *how)


def microbatches_in_flight(
    num_stages: int, num_microbatches: int, schedule: str = "1f1b", stage: int = 0, num_chunks: int = 1
) -> int | float:
    """Microbatches whose activations a rank holds at its peak, each of all the rank's layers.

    GPipe m; 1F1B min(p - i, m); interleaved min((v-1)p + 2(p-i) - 1, vm)/v, on the first rank p(1 + (p-1)/(pv)).
    `microbatches_in_flight(8, 64, "interleaved", 0, 2)` -> 11.5, where 1F1B holds 8.
    Sources: PTD-P, arXiv 2104.04473, section 2.2; arXiv 2205.05198, section 4.2.3.
    """
    if one_of("schedule", schedule, SCHEDULES) == "interleaved":
        return quotient(chunks_in_flight(num_stages, num_microbatches, num_chunks, stage), num_chunks)
    slots(num_stages, num_microbatches, schedule, num_chunks)
    return pipeline.microbatches_in_flight(num_stages, num_microbatches, schedule, stage)


def stage_bytes_of(
    shape: Shape,
    seq_len: int,
    microbatch_size: int = 1,
    tensor_parallel: int = 1,
    sequence_parallel: bool | int = False,
    recomputation: str = "none",
    context_parallel: int = 1,
    pipeline_parallel: int = 1,
    num_microbatches: int = 1,
    pipeline_stage: int = 0,
    schedule: str = "1f1b",
    num_chunks: int = 1,
) -> int | float:
    """As `stage_bytes`, of a shape."""
    layer = layer_bytes_of(
        shape, seq_len, microbatch_size, tensor_parallel, sequence_parallel, recomputation, context_parallel
    )
    flight = microbatches_in_flight(pipeline_parallel, num_microbatches, schedule, pipeline_stage, num_chunks)
    total = layers_on_stage(shape.num_layers, pipeline_parallel, pipeline_stage) * layer * flight
    tokens = microbatch_size * (seq_len // context_parallel)
    split = tensor_parallel if sequence_parallel else 1
    if pipeline_stage == 0 and not shape.gated:
        total += flight * quotient(tokens * shape.hidden_size, split)
    if pipeline_stage == pipeline_parallel - 1:
        copies = num_microbatches if schedule == "gpipe" else 1
        around = quotient(4 * tokens * shape.hidden_size, split)
        total += copies * (around + 4 * tokens * -(-shape.vocab_size // tensor_parallel))
    return exact(total)


def stage_bytes(
    model: str,
    seq_len: int,
    microbatch_size: int = 1,
    tensor_parallel: int = 1,
    sequence_parallel: bool | int = False,
    recomputation: str = "none",
    context_parallel: int = 1,
    pipeline_parallel: int = 1,
    num_microbatches: int = 1,
    pipeline_stage: int = 0,
    schedule: str = "1f1b",
    num_chunks: int = 1,
) -> int | float:
    """Activations of a named model on one rank at the peak of its schedule.

    Layers of the stage x microbatches in flight x bytes of a layer; on the first stage of a GPT also the embedding's
    dropout mask, sbh for each microbatch in flight; on the last the inputs of the final norm and of the output
    matrix and the fp32 logits, 4sbh + 4sbV/t, of the one microbatch that it works on (of all m with GPipe).
    sbh terms are over t with sequence parallelism. With full recomputation add one layer's `layer_bytes` of "none",
    which lives again while its backward runs. Source: arXiv 2205.05198, sections 4.2.3 and 4.3.
    `stage_bytes("megatron-22b", 2048, 4, 8, True, "selective")` -> 10.5e9.
    """
    return stage_bytes_of(
        shape_named(model), seq_len, microbatch_size, tensor_parallel, sequence_parallel, recomputation,
        context_parallel, pipeline_parallel, num_microbatches, pipeline_stage, schedule, num_chunks,
    )  # fmt: skip


def outside_layers_fraction(
    seq_len: int, hidden_size: int, num_heads: int, num_layers: int, vocab_size: int, pipeline_parallel: int = 1
) -> float:
    """Embedding and output terms of a GPT's first stage over its layers': (p/L + [p=1] 4/L (1 + V/h)) / (34 + 5as/h).

    `outside_layers_fraction(2048, 6144, 64, 48, 51200)` -> 0.0057 for 22B, which the paper prints as 0.01%.
    Source: arXiv 2205.05198, section 4.3, equation 5 and after.
    """
    s, h, a = whole("seq_len", seq_len), whole("hidden_size", hidden_size), whole("num_heads", num_heads)
    p, num = whole("pipeline_parallel", pipeline_parallel), whole("num_layers", num_layers)
    outside = p / num + (4 / num * (1 + whole("vocab_size", vocab_size) / h) if p == 1 else 0)
    return outside / (34 + 5 * a * s / h)


def rule_of_thumb_bytes(
    seq_len: int, batch_size: int, hidden_size: int, num_layers: int, bytes_per_element: int | float = 2
) -> int | float:
    """12 h b s L elements: all activations of a GPT, by the rule of ZeRO.

    `rule_of_thumb_bytes(1024, 32, 1600, 48)` -> 60.4e9, GPT-2. Source: arXiv 1910.02054, section 3.2, footnote 3.
    """
    elements = 12 * whole("hidden_size", hidden_size) * whole("batch_size", batch_size) * whole("seq_len", seq_len)
    return exact(elements * whole("num_layers", num_layers) * quantity("bytes_per_element", bytes_per_element))


def checkpoint_bytes(
    seq_len: int, batch_size: int, hidden_size: int, num_layers: int, tensor_parallel: int = 1
) -> int | float:
    """2 b s h L: one 16-bit checkpoint a layer, over t where ZeRO-R's P_a (or sequence parallelism) splits them.

    `checkpoint_bytes(1024, 32, 8192, 125)` -> 67.1e9, and 4.2e9 over 16. Source: arXiv 1910.02054, sections 3.2, 6.1.
    """
    whole_bytes = 2 * whole("batch_size", batch_size) * whole("seq_len", seq_len) * whole("hidden_size", hidden_size)
    return quotient(whole_bytes * whole("num_layers", num_layers), whole("tensor_parallel", tensor_parallel))


def segmented_bytes(
    num_layers: int, layers_per_segment: int, layer_bytes: int | float, boundary_bytes: int | float
) -> int | float:
    """Peak with a checkpoint every c layers: ceil(L/c) boundaries, and one segment of c layers that is run again.

    With equal sizes it is least near c = sqrt(L): `segmented_bytes(64, 8, 1, 1)` -> 16.
    Source: Chen et al., arXiv 1604.06174, section 4. A last, shorter segment makes no difference to the peak.
    """
    num, c = whole("num_layers", num_layers), whole("layers_per_segment", layers_per_segment)
    if c > num:
        raise KitError(f"layers_per_segment={c} are more than num_layers={num}")
    boundaries = -(-num // c) * quantity("boundary_bytes", boundary_bytes)
    return exact(boundaries + c * quantity("layer_bytes", layer_bytes))


def best_layers_per_segment(num_layers: int, layer_bytes: int | float, boundary_bytes: int | float) -> int:
    """The c that makes `segmented_bytes` least, the smallest of equals. `best_layers_per_segment(64, 1, 1)` -> 8."""
    every = range(1, whole("num_layers", num_layers) + 1)
    return min(every, key=lambda c: segmented_bytes(num_layers, c, layer_bytes, boundary_bytes))
