"""Parameters counted by formula against the parameters of torch modules."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kit.costmodel import shapes
from kit.errors import KitError
from tests.costmodel import modules


@pytest.mark.parametrize("sizes", [(1, 64, 4, 100, 32), (3, 96, 6, 257, 48), (12, 768, 12, 50257, 1024)])
def test_gpt_is_counted_like_its_modules(sizes: tuple[int, ...]) -> None:
    layers, hidden, heads, vocab, positions = sizes
    with torch.device("meta"):
        model = modules.GPT(layers, hidden, heads, vocab, positions)
    assert shapes.gpt_params(layers, hidden, vocab, positions) == modules.num_params(model)
    shape = shapes.shape_of(
        num_layers=layers, hidden_size=hidden, num_heads=heads, vocab_size=vocab, max_positions=positions
    )
    parts = {
        "embedding": model.embedding,
        "positions": model.positions,
        "layers": model.blocks,
        "layer": model.blocks[0],
        "mlp": nn.ModuleList([model.blocks[0].fc_1, model.blocks[0].fc_2]),
        "attention": nn.ModuleList([model.blocks[0].qkv, model.blocks[0].out]),
        "norms": nn.ModuleList(module for module in model.modules() if isinstance(module, nn.LayerNorm)),
    }
    for part, module in parts.items():
        assert shapes.params_of(shape, part) == modules.num_params(module), part


def llama(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, bias: bool) -> nn.Module:
    with torch.device("meta"):
        blocks = [
            modules.LlamaBlock(
                hidden, modules.GroupedAttention(hidden, heads, kv_heads, bias), modules.SwiGLU(hidden, ffn)
            )
            for _ in range(layers)
        ]
        return modules.Llama(hidden, vocab, blocks)


@pytest.mark.parametrize("sizes", [(1, 64, 4, 4, 96, 100), (2, 96, 6, 2, 250, 33), (32, 4096, 32, 8, 14336, 128256)])
def test_llama_is_counted_like_its_modules(sizes: tuple[int, ...]) -> None:
    assert shapes.llama_params(*sizes) == modules.num_params(llama(*sizes, bias=False))


def test_biases_of_qkv_alone_are_counted() -> None:
    shape = shapes.shape_named("qwen2.5-7b")
    sizes = (shape.num_layers, shape.hidden_size, shape.num_heads, shape.num_kv_heads, shape.ffn_size)
    module = llama(*sizes, shape.vocab_size, bias=True)
    assert shape.total_params() == modules.num_params(module)
    assert shape.attention_params == modules.num_params(module.blocks[0].attention)


def test_deepseek_v3_is_counted_like_its_modules() -> None:
    with torch.device("meta"):
        dense = modules.SwiGLU(7168, 18432)
        attention = modules.LatentAttention(7168, 128, 1536, 512, 128, 64, 128)
        # A bias of the router stands for the one that balances the load.
        experts = modules.MoE(7168, 2048, 256, 1, has_bias=True)
        mlps = [dense] * 3 + [experts] * 58
        model = modules.Llama(7168, 129280, [modules.LlamaBlock(7168, attention, mlp) for mlp in mlps])
    outside = modules.num_params(model.embedding) + modules.num_params(model.head) + modules.num_params(model.norm)
    layers = sum(modules.num_params(block) for block in model.blocks)  # shared modules count in every block
    assert shapes.model_params("deepseek-v3") == outside + layers
    assert shapes.model_params("deepseek-v3", "attention") == modules.num_params(attention)
    assert shapes.model_params("deepseek-v3", "mlp") == modules.num_params(experts) - 256 * 7169
    assert shapes.model_params("deepseek-v3", "router") == modules.num_params(experts.router)
    assert shapes.mla_attention_params(7168, 128, 1536, 512, 128, 64, 128) == modules.num_params(attention)


def test_uncompressed_queries_of_mla_are_one_matrix() -> None:
    """DeepSeek-V2-Lite has q_lora_rank none."""
    without = shapes.mla_attention_params(2048, 16, 0, 512, 128, 64, 128)
    compressed = shapes.mla_attention_params(2048, 16, 1, 512, 128, 64, 128)
    assert without - compressed == 2048 * 16 * 192 - (2048 + 1 + 16 * 192)


def test_what_a_token_uses_of_a_mixture_leaves_out_the_other_experts() -> None:
    sizes = {"num_layers": 5, "hidden_size": 64, "num_heads": 4, "num_kv_heads": 2, "expert_ffn_size": 48}
    sizes |= {"vocab_size": 100, "num_experts": 8, "experts_per_token": 2, "num_shared_experts": 1}
    unused = 5 * 6 * 3 * 64 * 48
    assert shapes.moe_params(**sizes) - shapes.moe_params(**sizes, part="active") == unused


def test_a_tied_output_matrix_is_counted_once() -> None:
    sizes = (2, 64, 4, 4, 96, 100)
    assert shapes.llama_params(*sizes) - shapes.llama_params(*sizes, tied_embeddings=True) == 64 * 100
    assert shapes.model_params("gpt2", "head") == 0
    assert shapes.model_params("llama2-7b", "head") == 32000 * 4096


def test_whole_numbers_may_come_as_floats_and_counts_stay_exact() -> None:
    for count in (
        shapes.gpt_params(12.0, 768.0, 50257.0, 1024.0),
        shapes.llama_params(32.0, 4096.0, 32.0, 8.0, 14336.0, 128256.0),
    ):
        assert type(count) is int
    assert shapes.gpt_params(12.0, 768.0, 50257.0, 1024.0) == 124_439_808


def test_key_value_heads_of_a_rank() -> None:
    assert [shapes.kv_heads_of_rank(8, ranks) for ranks in (1, 2, 8, 16, 64)] == [8, 4, 1, 1, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: shapes.kv_heads_of_rank(8, 3),
            "num_kv_heads=8 can neither be split nor replicated evenly over tensor_parallel=3 ranks",
        ),
        (lambda: shapes.shape_of(num_layers=1, hidden_size=10, num_heads=4, vocab_size=1), "hidden_size=10 does not"),
        (lambda: shapes.llama_params(1, 64, 6, 4, 96, 100), "hidden_size=64 does not divide over num_heads=6"),
        (lambda: shapes.llama_params(1, 96, 6, 4, 96, 100), "num_heads=6 do not share num_kv_heads=4 evenly"),
        (lambda: shapes.gpt_params(0, 64, 100, 10), "num_layers must be a whole number of at least 1, got 0"),
        (lambda: shapes.gpt_params(1, 64, -5, 10), "vocab_size must be a whole number of at least 1, got -5"),
        (lambda: shapes.model_params("gpt5"), "model must be one of gpt2, "),
        (lambda: shapes.model_params("gpt2", "bias"), "part must be one of total, active, "),
        (lambda: shapes.model_figure("gpt2", "norm"), "figure must be one of num_layers, "),
        (lambda: shapes.shape_of(num_layer=1), "a shape's figure must be one of "),
        (
            lambda: shapes.moe_params(1, 64, 4, 4, 96, 100, num_experts=4, experts_per_token=5),
            "experts_per_token=5 are more than num_experts=4",
        ),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message.startswith(message)
