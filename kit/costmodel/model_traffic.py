"""Bytes that a rank sends inside the model: tensor, sequence, pipeline, context and expert parallelism.

b samples a microbatch, s tokens each (whole sequences, before any split), h wide; t, c, e ranks. A rank's bytes:
all-reduce of S 2(n-1)/n S, all-gather, reduce-scatter and all-to-all (n-1)/n S, as in kit.costmodel.collectives.
"""

from __future__ import annotations

import math

from kit.costmodel.arguments import exact, one_of, quantity, quotient, whole
from kit.costmodel.collectives import all_gather_bytes, all_reduce_bytes, all_to_all_bytes
from kit.errors import KitError

DIRECTIONS = ("both", "forward", "backward")
RECOMPUTATIONS = ("none", "selective", "full")


def tp_bytes_per_layer(
    seq_len: int,
    microbatch_size: int,
    hidden_size: int,
    tensor_parallel: int,
    bytes_per_element: int | float = 2,
    direction: str = "both",
    recomputation: str = "none",
    sequence_parallel: bool | int = False,
    saves_gathered_input: bool | int = False,
) -> int | float:
    """One transformer layer and microbatch: attention and MLP, each column- then row-parallel.

    Without sequence parallelism 2 all-reduces of bsh forward and 2 backward: 8bsh(t-1)/t elements (PTD-P, arXiv
    2104.04473, section 3.2). With it 2 all-gathers and 2 reduce-scatters each way, as many bytes, and where only the
    shard of a column-parallel input is saved, 2 more all-gathers in backward (arXiv 2205.05198, section 4.2.2).
    Full recomputation repeats the forward inside backward; "selective", attention's core alone, sends nothing more.
    `tp_bytes_per_layer(2048, 1, 12288, 8)` -> 8 x 2048 x 12288 x 7/8 x 2 = 352,321,536.
    """
    one_of("direction", direction, DIRECTIONS)
    one_of("recomputation", recomputation, RECOMPUTATIONS)
    t = whole("tensor_parallel", tensor_parallel)
    if sequence_parallel and whole("seq_len", seq_len) % t:
        raise KitError(f"seq_len={seq_len} cannot be split over tensor_parallel={t} ranks")
    once = all_gather_bytes(activation_bytes(seq_len, microbatch_size, hidden_size, bytes_per_element), t)
    forward = 4
    backward = 4 + (4 if recomputation == "full" else 0) + (2 if sequence_parallel and not saves_gathered_input else 0)
    return exact({"both": forward + backward, "forward": forward, "backward": backward}[direction] * once)


def tp_bytes(
    num_layers: int,
    num_microbatches: int,
    seq_len: int,
    microbatch_size: int,
    hidden_size: int,
    tensor_parallel: int,
    bytes_per_element: int | float = 2,
    recomputation: str = "none",
    sequence_parallel: bool | int = False,
    saves_gathered_input: bool | int = False,
) -> int | float:
    """One rank's layers over a step: num_layers x num_microbatches x `tp_bytes_per_layer`. No embedding, no head."""
    each = tp_bytes_per_layer(
        seq_len, microbatch_size, hidden_size, tensor_parallel, bytes_per_element, "both",
        recomputation, sequence_parallel, saves_gathered_input,
    )  # fmt: skip
    return whole("num_layers", num_layers) * whole("num_microbatches", num_microbatches) * each


def vocab_parallel_bytes(
    seq_len: int,
    microbatch_size: int,
    hidden_size: int,
    tensor_parallel: int,
    bytes_per_element: int | float = 2,
    loss_bytes_per_element: int | float = 4,
) -> int | float:
    """Vocabulary-parallel embedding, output layer and loss of one microbatch, logits left in shards.

    An all-reduce of bsh after the embedding, one of the output layer's input gradient, and three of one number a
    token in the loss: the maximum, the target's logit, the sum of exponentials (Megatron-LM,
    core/tensor_parallel/cross_entropy.py). Gathering the logits would be bsV. `(2048, 1, 1024, 2)` -> 8,413,184.
    """
    t = whole("tensor_parallel", tensor_parallel)
    tokens = whole("seq_len", seq_len) * whole("microbatch_size", microbatch_size)
    whole_activation = activation_bytes(seq_len, microbatch_size, hidden_size, bytes_per_element)
    loss = exact(tokens * exact(quantity("loss_bytes_per_element", loss_bytes_per_element)))
    return exact(2 * all_reduce_bytes(whole_activation, t) + 3 * all_reduce_bytes(loss, t))


