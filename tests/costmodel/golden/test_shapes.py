"""Parameters of published models against what their sources print."""

from __future__ import annotations

import pytest

from kit.costmodel import recipes, shapes

# PTD-P, arXiv 2104.04473, Table 1: V = 51200, s = 2048; layers, hidden size, billions as printed.
PTDP = [
    (24, 2304, "1.7"),
    (30, 3072, "3.6"),
    (36, 4096, "7.5"),
    (40, 6144, "18.4"),
    (48, 8192, "39.1"),
    (60, 10240, "76.1"),
    (80, 12288, "145.6"),
    (96, 16384, "310.1"),
    (105, 20480, "529.6"),
    (128, 25600, "1008.0"),
]


@pytest.mark.parametrize(("num_layers", "hidden_size", "printed"), PTDP)
def test_parameters_of_table_1_of_ptdp(num_layers: int, hidden_size: int, printed: str) -> None:
    params = shapes.ptdp_params(num_layers, hidden_size, 51200, 2048)
    assert f"{params / 1e9:.1f}" == printed
    name = f"ptdp-{printed}b" if printed != "1008.0" else "ptdp-1t"
    assert shapes.model_params(name) == params + 2 * hidden_size  # the final LayerNorm, which equation 2 leaves out


# GPT-3, arXiv 2005.14165, Table D.1, millions.
GPT3 = {
    "gpt3-small": 125,
    "gpt3-medium": 356,
    "gpt3-large": 760,
    "gpt3-xl": 1320,
    "gpt3-2.7b": 2650,
    "gpt3-6.7b": 6660,
    "gpt3-13b": 12850,
    "gpt3-175b": 174600,
}


@pytest.mark.parametrize("model", GPT3)
def test_parameters_of_table_d1_of_gpt_3(model: str) -> None:
    millions = shapes.model_params(model) / 1e6
    printed = GPT3[model]
    digit = 1 if printed < 1000 else 10 if printed < 100_000 else 100
    assert abs(millions - printed) <= digit / 2


def test_gpt_3_xl_and_13b_are_not_the_shapes_that_table_2_1_prints() -> None:
    """Trap: Table 2.1 gives XL 24 heads of 128 at a hidden size of 2048, and 13B a hidden size of 5140."""
    common = {"vocab_size": 50257, "max_positions": 2048}
    xl = shapes.shape_of(num_layers=24, hidden_size=2048, num_heads=24, head_size=128, **common)
    assert round(shapes.params_of(xl) / 1e6) == 1517  # Table D.1: 1320
    assert round(shapes.gpt_params(40, 5140, 50257, 2048) / 1e6) == 12953  # Table D.1: 12850


@pytest.mark.parametrize(("model", "printed"), [("palm-8b", 8.63), ("palm-62b", 62.50), ("palm-540b", 540.35)])
def test_parameters_of_palm(model: str, printed: float) -> None:
    """PaLM, arXiv 2204.02311, Table 1; 540B counts 540.356 and the print cuts it off."""
    assert abs(shapes.model_params(model) / 1e9 - printed) < 0.01


EXACT = {
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "bloom-176b": 176_247_271_424,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3.1-8b": 8_030_261_248,
    "llama3.1-70b": 70_553_706_496,
    "llama3.1-405b": 405_853_388_800,
    "mistral-7b": 7_241_732_096,
    "qwen2.5-7b": 7_615_616_512,
    "mixtral-8x7b": 46_702_792_704,
}


@pytest.mark.parametrize("model", EXACT)
def test_exact_parameters_of_published_weights(model: str) -> None:
    """Elements of the tensors published with each model."""
    assert shapes.model_params(model) == EXACT[model]


@pytest.mark.parametrize("model", shapes.names())
def test_each_model_counts_what_its_source_prints(model: str) -> None:
    """Exactly where the source counts exactly, else within 1%; 1.7B of PTD-P is printed from 1.652B."""
    _, printed, source = shapes.named_models()[model]
    assert source == shapes.source_of(model) and source
    if isinstance(printed, int):
        assert shapes.model_params(model) == printed
    else:
        assert shapes.model_params(model) == pytest.approx(printed, rel=0.03 if model == "ptdp-1.7b" else 0.012)


def test_deepseek_v3_has_671_billion_of_which_a_token_uses_37() -> None:
    """arXiv 2412.19437, abstract; README_WEIGHTS: 36.6B with the output head of 0.9B and without the embedding."""
    assert round(shapes.model_params("deepseek-v3") / 1e9) == 671
    active = shapes.model_params("deepseek-v3", "active") - shapes.model_params("deepseek-v3", "embedding")
    assert round(active / 1e9, 1) == 36.6
    assert round(shapes.model_params("deepseek-v3", "head") / 1e9, 1) == 0.9


def test_the_mtp_module_of_deepseek_v3_is_one_more_layer_of_11_5_billion() -> None:
    """README_WEIGHTS: 11.5B of its own. With the projection from 2h to h and three norms it would print 11.6."""
    h, layer = shapes.model_figure("deepseek-v3", "hidden_size"), shapes.model_params("deepseek-v3", "layer")
    assert round(layer / 1e9, 1) == 11.5
    assert round((layer + 2 * h * h + 3 * h) / 1e9, 1) == 11.6


def test_mixtral_uses_13_billion_for_each_token() -> None:
    """arXiv 2401.04088: 47B in all, 13B active."""
    assert round(shapes.model_params("mixtral-8x7b") / 1e9) == 47
    assert round(shapes.model_params("mixtral-8x7b", "active") / 1e9) == 13
    assert shapes.moe_params(32, 4096, 32, 8, 14336, 32000, 8, 2) == shapes.model_params("mixtral-8x7b")


# GPipe, arXiv 1811.06965, Table 1: a Transformer of 8192 in the MLP, d = 2048, vocabulary 32000; GiB, 12 bytes each.
GPIPE = [
    (3, 282.2e6, 0.1e6, 3.15),
    (13, 785.8e6, 0.1e6, 8.8),
    (103, 5.3e9, 0.05e9, 59.5),
    (415, 21.0e9, 0.05e9, 235.1),
    (1663, 83.9e9, 0.05e9, 937.9),
]


@pytest.mark.parametrize(("num_layers", "printed", "digit", "gibibytes"), GPIPE)
def test_table_1_of_gpipe(num_layers: int, printed: float, digit: float, gibibytes: float) -> None:
    """Trap: Naive-1 (3 layers) prints its two memories in each other's rows, 11.7 for parameters and 3.15 above."""
    params = shapes.gpt_params(num_layers, 2048, 32000, 0, tied_embeddings=False)
    assert abs(params - printed) <= digit
    assert params * recipes.bytes_per_param("fp32_rmsprop") / 2**30 == pytest.approx(gibibytes, rel=3e-3)


def test_weights_of_llama_3_1_at_three_precisions() -> None:
    """Hugging Face blog on Llama 3.1: fp16 16, 140, 810 GB; fp8 8, 70, 405; int4 4, 35, 203; from rounded sizes."""
    printed = {"llama3.1-8b": (16, 8, 4), "llama3.1-70b": (140, 70, 35), "llama3.1-405b": (810, 405, 203)}
    for model, row in printed.items():
        nominal = int(model.rsplit("-", 1)[1].removesuffix("b")) * 1e9
        assert nominal == pytest.approx(shapes.model_params(model), rel=0.01)
        assert [int(nominal * each / 1e9 + 0.5) for each in (2, 1, 0.5)] == list(row)
