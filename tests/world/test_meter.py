"""The meter inside a rank: storages counted once, freed when they are, by kind; and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.world import World, WorldError
from tests.world import programs_meter as programs

KIB = 1 << 10


def metered(zygote, program, *inputs):
    return World(1, zygote=zygote, meter=True).run(program, list(inputs) or None).memory.inside[0]


def live(readings):
    return {label: one.live_bytes for label, one in readings.items()}


def test_views_are_one_storage_and_resizing_frees(zygote):
    found = metered(zygote, programs.views_and_frees)
    assert live(found) == {
        "views": 4 * KIB, "through": 4 * KIB, "nothing since": 4 * KIB, "shrunk": KIB, "grown": 16 * KIB, "dropped": 0,
    }  # fmt: skip


def test_a_peak_is_the_most_since_the_last_reading(zygote):
    found = metered(zygote, programs.views_and_frees)
    assert {label: one.peak_bytes for label, one in found.items()} == {
        "views": 4 * KIB, "through": 12 * KIB, "nothing since": 4 * KIB, "shrunk": 4 * KIB, "grown": 16 * KIB,
        "dropped": 16 * KIB,
    }  # fmt: skip


def test_swapping_data_frees_nothing_that_autograd_holds(zygote):
    assert live(metered(zygote, programs.data_is_swapped)) == {"swapped": 4 * KIB + 4 + 4, "graph freed": 4}


def test_a_mapped_file_is_counted_apart(zygote, tmp_path):
    found = metered(zygote, programs.a_file, str(tmp_path))
    assert {label: (one.live_bytes, one.file_bytes) for label, one in found.items()} == {
        "mapped": (0, 4 * KIB), "unmapped": (0, 0),
    }  # fmt: skip


def test_kinds_and_ties(zygote):
    found = metered(zygote, programs.kinds)
    weights = 4 * KIB
    assert {label: dict(one.by_kind) for label, one in found.items()} == {
        "backward": {"parameter": weights, "gradient": weights, "optimizer_state": 0, "other": 0},
        "step": {"parameter": weights, "gradient": weights, "optimizer_state": 2 * weights + 4, "other": 0},
        "cleared": {"parameter": weights, "gradient": 0, "optimizer_state": 2 * weights + 4, "other": 0},
    }
    for one in found.values():
        assert sum(one.by_kind.values()) == one.live_bytes


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numels=st.lists(st.integers(0, 5000), max_size=8))
def test_live_bytes_are_the_sum_of_what_is_kept(zygote, numels):
    result = World(1, zygote=zygote, meter=True).run(programs.allocate, [numels])
    assert live(result.memory.inside[0]) == {"all": 4 * sum(numels), "half": result.ranks[0]}


@pytest.mark.parametrize("kind", ["ddp", "fsdp1", "fsdp2"])
def test_metering_changes_nothing(zygote, kind):
    plain = World(2, zygote=zygote).run(programs.train, [kind] * 2)
    watched = World(2, zygote=zygote, meter=True).run(programs.train, [kind] * 2)
    assert plain.ranks == watched.ranks
    assert plain.findings == watched.findings
    operations = [[(op.name, op.nbytes) for op in one.trace.operations()] for one in (plain, watched)]
    assert operations[0] == operations[1]
    assert not plain.memory.inside
    share = 1 if kind == "ddp" else 2
    weights = 2 * 32 * 64 * 4 // share
    for rank in range(2):
        kinds = watched.memory.inside[rank]["step 2"].by_kind
        assert kinds["parameter"] == weights
        assert 2 * weights < kinds["optimizer_state"] <= 2 * weights + 64
        assert watched.memory.inside[rank]["step 2"] == watched.memory.inside[rank]["step 1"]  # nothing piles up


def test_a_race_is_still_a_race(zygote):
    with pytest.raises(WorldError, match="was written in flight") as caught:
        World(2, zygote=zygote, meter=True).run(programs.read_too_early)
    assert caught.value.kind == "race"