def pp_bytes_per_microbatch(
    seq_len: int,
    microbatch_size: int,
    hidden_size: int,
    bytes_per_element: int | float = 2,
    shared_over: int = 1,
) -> int | float:
    """One boundary, one way: bsh elements. The gradient that comes back is as large.

    `shared_over`: tensor-parallel ranks that send a part each (scatter/gather of PTD-P, section 4.1; sequence
    parallelism), or context-parallel ranks, times one another. `(2048, 1, 12288)` -> 50,331,648.
    """
    sent = activation_bytes(seq_len, microbatch_size, hidden_size, bytes_per_element)
    return quotient(sent, whole("shared_over", shared_over))


def pp_bytes(
    num_stages: int,
    num_microbatches: int,
    seq_len: int,
    microbatch_size: int,
    hidden_size: int,
    bytes_per_element: int | float = 2,
    stage: int | None = None,
    num_chunks: int = 1,
    shared_over: int = 1,
) -> int | float:
    """What one rank of a pipeline of p ranks sends in a step: activations on, gradients back.

    A rank in the middle sends 2vm messages with v chunks; the first one has nobody to send gradients of its first
    chunk to, the last one nobody to send activations of its last chunk to: (2v-1)m. `stage` is counted from 0; None is
    a rank in the middle where there is one. One rank alone sends nothing.
    `pp_bytes(4, 8, 2048, 1, 12288)` -> 16 x 50,331,648. Source: PTD-P, arXiv 2104.04473, sections 2.2.2 and 3.2.
    """
    p, v = whole("num_stages", num_stages), whole("num_chunks", num_chunks)
    rank = whole("stage", min(1, p - 1) if stage is None else stage, at_least=0, at_most=p - 1)
    each = pp_bytes_per_microbatch(seq_len, microbatch_size, hidden_size, bytes_per_element, shared_over)
    num_messages = 0 if p == 1 else 2 * v - (rank == 0) - (rank == p - 1)
    return num_messages * whole("num_microbatches", num_microbatches) * each


def cp_bytes_per_layer(
    seq_len: int,
    microbatch_size: int,
    num_heads: int,
    head_dim: int,
    context_parallel: int,
    num_kv_heads: int | None = None,
    method: str = "ring",
    bytes_per_element: int | float = 2,
    direction: str = "both",
    grad_bytes_per_element: int | float | None = None,
    grads_come_home: bool | int = True,
) -> int | float:
    """One attention layer whose sequence is split over c ranks.

    ring: K and V of s/c tokens travel c-1 hops forward, and again backward with dK and dV, which take c hops, the
    last one home (c-1 where an implementation starts them at the next rank: `grads_come_home=False`).
    all_gather: K and V gathered forward, and again backward; dK and dV reduce-scattered (Llama 3, arXiv 2407.21783,
    section 3.3.2). ulysses: all-to-alls of q, k, v and the output forward, of their gradients backward, 4 Nh/c
    elements each way for MHA (arXiv 2309.14509, section 3.2); c must divide the heads, and k and v are repeated up to
    c heads where there are fewer. Gradients are of `grad_bytes_per_element`, by default as wide as K and V.
    `cp_bytes_per_layer(8192, 1, 32, 128, 4, num_kv_heads=8, direction="forward")` -> 3 x 2 x 2048 x 1024 x 2 B.
    """
    one_of("method", method, ("ring", "all_gather", "ulysses"))
    one_of("direction", direction, DIRECTIONS)
    c, s, heads = whole("context_parallel", context_parallel), whole("seq_len", seq_len), whole("num_heads", num_heads)
    kv_heads = whole("num_kv_heads", heads if num_kv_heads is None else num_kv_heads)
    if s % c:
        raise KitError(f"seq_len={s} cannot be split over context_parallel={c} ranks")
    if heads % kv_heads:
        raise KitError(f"num_heads={heads} is no multiple of num_kv_heads={kv_heads}")
    each = exact(quantity("bytes_per_element", bytes_per_element))
    grad_each = (
        each if grad_bytes_per_element is None else exact(quantity("grad_bytes_per_element", grad_bytes_per_element))
    )
    local = s // c * whole("microbatch_size", microbatch_size) * whole("head_dim", head_dim)
    if method == "ulysses":
        if heads % c or (kv_heads % c and c % kv_heads):
            raise KitError(f"{heads} heads and {kv_heads} of keys cannot be split over context_parallel={c} ranks")
        exchanged = all_to_all_bytes(exact(local * (2 * heads + 2 * max(kv_heads, c))), c)
        forward, backward = exact(exchanged * each), exact(exchanged * grad_each)
    else:
        key_values = 2 * local * kv_heads
        forward = exact((c - 1) * key_values * each)
        num_grad_hops = c if method == "ring" and grads_come_home and c > 1 else c - 1
        backward = exact(forward + num_grad_hops * key_values * grad_each)
    return exact({"both": forward + backward, "forward": forward, "backward": backward}[direction])


