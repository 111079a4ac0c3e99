"""Shapes of transformers and their parameters, counted exactly: every bias and norm, GQA, SwiGLU, MoE, MLA.

Named models are data in models.yaml, each with its source. A count is a whole number of elements.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import yaml

from kit.costmodel.arguments import exact, one_of, whole
from kit.errors import KitError

FILE = Path(__file__).resolve().parent / "models.yaml"

PARTS = (
    "total",
    "active",
    "embedding",
    "positions",
    "head",
    "layers",
    "layer",
    "attention",
    "mlp",
    "expert",
    "router",
    "norms",
    "without_embedding",
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder. Zero stands for "has none": positions (rotary, ALiBi), experts, ranks of MLA.

    `head_size` is of queries and keys; with MLA it is qk_nope_size + qk_rope_size, and `v_head_size` may differ.
    `norms_per_layer` is 1 where attention and MLP run side by side (PaLM). A dense layer's MLP is `ffn_size` wide,
    an expert `expert_ffn_size`; the first `num_dense_layers` are dense, the others have experts if there are any.
    """

    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    v_head_size: int
    ffn_size: int
    vocab_size: int
    max_positions: int = 0
    tied_embeddings: bool = True
    gated: bool = False
    linear_biases: bool = True
    has_qkv_bias: bool = False
    norm: str = "layernorm"
    norms_per_layer: int = 2
    has_embedding_norm: bool = False
    num_experts: int = 0
    num_shared_experts: int = 0
    experts_per_token: int = 0
    expert_ffn_size: int = 0
    num_dense_layers: int = 0
    has_router_bias: bool = False
    attention: str = "standard"
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_size: int = 0
    qk_rope_size: int = 0

    @property
    def num_moe_layers(self) -> int:
        return self.num_layers - self.num_dense_layers if self.num_experts else 0

    @property
    def norm_params(self) -> int:
        """One norm over the hidden size."""
        return self.hidden_size * (2 if self.norm == "layernorm" else 1)

    @property
    def attention_params(self) -> int:
        """Projections of one layer, their biases, and MLA's norms of the compressed q and kv."""
        h, a = self.hidden_size, self.num_heads
        if self.attention == "mla":
            rank = self.q_lora_rank
            query = rank * (h + 1 + a * self.head_size) if rank else h * a * self.head_size
            down = h * (self.kv_lora_rank + self.qk_rope_size) + self.kv_lora_rank
            up = self.kv_lora_rank * a * (self.qk_nope_size + self.v_head_size)
            return query + down + up + a * self.v_head_size * h
        q_width, kv_width = a * self.head_size, 2 * self.num_kv_heads * self.head_size
        weights = h * (q_width + kv_width) + q_width * h
        biases = (q_width + kv_width) * (self.linear_biases or self.has_qkv_bias) + h * self.linear_biases
        return weights + biases

    def mlp_params(self, ffn_size: int) -> int:
        num_in = 2 if self.gated else 1
        biases = num_in * ffn_size + self.hidden_size if self.linear_biases else 0
        return (num_in + 1) * self.hidden_size * ffn_size + biases

    @property
    def expert_params(self) -> int:
        """One expert of one layer."""
        return self.mlp_params(self.expert_ffn_size) if self.num_experts else 0

    @property
    def router_params(self) -> int:
        """One layer's; DeepSeek's also holds one bias an expert, which is no gradient's business but is stored."""
        return self.num_experts * (self.hidden_size + self.has_router_bias)

    @property
    def dense_layer_params(self) -> int:
        return self.attention_params + self.mlp_params(self.ffn_size) + self.norms_per_layer * self.norm_params

    def moe_layer_params(self, num_routed: int) -> int:
        """A layer with `num_routed` of its routed experts, and all that are shared."""
        around = self.attention_params + self.router_params + self.norms_per_layer * self.norm_params
        return around + (num_routed + self.num_shared_experts) * self.expert_params

    @property
    def embedding_params(self) -> int:
        return self.vocab_size * self.hidden_size

    @property
    def position_params(self) -> int:
        return self.max_positions * self.hidden_size

    def layers_params(self, num_routed: int) -> int:
        dense = (self.num_layers - self.num_moe_layers) * self.dense_layer_params
        return dense + (self.num_moe_layers * self.moe_layer_params(num_routed) if self.num_moe_layers else 0)

    def total_params(self, num_routed: int | None = None) -> int:
        """With `num_routed` of the routed experts in each layer, all of them by default."""
        outside = self.embedding_params * (1 if self.tied_embeddings else 2) + self.position_params
        norms = self.norm_params * (2 if self.has_embedding_norm else 1)
        return outside + norms + self.layers_params(self.num_experts if num_routed is None else num_routed)


