"""Huge pages under a process that many are forked from: its memory stays what it was, and forks share it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kit.world import World, Zygote, zygote_server
from tests.world import programs_mesh as programs

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
    import mmap, os
    from kit.world.pages import gather_pages

    def bytes_of(key):
        with open("/proc/self/smaps_rollup") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith(key))

    try:
        tried = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        tried[:] = bytes(range(256)) * (1 << 15)
        tried.madvise(25)
        possible = True
    except OSError:
        possible = False
    memory = bytearray(range(256)) * (1 << 17)  # 32 MiB
    gathered = gather_pages()
    huge = bytes_of("AnonHugePages:")
    read, write = os.pipe()
    if os.fork() == 0:
        memory[0] = 1
        os.write(write, str(bytes_of("Private_Dirty:")).encode())
        os._exit(0)
    own = int(os.read(read, 100))
    os.wait()
    print(memory == bytearray(range(256)) * (1 << 17), possible, gathered, huge, own)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are asked for on Linux alone")
def test_gathered_memory_is_what_it_was_and_a_fork_copies_what_it_writes_alone():
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    same, possible, gathered, huge, own = done.stdout.split()
    assert same == "True"
    assert gathered == possible, "done wherever the kernel can"
    assert gathered == "False" or int(huge) > 16 << 20
    assert int(own) < 2 << 20, "a fork that writes one byte owns little more than a page of its parent's memory"


@pytest.mark.parametrize("sizes, gathers_in", [((2, 2), []), ((4, 4, 4), [1]), ((6, 2, 6), [0])])
def test_pages_are_gathered_once_and_before_the_first_of_many_ranks(sizes, gathers_in, monkeypatch):
    """Never while a rank lives: what it shared would be its own from then on."""
    happened = []
    monkeypatch.setattr(zygote_server, "_MANY_RANKS", 6)
    monkeypatch.setattr(zygote_server, "gather_pages", lambda: happened.append((job, rank)))
    server = zygote_server._Server(None, -1, "fork")
    for job, size in enumerate(sizes):
        for rank in range(size):
            server._gather_for(size)
            server._ranks[100 * job + rank] = (job, rank)
        server._ranks.clear()
    assert happened == [(job, 0) for job in gathers_in]


def test_ranks_of_a_zygote_that_gathered_its_pages_do_the_same():
    with Zygote.execute() as zygote:
        few = World(4, zygote=zygote).run(programs.ten_all_reduces)
        World(zygote_server._MANY_RANKS, zygote=zygote, deadline_s=120).run(programs.ten_all_reduces)
        again = World(4, zygote=zygote).run(programs.ten_all_reduces)
    assert [value["x"].tolist() for value in again.ranks] == [value["x"].tolist() for value in few.ranks]
    # The ranks' own memory is theirs alone still: no huge page was copied to any of them.
    assert max(v["own_bytes"] for v in again.ranks) < max(v["own_bytes"] for v in few.ranks) + (2 << 20)
