"""What the cost model predicts equals what the world sees of programs that run: torch's own, references, small ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.costmodel import collectives, model_traffic, traffic
from kit.world import World, Zygote
from tests.costmodel import programs

WIDTH = programs.WIDTH
LINEAR = WIDTH * WIDTH + WIDTH
NUM_PARAMS = 3 * LINEAR
MLP = Path(__file__).resolve().parents[2] / "reference" / "tp" / "mlp.py"


@pytest.fixture(scope="module")
def zygote():
    with Zygote.execute() as shared:
        yield shared


@pytest.fixture
def sent(zygote):
    """sent(function, n, **given): the bytes that each rank sends after its last barrier."""

    def run(function, world_size, **given):
        result = World(world_size, zygote=zygote).run(function, inputs=[given] * world_size)
        return [sent_after_barrier(result.trace.operations(rank)) for rank in range(world_size)]

    return run


def sent_after_barrier(operations):
    last = max(index for index, operation in enumerate(operations) if operation.name == "barrier")
    return sum(operation.sent_bytes for operation in operations[last:])


@pytest.mark.parametrize("no_sync", [True, False])
def test_ddp_accumulates_with_and_without_no_sync(sent, no_sync):
    predicted = traffic.ddp_bytes(NUM_PARAMS, 4, 8, num_microbatches=3, no_sync=no_sync)
    assert sent(programs.ddp, 4, k=3, no_sync=no_sync) == [predicted] * 4


def test_torch_s_sharded_optimizer(sent):
    predicted = traffic.sharded_optimizer_bytes(2 * 4 * WIDTH, 4, 8, 8)
    assert sent(programs.sharded_optimizer, 4, n=4) == [predicted] * 4


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_zero_with_accumulation(sent, stage):
    predicted = traffic.zero_bytes(5 * 3, 3, stage, 4, 4, num_microbatches=4)
    assert predicted == collectives.zero_traffic_bytes(5 * 3, 3, stage, 4, 4)
    assert sent(programs.zero, 3, stage=stage, k=4) == [predicted] * 3


@pytest.mark.parametrize(("reshard", "sync_all"), [(True, True), (True, False), (False, True)])
def test_fully_shard(sent, reshard, sync_all):
    """The root's own parameters stay gathered after forward, so they are gathered once a microbatch."""
    predicted = traffic.fsdp_bytes(
        NUM_PARAMS + WIDTH, 4, 8, 8, num_microbatches=2, reshard_after_forward=reshard,
        reduce_every_microbatch=sync_all, num_kept_params=WIDTH,
    )  # fmt: skip
    assert sent(programs.fsdp, 4, k=2, reshard=reshard, sync_all=sync_all, mesh=(4,)) == [predicted] * 4


def test_fully_shard_on_a_mesh_of_replicas_and_shards(sent):
    kept = traffic.fsdp_bytes(WIDTH, 2, 8, 8) - traffic.fsdp_bytes(WIDTH, 2, 8, 8, reshard_after_forward=False)
    predicted = traffic.hsdp_bytes(NUM_PARAMS + WIDTH, 2, 2, 8, 8) - kept
    assert sent(programs.fsdp, 4, k=1, reshard=True, sync_all=True, mesh=(2, 2)) == [predicted] * 4


@pytest.mark.parametrize("recomputation", ["none", "full"])
def test_a_tensor_parallel_layer_of_the_reference(sent, recomputation):
    predicted = model_traffic.tp_bytes_per_layer(5, 2, WIDTH, 3, 4, recomputation=recomputation)
    got = sent(programs.tensor_parallel_layer, 3, path=str(MLP), b=2, s=5, recompute=recomputation == "full")
    assert got == [predicted] * 3


@pytest.mark.parametrize("saves_gathered", [True, False])
def test_a_sequence_parallel_layer(sent, saves_gathered):
    predicted = model_traffic.tp_bytes_per_layer(
        6, 1, WIDTH, 3, 4, sequence_parallel=True, saves_gathered_input=saves_gathered
    )
    assert sent(programs.sequence_parallel_layer, 3, s=6, saves_gathered=saves_gathered) == [predicted] * 3


@pytest.mark.parametrize("v", [1, 2])
def test_torch_s_pipelines(sent, v):
    """A microbatch of 2 samples of one token."""
    predicted = [model_traffic.pp_bytes(3, 6, 1, 2, WIDTH, 8, stage, v) for stage in range(3)]
    assert sent(programs.pipeline, 3, m=6, b=2, v=v) == predicted


def test_expert_dispatch_and_combine(sent):
    predicted = model_traffic.ep_bytes_per_layer(6, WIDTH, 2, 3, 4, 4)
    assert sent(programs.experts, 3, tokens=6, k=2) == [predicted] * 3


def test_a_ring_of_keys_and_values(sent):
    """12 tokens over 3 ranks, 2 key-value heads of 5."""
    predicted = model_traffic.cp_bytes_per_layer(12, 1, 4, 5, 3, num_kv_heads=2, bytes_per_element=4)
    assert sent(programs.ring, 3, numel=4 * 2 * 5) == [predicted] * 3


@pytest.mark.parametrize(("world_size", "profile"), [(4, "unit"), (8, "a100"), (12, "h100")])
def test_collectives_take_as_long_as_in_virtual_time(zygote, world_size, profile):
    """Twelve ranks cross a node of eight, so the slower link decides."""
    for operation in collectives.OPERATIONS:
        given = {"operation": operation, "numel": 120 * world_size}
        result = World(world_size, zygote=zygote, profile=profile).run(
            programs.one_collective, inputs=[given] * world_size
        )
        predicted = collectives.on_profile_s(operation, 4 * given["numel"], world_size, profile)
        assert result.timeline.makespan_s == pytest.approx(predicted, rel=1e-12)
