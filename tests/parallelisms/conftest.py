"""Run a family's cases over both transports, and hold them against each other and against one process."""

from __future__ import annotations

import pytest

from kit.world import World, WorldError, Zygote
from tests.parallelisms.agreement import differences
from tests.parallelisms.running import run_cases

DEADLINE_S = 150  # a busy machine is slow, and no hang waits for it: only gloo's


@pytest.fixture(scope="session")
def zygote():
    with Zygote.execute() as shared:
        yield shared


@pytest.fixture
def agree(zygote):
    """agree(size, cases): every rank of every case, over both transports; returns the switchboard's results."""

    def run(size, cases):
        board, gloo = (launch(zygote, size, transport, cases) for transport in ("switchboard", "gloo"))
        assert board.findings == (), "\n".join(map(str, board.findings))
        told = []
        for number, case in enumerate(cases):
            for rank in range(size):
                one, other, alone = board.ranks[rank][number], gloo.ranks[rank][number], case.expected[rank]
                for title, found in (
                    ("switchboard, gloo", differences(one, other, case.between)),
                    ("switchboard, one process", differences(one, alone, case.tolerance)),
                    ("gloo, one process", differences(other, alone, case.tolerance)),
                ):
                    told += [f"{case.name}, rank {rank} of {size} ({title}) {text}" for text in found[:3]]
        told += misfits_of_traffic(board, cases)
        assert not told, f"{len(told)} differences\n" + "\n".join(told[:30])
        return board

    return run


def launch(zygote, size, transport, cases):
    inputs = [
        [[case.function.__module__, case.function.__name__, case.label, case.inputs[rank]] for case in cases]
        for rank in range(size)
    ]
    world = World(size, zygote=zygote, transport=transport, deadline_s=DEADLINE_S)
    try:
        return world.run(run_cases, inputs)
    except WorldError as error:
        running = [text.splitlines()[-1:] for text in error.stdout]
        told = f"{transport}, {size} ranks, in {running}:\n{error}"
    pytest.fail(told, pytrace=False)


def operations_by_case(result, rank):
    """The rank's operations in each case, cut at the barriers that come before them."""
    cases = []
    for operation in result.trace.operations(rank):
        if operation.name == "barrier" and operation.site.startswith("running.py"):
            cases.append([])
        else:
            cases[-1].append(operation)
    return cases


def misfits_of_traffic(result, cases):
    for rank in range(result.world_size):
        done = operations_by_case(result, rank)
        assert len(done) == len(cases)
        for case, operations in zip(cases, done, strict=True):
            for which, expected in (case.traffic(rank) if case.traffic is not None else {}).items():
                name, _, dtype = which.partition(" ")
                sent = [op.sent_bytes for op in operations if op.name == name and dtype in ("", op.dtype)]
                # A share that is no whole number of bytes is rounded up in each operation.
                if not expected - 1e-6 <= sum(sent) < expected + len(sent) + 1:
                    yield (
                        f"{case.name}, rank {rank} of {result.world_size}: {which} sends {sum(sent)} bytes in "
                        f"{len(sent)} operations, not {expected:.1f}"
                    )