def shape_of(**values: int | float | bool | str) -> Shape:
    """A shape from its own figures, the rest filled in: heads share nothing, head_size = h/a, the MLP is 4h wide.

    Raises KitError for unknown names, and for figures that do not fit one another.
    """
    known = {field.name for field in fields(Shape)}
    for name in values:
        one_of("a shape's figure", name, known)
    filled = {name: exact(value) if isinstance(value, float) else value for name, value in values.items()}
    h = whole("hidden_size", filled.get("hidden_size"))
    a = whole("num_heads", filled.get("num_heads"))
    if filled.setdefault("attention", "standard") == "mla":
        filled["head_size"] = sum(
            whole(name, filled.get(name), at_least=0) for name in ("qk_nope_size", "qk_rope_size")
        )
    elif not filled.get("head_size") and h % a:
        raise KitError(f"hidden_size={h} does not divide over num_heads={a}", hint="give head_size")
    filled["head_size"] = filled.get("head_size") or h // a
    filled["v_head_size"] = filled.get("v_head_size") or filled["head_size"]
    filled["num_kv_heads"] = filled.get("num_kv_heads") or a
    filled.setdefault("ffn_size", 4 * h)
    return checked(Shape(**filled))  # type: ignore[arg-type]


def checked(shape: Shape) -> Shape:
    """The shape if its figures fit one another. Raises KitError that says which do not."""
    for field in fields(Shape):
        value = getattr(shape, field.name)
        if not isinstance(value, bool | str):
            needed = field.name in ("num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_size", "vocab_size")
            whole(field.name, value, at_least=1 if needed else 0)
    one_of("norm", shape.norm, ("layernorm", "rmsnorm"))
    one_of("attention", shape.attention, ("standard", "mla"))
    if shape.num_heads % shape.num_kv_heads:
        raise KitError(f"num_heads={shape.num_heads} do not share num_kv_heads={shape.num_kv_heads} evenly")
    if shape.experts_per_token > shape.num_experts:
        raise KitError(f"experts_per_token={shape.experts_per_token} are more than num_experts={shape.num_experts}")
    if shape.num_dense_layers > shape.num_layers:
        raise KitError(f"num_dense_layers={shape.num_dense_layers} are more than num_layers={shape.num_layers}")
    return shape


