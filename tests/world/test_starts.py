"""Where ranks cannot be forked, or memory cannot be shared, everything else stays the same."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from kit.errors import KitError
from kit.world import World, WorldError, Zygote, segments
from tests.world import programs_faults
from tests.world import programs_starts as programs

ROOT = Path(__file__).resolve().parents[2]


def test_ranks_started_by_exec_do_the_same():
    with Zygote.execute(start="exec") as zygote:
        result = World(2, zygote=zygote, deadline_s=120).run(programs.sums, [1.0, 2.0])
        assert [value["sum"].tolist() for value in result.ranks] == [[3.0] * 5] * 2
        with pytest.raises(WorldError) as caught:
            World(2, zygote=zygote, deadline_s=120).run(programs_faults.both_receive_first)
        assert caught.value.kind == "hang"


def test_large_tensors_travel_without_shared_memory_too(zygote, monkeypatch):
    with_segments = World(3, zygote=zygote).run(programs.large)
    monkeypatch.setattr(segments, "supported", lambda: False)
    without = World(3, zygote=zygote).run(programs.large)
    assert [v.sum().item() for v in with_segments.ranks] == [v.sum().item() for v in without.ranks]
    assert all(a.equal(b) for a, b in zip(with_segments.ranks, without.ranks, strict=True))


def test_every_rank_is_fresh_and_draws_its_own_random_numbers(zygote):
    world = World(3, zygote=zygote, seed=5)
    first, again = world.run(programs.patches_and_draws).ranks, world.run(programs.patches_and_draws).ranks
    assert first == again
    assert len({draw for draw, _ in first}) == 3
    assert all(patched is False for _, patched in first + again)
    assert World(3, zygote=zygote, seed=6).run(programs.patches_and_draws).ranks != first


def test_init_process_group_and_environment_are_what_torchrun_would_give(zygote):
    for rank, (from_env, from_dist, backend) in enumerate(World(2, zygote=zygote).run(programs.initialises).ranks):
        assert from_env == [rank, 2, rank]
        assert from_dist == [rank, 2]
        assert backend == "nccl"


@pytest.mark.parametrize(
    "function, says",
    [
        (lambda: None, "inside another function|defined inside"),
        (len, "not a Python function"),
        (programs.Holder.method, "belongs to a class"),
    ],
)
def test_a_function_that_ranks_cannot_import_is_refused(zygote, function, says):
    with pytest.raises(KitError, match=says):
        World(2, zygote=zygote).run(function)


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"size": 0}, "world size 0 is not"),
        ({"size": "4"}, "world size '4' is not"),
        ({"size": 2, "transport": "smoke"}, "no transport 'smoke'"),
        ({"size": 2, "deadline_s": 0}, "deadline_s is 0"),
    ],
)
def test_nonsense_worlds_are_refused(arguments, says):
    with pytest.raises(KitError, match=says):
        World(**arguments)


def test_inputs_must_be_one_a_rank(zygote):
    with pytest.raises(KitError, match="3 inputs for a world of 2 ranks"):
        World(2, zygote=zygote).run(programs.sums, [1, 2, 3])


def test_an_input_that_cannot_be_sent_names_its_place(zygote):
    with pytest.raises(KitError, match=r"input of rank 1 .*value\['x'\]\[0\] is a .*object"):
        World(2, zygote=zygote).run(programs.sums, [1, {"x": [object()]}])


def test_when_the_deciding_process_is_killed_nothing_stays(tmp_path):
    script = tmp_path / "decide.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import sys
            sys.path.insert(0, {str(ROOT)!r})
            from kit.world import World, Zygote
            from tests.world import programs_starts
            if __name__ == "__main__":
                with Zygote.execute() as zygote:
                    world = World(2, zygote=zygote, deadline_s=300)
                    world.run(programs_starts.says_its_pid_and_sleeps, [{str(tmp_path)!r}] * 2)
            """
        )
    )
    process = subprocess.Popen([sys.executable, str(script)])
    try:
        pids = wait_for(lambda: read_pids(tmp_path, 4))
        assert pids, "the ranks did not start"
    finally:
        process.kill()
        process.wait()
    assert wait_for(lambda: not [pid for pid in pids if alive(pid)]), "a process outlived the one that decides"


def test_a_rank_that_ends_the_zygote_is_refused_and_the_next_run_has_a_new_one():
    with Zygote.execute() as own:
        with pytest.raises(WorldError) as caught:
            World(2, zygote=own).run(programs.ends_its_parent)
        assert caught.value.kind == "refused"
        result = World(2, zygote=own).run(programs.sums, [1.0, 2.0])
        assert result.ranks[0]["sum"].tolist() == [3.0] * 5


def read_pids(directory, count):
    pids = [int(word) for file in directory.glob("*.pid") for word in file.read_text().split()]
    return pids if len(pids) == count else None


def wait_for(condition, limit_s=60.0):
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    return None


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_starting_ranks_needs_no_room_for_what_the_zygote_says_meanwhile():
    """The sockets between the two hold a few messages here; of usual size, they hold those of some 500 ranks."""
    program = """
        import socket
        from kit.world import World, Zygote
        from tests.world import programs_starts as programs

        plain = socket.socketpair

        def narrow():
            pair = plain()
            for end in pair:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
            return pair

        socket.socketpair = narrow
        zygote = Zygote.execute()
        socket.socketpair = plain
        with zygote:
            print(len(World(32, zygote=zygote, deadline_s=60).run(programs.sums, [1.0] * 32).ranks))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout == "32\n", done.stderr
