"""KV caches against what vendors print."""

from __future__ import annotations

import pytest

from kit.costmodel import kv_cache


def test_llama_2_7b_needs_2_gib_for_4096_tokens() -> None:
    """NVIDIA, Mastering LLM Techniques: Inference Optimization: about 2 GB at batch 1."""
    assert kv_cache.cache_bytes(4096, 1, 32, 32, 128) == 2 * 2**30
    assert kv_cache.model_cache_bytes("llama2-7b", 4096) == 2 * 2**30


# Hugging Face blog on Llama 3.1: "GB" are GiB, 1k is 1024 tokens, 16k is 16000 and 128k 128000.
TOKENS = (1024, 16000, 128000)
PRINTED = {
    "llama3.1-8b": ("0.125", "1.95", "15.62"),
    "llama3.1-70b": ("0.313", "4.88", "39.06"),
}


@pytest.mark.parametrize("model", PRINTED)
def test_llama_3_1_in_the_units_of_its_blog(model: str) -> None:
    for tokens, printed in zip(TOKENS, PRINTED[model], strict=True):
        gibibytes = kv_cache.model_cache_bytes(model, tokens) / 2**30
        digits = len(printed.split(".")[1])
        assert abs(gibibytes - float(printed)) <= 0.5 * 10**-digits * (1 + 1e-9)


def test_llama_3_1_405b_has_8_kv_heads_and_the_blog_counts_16() -> None:
    """Trap: the first checkpoint on Hugging Face held each head twice. Llama 3, arXiv 2407.21783, Table 3: 8."""
    doubled = [kv_cache.cache_bytes(tokens, 1, 126, 16, 128) / 2**30 for tokens in TOKENS]
    assert doubled == pytest.approx([0.984, 15.38, 123.05], abs=0.005)
    true = [kv_cache.model_cache_bytes("llama3.1-405b", tokens) / 2**30 for tokens in TOKENS]
    assert true == pytest.approx([0.492, 7.69, 61.52], abs=0.005)
    assert true == [each / 2 for each in doubled]


def test_deepseek_v3_caches_70_kb_a_token() -> None:
    """Insights into DeepSeek-V3, arXiv 2505.09343, Table 1: 70.272 KB, Llama 3.1 405B 516.096 KB; KB are 1000s."""
    assert kv_cache.model_bytes_per_token("deepseek-v3") == 70272
    assert kv_cache.model_bytes_per_token("llama3.1-405b") == 516096


def test_opt_13b_needs_800_kib_a_token() -> None:
    """PagedAttention, arXiv 2309.06180, section 3: 2 x 5120 x 40 x 2 bytes, printed as 800 KB."""
    assert kv_cache.bytes_per_token(40, 40, 128) == 800 * 1024
