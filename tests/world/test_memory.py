"""What ranks keep, counted from outside: known allocations, what is not a rank's own, and what cannot be read."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.world import World, WorldError, Zygote, memory
from kit.world.failure import NotMeasured
from kit.world.memory import Memory, Reading
from kit.world.resident import resident_bytes
from tests.world import programs_memory as programs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

MIB = 1 << 20


def grown(found, rank, label):
    return found.grown_bytes(rank, label, since="baseline") / MIB


def near(mib):
    return pytest.approx(mib, abs=1.0)


def test_what_is_kept_and_freed_shows_to_the_mebibyte(zygote):
    found = World(2, zygote=zygote).run(programs.keep_and_free).memory
    assert not found.reason
    for rank in range(2):
        after = {one.label: grown(found, rank, one.label) for one in found.readings if one.rank == rank}
        assert after == {
            "baseline": 0,
            "32 in 4 MiB": near(32),
            "32 more in 128 KiB": near(64),
            "8 more in 16 KiB": near(72),
            "16 less": near(56),
            "every second freed": near(40),
            "8 less": near(32),
            "through 48": near(32),
            "views": near(32),
            "resized": near(28),
            "all freed": near(0),
        }


def test_a_peak_is_the_most_since_the_last_hold(zygote):
    found = World(1, zygote=zygote).run(programs.keep_and_free).memory
    peak = {one.label: found.peak_growth_bytes(0, one.label, since="baseline") / MIB for one in found.readings}
    assert peak["32 in 4 MiB"] == pytest.approx(32, abs=2)
    assert peak["through 48"] == pytest.approx(80, abs=2)
    assert peak["views"] == pytest.approx(32, abs=2)
    assert peak["16 less"] == pytest.approx(72, abs=2)


def test_gaps_that_the_heap_has_are_in_no_peak(zygote):
    found = World(1, zygote=zygote).run(programs.gaps_in_the_heap).memory
    assert grown(found, 0, "passed") == near(0)
    assert found.peak_growth_bytes(0, "passed", since="baseline") / MIB == pytest.approx(8, abs=1)


def test_pages_of_libraries_that_were_taken_away_are_in_no_peak(zygote):
    found = World(1, zygote=zygote).run(programs.pages_of_libraries_taken_away).memory
    assert found.reading(0, "baseline").beside_bytes - found.reading(0, "step").beside_bytes > 12 * MIB
    assert found.peak_growth_bytes(0, "step", since="baseline") / MIB == pytest.approx(8, abs=1)


def test_a_file_that_a_rank_mapped_hides_no_peak(zygote, tmp_path):
    file = tmp_path / "mapped"
    file.write_bytes(bytes(24 * MIB))
    found = World(1, zygote=zygote).run(programs.hidden_behind_a_file, [str(file)]).memory
    assert grown(found, 0, "step") == near(0)
    assert found.peak_growth_bytes(0, "step", since="baseline") / MIB == pytest.approx(24, abs=2)


@pytest.mark.parametrize("start", ["forked", "executed"])
def test_what_a_rank_had_when_it_was_forked_is_known(zygote, start):
    """Whatever the rank has taken before it is first held; also after the zygote has gathered its pages."""
    with Zygote.execute() if start == "executed" else contextlib.nullcontext(zygote) as ours:
        for is_gathered in (False, True):
            if is_gathered:
                ours.gather()
            found = World(3, zygote=ours).run(programs.keeps_in_reserve, [0, 8, 40]).memory
            grown_mib = [found.grown_since_birth_bytes(rank, "baseline") / MIB for rank in range(3)]
            assert grown_mib == [pytest.approx(mib, abs=1.5) for mib in (0, 8, 40)]


def test_what_a_rank_had_is_not_known_where_it_was_not_forked():
    with Zygote.execute(start="exec") as zygote:
        found = World(1, zygote=zygote).run(programs.keeps_in_reserve, [8]).memory
    assert found.persistent_bytes(0, "baseline") > 8 * MIB
    with pytest.raises(NotMeasured, match="where ranks are not forked"):
        found.grown_since_birth_bytes(0, "baseline")


def test_garbage_is_not_kept(zygote):
    assert grown(World(1, zygote=zygote).run(programs.in_a_cycle).memory, 0, "garbage") == near(0)


def test_numbers_belong_to_their_rank(zygote):
    found = World(3, zygote=zygote).run(programs.one_rank_each).memory
    assert [grown(found, rank, "kept") for rank in range(3)] == [near(8), near(16), near(24)]


amounts = st.tuples(st.sampled_from([-1, 1, 4, 8]), st.sampled_from([16, 64, 128, 512, 1024]))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=st.lists(amounts, min_size=1, max_size=5))
def test_any_history_ends_at_what_is_kept(zygote, plan):
    result = World(1, zygote=zygote).run(programs.allocate, [[list(one) for one in plan]])
    assert grown(result.memory, 0, f"step {len(plan) - 1}") == near(result.ranks[0][0] / MIB)


def test_segments_of_the_kit_and_files_are_not_the_rank_s(zygote, tmp_path):
    result = World(2, zygote=zygote).run(programs.not_its_own, [str(tmp_path)] * 2)
    for rank in range(2):
        assert result.ranks[rank] == 8 * MIB
        assert grown(result.memory, rank, "after collectives") == near(0)
        assert grown(result.memory, rank, "a file") == near(0)


def test_shared_memory_of_its_own_counts_whatever_its_name(zygote):
    found = World(1, zygote=zygote).run(programs.hidden_in_shared_memory).memory
    assert grown(found, 0, "memfd") == near(32)
    assert grown(found, 0, "anonymous") == near(64)


def test_a_child_hides_no_page(zygote):
    assert grown(World(1, zygote=zygote).run(programs.shared_with_a_child).memory, 0, "after a fork") == near(32)


@pytest.mark.parametrize("races", [True, False])
def test_watching_for_races_keeps_nothing(zygote, races):
    found = World(2, zygote=zygote, races=races).run(programs.races_and_memory).memory
    assert [grown(found, rank, "after") for rank in range(2)] == [near(0), near(0)]


def test_a_label_is_used_once(zygote):
    with pytest.raises(WorldError, match=r"hold\('here'\): this rank was held there before"):
        World(1, zygote=zygote).run(programs.hold_twice)


def test_gloo_and_no_world_are_not_held(zygote):
    result = World(2, zygote=zygote, transport="gloo").run(programs.hold_and_return)
    assert result.ranks == (7, 7)
    with pytest.raises(KeyError, match="rank 1 was not held at 'here'"):
        result.memory.persistent_bytes(1, "here")
    assert programs.hold_and_return() == 7


def test_where_proc_cannot_be_read_there_is_a_reason_and_no_number(zygote, monkeypatch):
    def refuse(folder, *_):
        raise PermissionError(13, "Permission denied", f"{folder}/smaps_rollup")

    monkeypatch.setattr(memory, "resident", refuse)
    result = World(2, zygote=zygote).run(programs.hold_and_return)
    assert result.ranks == (7, 7)
    assert "memory cannot be read here: /proc/" in result.memory.reason
    with pytest.raises(NotMeasured, match="Permission denied"):
        result.memory.persistent_bytes(0, "here")


def test_elsewhere_than_on_linux_nothing_is_read(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    with pytest.raises(NotMeasured, match="darwin does not have"):
        memory.read(0, "here", 1)


def test_a_process_that_hides_its_memory_shows_it_while_held(tmp_path):
    """A grade's ranks are forked from a process that nobody may look into, which a user who is not root would feel."""
    script = tmp_path / "hidden.py"
    script.write_text(
        "import ctypes\n"
        "from kit.world.limits import hide_memory, shown_memory\n"
        "dumpable = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)\n"
        "seen = [dumpable()]\n"
        "with shown_memory(): seen.append(dumpable())\n"
        "seen.append(dumpable()); hide_memory(); seen.append(dumpable())\n"
        "with shown_memory(): seen.append(dumpable())\n"
        "print(*seen, dumpable())\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, script], cwd=root, env={"PYTHONPATH": str(root)}, capture_output=True)
    assert done.stdout.split() == [b"1", b"1", b"1", b"0", b"1", b"0"], done.stderr.decode()


def test_readings_are_told_apart_by_rank_and_label():
    found = Memory((Reading(0, "a", 10, 30), Reading(1, "a", 20, 25), Reading(0, "b", 15, 40)))
    assert found.grown_bytes(0, "b", since="a") == 5
    assert found.peak_growth_bytes(0, "b", since="a") == 30
    assert found.persistent_bytes(1, "a") == 20
    with pytest.raises(KeyError, match="rank 1 was not held at 'b'"):
        found.peak_bytes(1, "b")


SMAPS = b"""\
7f00-7f10 rw-s 00000000 00:01 11                         /memfd:shardkit (deleted)
Rss:                 100 kB
Anonymous:             0 kB
Swap:                  0 kB
7f10-7f20 rw-s 00000000 00:01 12                         /memfd:shardkit (deleted)
Rss:                   7 kB
Anonymous:             0 kB
Swap:                  1 kB
7f20-7f30 rw-p 00000000 00:00 0
Rss:                1000 kB
Anonymous:          1000 kB
7f30-7f40 rw-p 00000000 00:01 13                         /dev/shm/torch_1_2 (deleted)
Rss:                  50 kB
Anonymous:            20 kB
7f40-7f50 r-xp 00000000 fe:00 14                         /usr/lib/libtorch.so
Rss:               50000 kB
Anonymous:             0 kB
7f50-7f60 rw-s 00000000 00:01 0                          /SYSV00000000 (deleted)
Rss:                   5 kB
Anonymous:             0 kB
7f60-7f70 rw-p 00000000 00:00 0                          [heap]
Rss:                   9 kB
Anonymous:             0 kB
"""


def test_memory_is_counted_by_mapping():
    lines = SMAPS.splitlines(keepends=True)
    assert resident_bytes(lines, lambda lies: lies.is_shared, with_swap=True) == (100 + 7 + 1 + 50 - 20 + 5) * 1024
    assert resident_bytes(lines, lambda lies: lies.is_shared) == (100 + 7 + 50 - 20 + 5) * 1024
    assert resident_bytes(lines, lambda lies: lies.is_shared and lies.inode not in (0, 11, 12, 13)) == 0
    assert resident_bytes(lines, lambda lies: lies.file == b"fe:00 14") == 50000 * 1024
    assert resident_bytes(lines, lambda lies: not lies.is_shared) == 50000 * 1024


def test_a_limit_that_is_tighter_already_stays_as_it_is():
    """As after `ulimit -v` or under a batch system: the ranks start nevertheless, and get no more than they had."""
    program = """
        import resource
        from kit.world.limits import limit_rank

        given = {resource.RLIMIT_AS: 2 << 30, resource.RLIMIT_FSIZE: 1 << 20}
        for what, ceiling in given.items():
            resource.setrlimit(what, (ceiling, ceiling))
        limit_rank(4 << 30)
        assert all(resource.getrlimit(what) == (each, each) for what, each in given.items())
        limit_rank(1 << 20)
        assert resource.getrlimit(resource.RLIMIT_AS)[1] < 1 << 30
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