def kv_heads_of_rank(num_kv_heads: int, ranks: int) -> int:
    """Key-value heads that one rank holds: g/t, or one that others hold too. Raises KitError where neither divides."""
    g, t = whole("num_kv_heads", num_kv_heads), whole("tensor_parallel", ranks)
    if g % t and t % g:
        raise KitError(f"num_kv_heads={g} can neither be split nor replicated evenly over tensor_parallel={t} ranks")
    return max(g // t, 1)


@cache
def named_models() -> dict[str, tuple[Shape, float, str]]:
    """name -> (shape, parameters as the source prints them, source), from models.yaml."""
    held = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    found = {}
    for name, figures in held["models"].items():
        figures = {**held["families"][figures["family"]], **figures}
        printed, source = figures.pop("parameters"), figures.pop("source")
        del figures["family"]
        found[name] = (shape_of(**figures), printed, source)
    return found


def names() -> tuple[str, ...]:
    """The models that come with the kit."""
    return tuple(named_models())


def shape_named(model: str) -> Shape:
    """Raises KitError that lists the known ones."""
    return named_models()[one_of("model", model, named_models())][0]


def source_of(model: str) -> str:
    """Where a model's shape was read."""
    return named_models()[one_of("model", model, named_models())][2]


def params_of(shape: Shape, part: str = "total") -> int:
    """As `model_params`, of a shape."""
    one_of("part", part, PARTS)
    last_layer = shape.moe_layer_params(shape.num_experts) if shape.num_moe_layers else shape.dense_layer_params
    last_mlp = (shape.num_experts + shape.num_shared_experts) * shape.expert_params
    total_norms = shape.num_layers * shape.norms_per_layer + (2 if shape.has_embedding_norm else 1)
    return {
        "total": shape.total_params(),
        "active": shape.total_params(shape.experts_per_token),
        "embedding": shape.embedding_params,
        "positions": shape.position_params,
        "head": 0 if shape.tied_embeddings else shape.embedding_params,
        "layers": shape.layers_params(shape.num_experts),
        "layer": last_layer,
        "attention": shape.attention_params,
        "mlp": last_mlp if shape.num_moe_layers else shape.mlp_params(shape.ffn_size),
        "expert": shape.expert_params,
        "router": shape.router_params,
        "norms": total_norms * shape.norm_params,
        "without_embedding": shape.total_params() - shape.embedding_params - shape.position_params,
    }[part]


def model_params(model: str, part: str = "total") -> int:
    """Parameters of a named model, or of a part. `model_params("llama2-7b")` -> 6738415616.

    Parts: total; active (routed experts that one token uses, and all else, embedding included); embedding; positions;
    head (0 where it is tied to the embedding); layers (all, without the final norm); layer, attention, mlp, expert,
    router (one layer's, the last layer); norms (all of the model's); without_embedding (total less embedding and
    positions). Source: `source_of(model)`.
    """
    return params_of(shape_named(model), part)


def model_figure(model: str, figure: str) -> int:
    """A number of a named model's shape. `model_figure("llama3.1-70b", "num_kv_heads")` -> 8."""
    numbers = [field.name for field in fields(Shape) if field.type == "int"]
    return int(getattr(shape_named(model), one_of("figure", figure, numbers)))


def gpt_params(
    num_layers: int,
    hidden_size: int,
    vocab_size: int,
    max_positions: int,
    ffn_size: int = 0,
    tied_embeddings: bool | int = True,
) -> int:
    """Parameters of a GPT: biases everywhere, LayerNorms with biases, learned positions, a final LayerNorm.

    12 l h^2 + 13 l h + (V + P) h + 2h with an MLP of 4h (ffn_size=0 means that) and the output tied to the embedding.
    `gpt_params(12, 768, 50257, 1024)` -> 124439808, GPT-2. Source: GPT-2's code; counted on modules in the tests.
    """
    shape = shape_of(
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_heads=1,
        vocab_size=vocab_size,
        max_positions=max_positions,
        ffn_size=ffn_size or 4 * hidden_size,
        tied_embeddings=bool(tied_embeddings),
    )
    return shape.total_params()


def ptdp_params(num_layers: int, hidden_size: int, vocab_size: int, seq_len: int) -> int:
    """12 l h^2 (1 + 13/(12h) + (V + s)/(12 l h)): a GPT without its final LayerNorm.

    `ptdp_params(96, 16384, 51200, 2048)` -> 310.1e9. Source: PTD-P, arXiv 2104.04473, equation 2.
    """
    return gpt_params(num_layers, hidden_size, vocab_size, seq_len) - 2 * whole("hidden_size", hidden_size)


def llama_params(
    num_layers: int,
    hidden_size: int,
    num_heads: int,
    num_kv_heads: int,
    ffn_size: int,
    vocab_size: int,
    tied_embeddings: bool | int = False,
) -> int:
    """Parameters of a Llama: no biases, RMSNorms, SwiGLU's three matrices, GQA, rotary positions.

    l (2h^2 + 2h^2 g/a + 3hf + 2h) + 2Vh + h, with g key-value heads. `llama_params(32, 4096, 32, 8, 14336, 128256)`
    -> 8030261248. Sources: arXiv 2302.13971, section 2.2; arXiv 2407.21783, section 3.2.
    """
    shape = shape_of(
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=whole("num_kv_heads", num_kv_heads),
        ffn_size=ffn_size,
        vocab_size=vocab_size,
        tied_embeddings=bool(tied_embeddings),
        gated=True,
        linear_biases=False,
        norm="rmsnorm",
    )
    return shape.total_params()


def moe_params(
    num_layers: int,
    hidden_size: int,
    num_heads: int,
    num_kv_heads: int,
    expert_ffn_size: int,
    vocab_size: int,
    num_experts: int,
    experts_per_token: int,
    num_shared_experts: int = 0,
    part: str = "total",
) -> int:
    """Parameters of a Llama whose every MLP is a mixture of SwiGLU experts: "total" or "active" for each token.

    A layer holds num_experts + num_shared_experts experts of 3hf and a router of h x num_experts; a token uses
    experts_per_token and the shared. `moe_params(32, 4096, 32, 8, 14336, 32000, 8, 2)` -> 46702792704, Mixtral 8x7B;
    "active" -> 12879925248. Source: arXiv 2401.04088, section 2.
    """
    shape = shape_of(
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=whole("num_kv_heads", num_kv_heads),
        ffn_size=0,
        expert_ffn_size=whole("expert_ffn_size", expert_ffn_size),
        vocab_size=vocab_size,
        num_experts=whole("num_experts", num_experts),
        num_shared_experts=num_shared_experts,
        experts_per_token=whole("experts_per_token", experts_per_token),
        tied_embeddings=False,
        gated=True,
        linear_biases=False,
        norm="rmsnorm",
    )
    return params_of(shape, one_of("part", part, ("total", "active")))


def mla_attention_params(
    hidden_size: int,
    num_heads: int,
    q_lora_rank: int,
    kv_lora_rank: int,
    qk_nope_size: int,
    qk_rope_size: int,
    v_head_size: int,
) -> int:
    """Parameters of one layer of multi-head latent attention, its two norms included.

    q: r_q (h + 1 + a(d_nope + d_rope)), or h a (d_nope + d_rope) uncompressed with q_lora_rank=0;
    kv: h (r_kv + d_rope) + r_kv + r_kv a (d_nope + d_v); output: a d_v h.
    `mla_attention_params(7168, 128, 1536, 512, 128, 64, 128)` -> 187107328. Source: arXiv 2412.19437, section 2.1.1.
    """
    return shape_of(
        num_layers=1,
        hidden_size=hidden_size,
        num_heads=num_heads,
        vocab_size=1,
        attention="mla",
        q_lora_rank=whole("q_lora_rank", q_lora_rank, at_least=0),
        kv_lora_rank=whole("kv_lora_rank", kv_lora_rank),
        qk_nope_size=whole("qk_nope_size", qk_nope_size, at_least=0),
        qk_rope_size=whole("qk_rope_size", qk_rope_size, at_least=0),
        v_head_size=whole("v_head_size", v_head_size),
    ).attention_params
