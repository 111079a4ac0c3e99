"""Small transformers as people write them, for the cost model to be counted against. Any device, also meta."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


def dropout(x: torch.Tensor, probability: float) -> torch.Tensor:
    """With a mask of one byte an element, as on GPUs; F.dropout keeps a mask of x's dtype on CPUs."""
    return x * (torch.rand(x.shape, device=x.device) >= probability) / (1 - probability)


def rms_norm(size: int) -> nn.Module:
    """As many parameters as an RMSNorm, and what a fused one saves; nn.RMSNorm on CPUs saves every step of its own."""
    return nn.LayerNorm(size, bias=False)


class GPTBlock(nn.Module):
    """Pre-LayerNorm, biases, scores kept, dropout where Megatron has it."""

    def __init__(self, hidden_size: int, num_heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        h = hidden_size
        self.num_heads, self.dropout = num_heads, dropout
        self.norm_1, self.norm_2 = nn.LayerNorm(h), nn.LayerNorm(h)
        self.qkv, self.out = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.fc_1, self.fc_2 = nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, h = x.shape
        q, k, v = (
            part.reshape(b, s, self.num_heads, -1).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-1, -2) * (h // self.num_heads) ** -0.5
        attended = dropout(scores.softmax(dim=-1), self.dropout) @ v
        x = x + dropout(self.out(attended.transpose(1, 2).reshape(b, s, h)), self.dropout)
        return x + dropout(self.fc_2(F.gelu(self.fc_1(self.norm_2(x)))), self.dropout)


class GPT(nn.Module):
    """The modules of a GPT; the output matrix is the embedding."""

    def __init__(self, num_layers: int, hidden_size: int, num_heads: int, vocab_size: int, max_positions: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, hidden_size)
        self.positions = nn.Embedding(max_positions, hidden_size)
        self.blocks = nn.ModuleList(GPTBlock(hidden_size, num_heads) for _ in range(num_layers))
        self.norm = nn.LayerNorm(hidden_size)


class SwiGLU(nn.Module):
    def __init__(self, hidden_size: int, ffn_size: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden_size, ffn_size, bias=False)
        self.up = nn.Linear(hidden_size, ffn_size, bias=False)
        self.down = nn.Linear(ffn_size, hidden_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class MoE(nn.Module):
    """Holds a router with or without a bias for each expert, routed and shared experts."""

    def __init__(self, hidden_size: int, ffn_size: int, num_experts: int, num_shared: int, has_bias: bool) -> None:
        super().__init__()
        self.router = nn.Linear(hidden_size, num_experts, bias=has_bias)
        self.experts = nn.ModuleList(SwiGLU(hidden_size, ffn_size) for _ in range(num_experts))
        self.shared = nn.ModuleList(SwiGLU(hidden_size, ffn_size) for _ in range(num_shared))


class GroupedAttention(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int, num_kv_heads: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        kv_width = hidden_size // num_heads * num_kv_heads
        self.q = nn.Linear(hidden_size, hidden_size, bias=qkv_bias)
        self.k = nn.Linear(hidden_size, kv_width, bias=qkv_bias)
        self.v = nn.Linear(hidden_size, kv_width, bias=qkv_bias)
        self.out = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, h = x.shape
        q = self.q(x).reshape(b, s, self.num_heads, -1).transpose(1, 2)
        k = self.k(x).reshape(b, s, self.num_kv_heads, -1).transpose(1, 2)
        v = self.v(x).reshape(b, s, self.num_kv_heads, -1).transpose(1, 2)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(attended.transpose(1, 2).reshape(b, s, h))


class LatentAttention(nn.Module):
    """The modules of multi-head latent attention."""

    def __init__(self, hidden_size: int, num_heads: int, q_rank: int, kv_rank: int, nope: int, rope: int, v: int):
        super().__init__()
        self.q_down, self.q_norm = nn.Linear(hidden_size, q_rank, bias=False), rms_norm(q_rank)
        self.q_up = nn.Linear(q_rank, num_heads * (nope + rope), bias=False)
        self.kv_down, self.kv_norm = nn.Linear(hidden_size, kv_rank + rope, bias=False), rms_norm(kv_rank)
        self.kv_up = nn.Linear(kv_rank, num_heads * (nope + v), bias=False)
        self.out = nn.Linear(num_heads * v, hidden_size, bias=False)


class LlamaBlock(nn.Module):
    def __init__(self, hidden_size: int, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = rms_norm(hidden_size), rms_norm(hidden_size)
        self.attention, self.mlp = attention, mlp

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class Llama(nn.Module):
    def __init__(self, hidden_size: int, vocab_size: int, blocks: list[LlamaBlock]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, hidden_size)
        self.blocks = nn.ModuleList(blocks)
        self.norm = rms_norm(hidden_size)
        self.head = nn.Linear(hidden_size, vocab_size, bias=False)


def num_params(module: nn.Module) -> int:
    return sum(param.numel() for param in module.parameters())


def saved_bytes(module: nn.Module, x: torch.Tensor) -> int:
    """Bytes of the distinct storages that autograd keeps for a backward of module(x), parameters left out."""
    kept: dict[int, torch.Tensor] = {}
    own = {param.untyped_storage().data_ptr() for param in module.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in own:
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = module(x)
    assert output.requires_grad
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
