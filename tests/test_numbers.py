"""The numbers of some questions, worked out a second time without the cost model that answers them."""

from __future__ import annotations

import pytest

from kit.costmodel import collectives, memory, pipeline


@pytest.mark.parametrize(
    ("billions", "world_size", "stage", "gigabytes"),
    # ZeRO, arXiv 1910.02054, Table 1: columns Pos, Pos+g, Pos+g+p.
    [(7.5, 4, 1, 52.5), (7.5, 64, 1, 31.4), (7.5, 64, 2, 16.6), (7.5, 64, 3, 1.88), (128, 16, 2, 368)],
)
def test_model_state_is_that_of_the_zero_paper(billions: float, world_size: int, stage: int, gigabytes: float) -> None:
    got = memory.model_state_bytes(billions * 10**9, world_size, stage=stage)
    assert got / 1e9 == pytest.approx(gigabytes, rel=0.005)


def test_65_billion_parameters_move_390_gb_less_the_ring_s_own_part() -> None:
    for world_size in (8, 16, 64):
        got = collectives.zero_traffic_bytes(65 * 10**9, world_size, stage=3, bytes_per_element=2)
        assert got == pytest.approx(390e9 * (world_size - 1) / world_size)


@pytest.mark.parametrize(("p", "m", "v"), [(4, 8, 2), (8, 8, 3), (8, 64, 4)])
def test_interleaved_bubble_counts_slots(p: int, m: int, v: int) -> None:
    """Idle p-1 slots of a chunk, work v*m of them."""
    got = pipeline.bubble_fraction(p, m, schedule="interleaved", num_chunks=v)
    assert got == pytest.approx((p - 1) / (v * m + p - 1))


@pytest.mark.parametrize(("t", "mebibytes"), [(1, 2736), (8, 552)])
def test_activations_are_those_of_table_2(t: int, mebibytes: float) -> None:
    """arXiv 2205.05198, Table 2 with the 175B row of Table 3: s 2048, b 1, h 12288, a 96."""
    got = memory.activation_bytes_per_layer(2048, 1, 12288, 96, tensor_parallel=t)
    assert got / 2**20 == pytest.approx(mebibytes)
