"""Published figures of traffic and of bus bandwidth, at the precision that their source prints."""

from __future__ import annotations

import pytest

from kit.costmodel import collectives, model_traffic, traffic

LARGE = 10**9  # ranks, where (n-1)/n is 1 to nine digits: papers that print 2M drop it


@pytest.mark.parametrize(("stage", "times"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_zero_moves_2_psi_and_with_stage_3_half_as_much_again(stage: int, times: int) -> None:
    """ZeRO, arXiv 1910.02054, sections 7.1 and 7.2, in elements."""
    assert traffic.zero_bytes(7.5e9, LARGE, stage, 1, 1) / 7.5e9 == pytest.approx(times, rel=1e-8)


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        ("all_reduce", lambda n: 2 * (n - 1) / n),
        ("reduce_scatter", lambda n: (n - 1) / n),
        ("all_gather", lambda n: (n - 1) / n),
        ("all_to_all", lambda n: (n - 1) / n),
        ("broadcast", lambda n: 1),
        ("reduce", lambda n: 1),
    ],
)
def test_bus_bandwidth_factors(operation: str, factor) -> None:
    """nccl-tests, doc/PERFORMANCE.md."""
    for n in (2, 3, 8, 1024):
        assert collectives.bus_factor(operation, n) == pytest.approx(factor(n))


def test_bus_bandwidth_of_reductions_in_the_switch() -> None:
    """nccl-tests, doc/PERFORMANCE.md: (n-1)/(n+1)."""
    assert collectives.bus_factor("all_reduce", 8, in_network=True) == pytest.approx(7 / 9)


@pytest.mark.parametrize("world_size", [8, 64, 512])
def test_fsdp_replicated_and_fully_sharded(world_size: int) -> None:
    """PyTorch FSDP, arXiv 2304.11277, section 3.2.2: 2M(W-1)/W and 3M(W-1)/W."""
    once = 2e9 * (world_size - 1) / world_size
    assert traffic.ddp_bytes(1e9, world_size, 2) == pytest.approx(2 * once)
    assert traffic.fsdp_bytes(1e9, world_size) == pytest.approx(3 * once)


@pytest.mark.parametrize(("world_size", "per_host", "off_by"), [(16, 8, 7 / 8), (64, 8, 7 / 56), (4096, 8, 7 / 4088)])
def test_trap_hybrid_sharding_across_hosts_is_printed_for_many_hosts(
    world_size: int, per_host: int, off_by: float
) -> None:
    """PyTorch FSDP, section 3.2.2, prints 2M(W-1)/(GW); a ring over W/G hosts sends 2M(W-G)/(GW)."""
    m, w, g = 2e9, world_size, per_host
    printed = 2 * m * (w - 1) / (g * w)
    exact = traffic.hsdp_bytes(1e9, g, w // g, level="between")
    assert exact == pytest.approx(2 * m * (w - g) / (g * w))
    assert printed / exact - 1 == pytest.approx(off_by)


def test_zero_plus_plus_between_nodes() -> None:
    """ZeRO++, arXiv 2306.10209, table of volumes: M + M + M against 0.5M + 0 + 0.25M."""
    parts = ("forward", "backward", "gradients", "total")
    m = 2e9
    zero3 = [traffic.zero_plus_plus_bytes(1e9, False, False, False, part=part) / m for part in parts]
    assert zero3 == [1, 1, 1, 3]
    assert [traffic.zero_plus_plus_bytes(1e9, part=part) / m for part in parts] == [0.5, 0, 0.25, 0.75]


def test_zero_plus_plus_s_copy_and_hops() -> None:
    """ZeRO++, sections 3.2 and 3.3: 2M/g more memory; one hop moves g times what two hops move."""
    assert traffic.secondary_partition_bytes(1e9, 8) == 2e9 / 8
    one, two = (traffic.quantized_all_to_all_bytes(2e9, 8, 4, hops) for hops in (1, 2))
    assert (one, two) == (2e9 * 8 / 4, 2e9 / 4)


def test_pipeline_and_tensor_parallelism() -> None:
    """PTD-P, arXiv 2104.04473, section 3.2: bsh each way a microbatch, and 8bsh(t-1)/t a layer."""
    b, s, h, t = 4, 2048, 12288, 8
    assert model_traffic.pp_bytes_per_microbatch(s, b, h, 1) == b * s * h
    assert model_traffic.tp_bytes_per_layer(s, b, h, t, 1) == 8 * b * s * h * (t - 1) // t


def test_scatter_and_gather_send_a_t_th_over_each_link() -> None:
    """PTD-P, section 4.1."""
    whole = model_traffic.pp_bytes_per_microbatch(2048, 1, 12288)
    assert model_traffic.pp_bytes_per_microbatch(2048, 1, 12288, shared_over=8) * 8 == whole


@pytest.mark.parametrize("ranks", [8, 64])
def test_ulysses_against_megatron_s_sequence_parallelism(ranks: int) -> None:
    """DeepSpeed-Ulysses, arXiv 2309.14509, section 3.2: 4Nh/P against 4Nh elements a link, forward of one layer."""
    tokens, heads, size = 2**16, 64, 128
    link = (ranks - 1) / ranks  # the paper drops the part that stays at home
    ulysses = model_traffic.cp_bytes_per_layer(tokens, 1, heads, size, ranks, None, "ulysses", 1, "forward")
    megatron = model_traffic.tp_bytes_per_layer(tokens, 1, heads * size, ranks, 1, "forward", sequence_parallel=True)
    assert ulysses == pytest.approx(4 * tokens * heads * size / ranks * link)
    assert megatron == pytest.approx(4 * tokens * heads * size * link)
    assert megatron / ulysses == pytest.approx(ranks)


def test_ddp_s_buckets() -> None:
    """c10d, reducer.hpp: 1 MiB, then 25 MiB; the paper (arXiv 2006.15704) says 25 MB."""
    assert traffic.ddp_num_buckets(1048576) == 1
    assert traffic.ddp_num_buckets(1048576 + 1) == 2
    assert traffic.ddp_num_buckets(1048576 + 2 * 26214400) == 3
    assert traffic.ddp_num_buckets(1048576 + 2 * 26214400 + 1) == 4