def ep_bytes_per_layer(
    num_tokens: int,
    hidden_size: int,
    top_k: int,
    expert_parallel: int,
    dispatch_bytes_per_element: int | float = 2,
    combine_bytes_per_element: int | float = 2,
    capacity_factor: float | None = None,
    num_experts: int | None = None,
    direction: str = "both",
) -> int | float:
    """One mixture-of-experts layer: an all-to-all to the experts and one back, and both again in backward.

    num_tokens: of one rank. Dropless, routed evenly: k copies of each token, (e-1)/e of them to other ranks. With a
    capacity factor every expert gets `capacity` slots of every rank, full or not: E capacity h elements each way.
    Backward: the combine's gradient goes out as wide as the combine, the dispatch's comes back as wide as that
    (`dispatch_bytes_per_element=1` for fp8 forward would need 2 backward: use `direction`).
    `ep_bytes_per_layer(4096, 4096, 2, 8)` -> 4 x 4096 x 2 x 4096 x 7/8 x 2 B. Source: GShard, arXiv 2006.16668.
    """
    one_of("direction", direction, DIRECTIONS)
    tokens, k = whole("num_tokens", num_tokens), whole("top_k", top_k)
    e, h = whole("expert_parallel", expert_parallel), whole("hidden_size", hidden_size)
    if capacity_factor is None:
        rows = tokens * k
    else:
        experts = whole("num_experts", 0 if num_experts is None else num_experts)
        if experts % e:
            raise KitError(f"num_experts={experts} cannot be split over expert_parallel={e} ranks")
        rows = experts * expert_capacity(tokens, k, experts, capacity_factor)
    one_way = all_to_all_bytes(rows * h, e)
    widths = [
        quantity("dispatch_bytes_per_element", dispatch_bytes_per_element),
        quantity("combine_bytes_per_element", combine_bytes_per_element),
    ]
    return exact((2 if direction == "both" else 1) * one_way * exact(sum(widths)))


def expert_capacity(num_tokens: int, top_k: int, num_experts: int, capacity_factor: float = 1.0) -> int:
    """Slots of one expert for one rank's tokens: ceil(factor k T / E). `expert_capacity(4096, 2, 64, 1.25)` -> 160.

    Source: Switch Transformer, arXiv 2101.03961, section 2.2 (k = 1); GShard, section 2.2 (k = 2).
    """
    even = whole("num_tokens", num_tokens) * whole("top_k", top_k) / whole("num_experts", num_experts)
    return math.ceil(quantity("capacity_factor", capacity_factor) * even - 1e-9)


def ep_bytes_between_nodes(
    num_tokens: int,
    hidden_size: int,
    nodes_per_token: int | float,
    num_nodes: int,
    bytes_per_element: int | float = 2,
) -> int | float:
    """One dispatch of a rank's tokens where a token crosses once to each node that holds an expert of its.

    A token wants `nodes_per_token` nodes of `num_nodes`, of which its own is one with chance nodes_per_token/num_nodes;
    so nodes_per_token (m-1)/m crossings. Inside the node it is copied on over the fast link.
    `ep_bytes_between_nodes(4096, 7168, 4, 8, 1)` -> 4096 x 3.5 x 7168. Source: DeepSeek-V3, arXiv 2412.19437,
    sections 2.1.2 (node-limited routing, 4 nodes) and 3.2.2.
    """
    m, wanted = whole("num_nodes", num_nodes), quantity("nodes_per_token", nodes_per_token)
    if wanted > m:
        raise KitError(f"nodes_per_token={wanted} is more than num_nodes={m}")
    tokens = whole("num_tokens", num_tokens) * whole("hidden_size", hidden_size)
    return exact(
        quotient(exact(tokens * exact(wanted)) * (m - 1), m) * exact(quantity("bytes_per_element", bytes_per_element))
    )


def activation_bytes(
    seq_len: int, microbatch_size: int, hidden_size: int, bytes_per_element: int | float = 2
) -> int | float:
    """bsh elements: what one layer hands to the next."""
    numel = whole("seq_len", seq_len) * whole("microbatch_size", microbatch_size) * whole("hidden_size", hidden_size)
    return exact(numel * exact(quantity("bytes_per_element", bytes_per_element)))
