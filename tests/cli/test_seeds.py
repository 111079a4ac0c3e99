"""Seeds that no command draws are refused before anything begins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Shardkit

COMMANDS = (
    ("quiz",),
    ("hunt",),
    ("hunt", "--fix", "."),
    ("show", "sums/which"),
    ("grade", "sums/double", "none.py"),
    ("timeline", "sums/double", "none.py"),
    ("predict", "sums/double", "none.py"),
)


@pytest.mark.parametrize("seed", [-1, 10**12 + 1, 2**63, 10**30])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_seed_out_of_range_is_refused_first(
    shardkit: Shardkit, bank: Path, command: tuple[str, ...], seed: int
) -> None:
    ended = shardkit(*command, "--bank", bank, "--seed", str(seed), stdin="a\n")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"error: seed {seed} is not a whole number from 0 to {10**12}\n"
    assert not Path(os.environ["SHARDKIT_DATA"]).exists()


@pytest.mark.parametrize("seed", [0, 10**12])
def test_a_seed_at_the_edge_is_taken_and_kept(shardkit: Shardkit, bank: Path, seed: int) -> None:
    ended = shardkit("quiz", "--bank", bank, "--seed", str(seed), stdin="a\n")
    assert ended.returncode == 0 and f"--seed {seed}\n" in ended.stdout
