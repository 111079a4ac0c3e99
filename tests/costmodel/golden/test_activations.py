"""Activations against the papers' tables, and against what they print wrong."""

from __future__ import annotations

import pytest

from kit.costmodel import activations, estimators, flops

# Korthikanti et al., arXiv 2205.05198, Table 3: heads, hidden size, layers, tp, pp, microbatch; s = 2048, V = 51200.
TABLE_3 = {
    "megatron-22b": (64, 6144, 48, 8, 1, 4),
    "megatron-175b": (96, 12288, 96, 8, 8, 1),
    "ptdp-529.6b": (128, 20480, 105, 8, 35, 1),
    "ptdp-1t": (160, 25600, 128, 8, 64, 1),
}
# Table 2's formulas with these shapes, MiB of one layer: none, tp, tp sp, tp selective, tp sp selective, full.
MEBIBYTES = {
    "megatron-22b": [6752, 1264, 844, 624, 204, 96],
    "megatron-175b": [2736, 552, 342, 312, 102, 48],
    "ptdp-529.6b": [3920, 840, 490, 520, 170, 80],
    "ptdp-1t": [4900, 1050, 612.5, 650, 212.5, 100],
}
WAYS = [
    (1, False, "none"),
    (8, False, "none"),
    (8, True, "none"),
    (8, False, "selective"),
    (8, True, "selective"),
    (8, False, "full"),
]


@pytest.mark.parametrize("model", TABLE_3)
def test_layers_of_table_2(model: str) -> None:
    heads, hidden, _, _, _, microbatch = TABLE_3[model]
    got = [activations.layer_bytes(2048, microbatch, hidden, heads, *way) / 2**20 for way in WAYS]
    assert got == MEBIBYTES[model]


@pytest.mark.parametrize("model", TABLE_3)
def test_first_stage_of_table_3_holds_all_layers_worth(model: str) -> None:
    """Section 4.2.3: with 1F1B the first of p stages holds L/p layers of p microbatches, L layers in all."""
    heads, hidden, layers, tp, pp, microbatch = TABLE_3[model]
    got = activations.stage_bytes(model, 2048, microbatch, tp, True, "selective", 1, pp, pp)
    layer = activations.layer_bytes(2048, microbatch, hidden, heads, tp, True, "selective")
    mask = 2048 * microbatch * hidden * pp // tp
    head = 4 * 2048 * microbatch * (hidden + 51200) // tp if pp == 1 else 0
    assert got == layers * layer + mask + head


def test_interleaving_holds_1_plus_p_minus_1_over_pv_times_more() -> None:
    """Section 4.2.3; v = 3 for the paper's 175B and 530B."""
    for p in (8, 35):
        factor = activations.microbatches_in_flight(p, 10 * p, "interleaved", 0, 3) / p
        assert factor == pytest.approx(1 + (p - 1) / (p * 3))


def test_outside_of_layers_22b_is_half_a_percent_and_not_a_hundredth_of_one() -> None:
    """Trap: section 4.3 prints that the extra terms are below 0.01%; its own formula gives 0.57%."""
    fraction = activations.outside_layers_fraction(2048, 6144, 64, 48, 51200)
    assert round(100 * fraction, 2) == 0.57
    # the same from the bytes of a rank
    layers = 48 * activations.layer_bytes(2048, 4, 6144, 64, 8, True)
    rest = activations.stage_bytes("megatron-22b", 2048, 4, 8, True) - layers
    assert rest / layers == pytest.approx(fraction)


def test_gpt_2_keeps_60_gb_of_activations() -> None:
    """ZeRO, arXiv 1910.02054, section 3.2: about 60 GB, and about 8 GB with checkpoints: the square-root rule."""
    everything = activations.rule_of_thumb_bytes(1024, 32, 1600, 48)
    assert round(everything / 1e9, 1) == 60.4
    assert 8 <= everything / 48**0.5 / 1e9 < 9
    assert round(activations.checkpoint_bytes(1024, 32, 1600, 48) / 1e9, 2) == 5.03  # one a layer is not what it says


def test_checkpoints_of_100b_are_67_gb_of_which_section_6_prints_half() -> None:
    """Trap: ZeRO's section 3.2 says about 60 GB, section 6.1 about 33 GB and 2 GB split over 16; it is 67 and 4.2."""
    assert round(activations.checkpoint_bytes(1024, 32, 8192, 125) / 1e9, 1) == 67.1
    assert round(activations.checkpoint_bytes(1024, 32, 8192, 125, 16) / 1e9, 1) == 4.2


def test_what_megatron_reports_is_this_and_the_ids() -> None:
    """Megatron-LM, theoretical_memory_usage.py: sbh(18 + 4f/h) is 34sbh at f = 4h; 8 bytes for each token's id."""
    reported = estimators.megatron_activation_bytes(2048, 4, 6144, 4 * 6144, 48, 51200, 8)
    assert reported == activations.stage_bytes("megatron-22b", 2048, 4, 8, True, "selective") + 8 * 2048 * 4 / 8
    p, v = 8, 3
    reported = estimators.megatron_activation_bytes(2048, 1, 12288, 4 * 12288, 96, 51200, 8, p, v)
    own = activations.stage_bytes("megatron-175b", 2048, 1, 8, True, "selective", 1, p, 64, 0, "interleaved", v)
    assert reported == pytest.approx(own + 8 * 2048 * p / 8 * (1 + (p - 1) / (p * v)))


def test_fewer_microbatches_than_stages_are_all_that_is_in_flight() -> None:
    """Megatron-LM, theoretical_memory_usage.py: min(1, m/p)."""
    shape = (2048, 1, 12288, 4 * 12288, 96, 51200, 8, 8, 1)
    full = estimators.megatron_activation_bytes(*shape)
    assert estimators.megatron_activation_bytes(*shape, num_microbatches=2) == full / 4
    assert estimators.megatron_activation_bytes(*shape, num_microbatches=64) == full


def test_megatron_counts_llama_s_layer_exactly() -> None:
    """2h^2 (1 + g/a) + 2h (1.5f + 1): a Llama has no biases to leave out."""
    count = estimators.megatron_layer_params(8192, 28672, 64, 8, gated=True, norm="rmsnorm")
    assert count == 8192 * (2 * 8192 + 2 * 1024) + 3 * 8192 * 28672 + 2 * 8192
    assert estimators.megatron_state_bytes(1e9) == 18e9
    assert estimators.megatron_state_bytes(1e9, 8, True) == 7.5e9


def test_b_and_w_of_zero_bubble() -> None:
    """Zero Bubble, arXiv 2401.10241, Table 1: F, B, W in FLOPs; M_B and M_W in bytes."""
    s, b, h, a = 1024, 2, 512, 8
    assert flops.layer_forward_flops(s, b, h) == s * b * h * (24 * h + 4 * s)
    assert flops.layer_backward_flops(s, b, h, "input") == s * b * h * (24 * h + 8 * s)
    assert flops.layer_backward_flops(s, b, h, "weight") == s * b * h * 24 * h
    assert flops.layer_backward_flops(s, b, h) == 2 * flops.layer_forward_flops(s, b, h)
    assert activations.layer_bytes(s, b, h, a) == s * b * (34 * h + 5 * a * s)
    assert activations.weight_gradient_bytes(s, b, h) == 32 * s * b * h
