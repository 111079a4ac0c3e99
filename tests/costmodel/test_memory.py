"""Memory of one rank against the tables of the papers."""

from __future__ import annotations

import pytest

from kit.costmodel import memory
from kit.errors import KitError

# ZeRO, arXiv 1910.02054, Table 1: GB = 1e9, K = 12; columns P_os, P_os+g, P_os+g+p. Cells with a decimal are
# rounded in print and whole cells are cut off, so 4011.72 is printed as 4011.
ZERO_TABLE_1 = {
    7.5e9: {
        1: ("120", "120", "120"),
        4: ("52.5", "41.3", "30"),
        16: ("35.6", "21.6", "7.5"),
        64: ("31.4", "16.6", "1.88"),
        256: ("30.4", "15.4", "0.47"),
        1024: ("30.1", "15.1", "0.12"),
    },
    128e9: {
        1: ("2048", "2048", "2048"),
        4: ("896", "704", "512"),
        16: ("608", "368", "128"),
        64: ("536", "284", "32"),
        256: ("518", "263", "8"),
        1024: ("513", "257", "2"),
    },
    1e12: {
        1: ("16000", "16000", "16000"),
        4: ("7000", "5500", "4000"),
        16: ("4750", "2875", "1000"),
        64: ("4187", "2218", "250"),
        256: ("4046", "2054", "62.5"),
        1024: ("4011", "2013", "15.6"),
    },
}
CELLS = [
    (num_params, world_size, stage, printed)
    for num_params, rows in ZERO_TABLE_1.items()
    for world_size, row in rows.items()
    for stage, printed in enumerate(row, 1)
]


@pytest.mark.parametrize(("num_params", "world_size", "stage", "printed"), CELLS)
def test_every_cell_of_table_1_of_zero(num_params: float, world_size: int, stage: int, printed: str) -> None:
    gigabytes = memory.model_state_bytes(num_params, world_size, stage) / 1e9
    if "." in printed:
        half_a_digit = 0.5 * 10 ** -len(printed.split(".")[1])
        assert abs(gigabytes - float(printed)) <= half_a_digit * (1 + 1e-9)
    else:
        assert int(gigabytes) == int(printed)


def test_gpt_2_needs_24_gb_unsharded() -> None:
    """ZeRO, section 3.1: 1.5 billion parameters, 16 bytes each."""
    assert memory.model_state_bytes(1.5e9, 8, stage=0) == 24e9


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # Megatron-LM, report_theoretical_memory: 18, and 6 + 12/dp with the distributed optimizer.
        ({"world_size": 16, "stage": 0, "grad_bytes_per_param": 4}, 18),
        ({"world_size": 16, "stage": 1, "grad_bytes_per_param": 4}, 6 + 12 / 16),
        # GPipe, section 3: fp32 weights, gradients and one RMSProp statistic.
        (
            {
                "world_size": 1,
                "param_bytes_per_param": 4,
                "grad_bytes_per_param": 4,
                "optimizer_bytes_per_param": 4,
            },
            12,
        ),
    ],
)
def test_other_conventions_are_a_matter_of_arguments(arguments: dict[str, int], expected: float) -> None:
    assert memory.bytes_per_param(**arguments) == pytest.approx(expected)


def test_bytes_stay_whole_where_shards_are_equal() -> None:
    for stage in range(4):
        held = memory.model_state_bytes(3 * (2**60 + 1), 3, stage)
        assert isinstance(held, int)
    assert held == 16 * (2**60 + 1)


# Korthikanti et al., arXiv 2205.05198: Table 2's formulas with the shapes of Table 3, s = 2048 and t = 8; MiB.
SHAPES = {"22B": (4, 6144, 64), "175B": (1, 12288, 96), "530B": (1, 20480, 128), "1T": (1, 25600, 160)}
WAYS = [
    {},
    {"tensor_parallel": 8},
    {"tensor_parallel": 8, "sequence_parallel": True},
    {"tensor_parallel": 8, "recomputation": "selective"},
    {"tensor_parallel": 8, "sequence_parallel": True, "recomputation": "selective"},
    {"tensor_parallel": 8, "recomputation": "full"},
]
MEBIBYTES = {
    "22B": [6752, 1264, 844, 624, 204, 96],
    "175B": [2736, 552, 342, 312, 102, 48],
    "530B": [3920, 840, 490, 520, 170, 80],
    "1T": [4900, 1050, 612.5, 650, 212.5, 100],
}


@pytest.mark.parametrize("model", SHAPES)
def test_activations_of_the_four_models_of_table_3(model: str) -> None:
    b, h, a = SHAPES[model]
    got = [memory.activation_bytes_per_layer(2048, b, h, a, **way) / 2**20 for way in WAYS]
    assert got == MEBIBYTES[model]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: memory.model_state_bytes(1e9, 4, stage=5), "stage must be a whole number from 0 to 3, got 5"),
        (lambda: memory.model_state_bytes(-1, 4), "num_params must be a number of at least 0, got -1"),
        (
            lambda: memory.activation_bytes_per_layer(8, 1, 8, 6, tensor_parallel=4),
            "num_heads=6 cannot be split over tensor_parallel=4 ranks",
        ),
        (
            lambda: memory.activation_bytes_per_layer(8, 1, 8, 2, recomputation="some"),
            "recomputation must be one of none, selective, full, got 'some'",
        ),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(KitError) as refused:
        call()
    assert refused.value.message == message
