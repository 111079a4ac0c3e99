"""Programs that are right, until a fault is injected into them; and writers of checkpoints, of which one is wrong."""

from __future__ import annotations

import datetime
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from kit.world import inside
from kit.world.services import Charged

RETRY_S = datetime.timedelta(seconds=2)


def three_steps():
    x = torch.ones(4)
    for step in range(3):
        inside.mark(f"step {step}")
        inside.compute(1.0, "F")
        dist.all_reduce(x)
        inside.compute(2.0, "B")
    return x


def marks_in_the_middle_of_computing(inputs):
    inside.compute(1.0)
    inside.mark("half")
    if dist.get_rank() == 1:
        with open(inputs["note"], "w") as file:
            file.write("went on")
    inside.compute(1.0)
    dist.barrier()


def issues_and_writes(inputs):
    work = dist.all_reduce(torch.ones(1), async_op=True)
    if dist.get_rank() == 1:
        with open(inputs["note"], "w") as file:
            file.write("went on")
    work.wait()


def store_barrier():
    store = dist.distributed_c10d._get_default_store()
    rank, size = dist.get_rank(), dist.get_world_size()
    inside.mark("before")
    store.set(f"here/{rank}", "1")
    store.wait([f"here/{r}" for r in range(size)])
    return rank


def groups_and_messages():
    rank = dist.get_rank()
    pair = dist.new_group([1, 2])
    dist.all_reduce(torch.ones(2))
    if rank in (1, 2):
        dist.all_reduce(torch.ones(2), group=pair)
    if rank == 1:
        dist.send(torch.ones(3), 2)
    if rank == 2:
        dist.recv(torch.ones(3), 1)
    dist.barrier()


def a_message():
    x = torch.full((3,), float(dist.get_rank()))
    if dist.get_rank() == 1:
        dist.send(x, 2)
    elif dist.get_rank() == 2:
        dist.recv(x, 1)
    return x


def a_message_and_a_barrier():
    x = a_message()
    dist.barrier()
    return x


def sends_again_when_nobody_answers():
    x = torch.full((3,), float(dist.get_rank()))
    tries = 0
    if dist.get_rank() == 1:
        while True:
            tries += 1
            try:
                dist.isend(x, 2).wait(RETRY_S)
                break
            except RuntimeError as error:
                assert "Timed out" in str(error)
    elif dist.get_rank() == 2:
        dist.recv(x, 1)
    return {"x": x, "tries": tries}


def one_timeout(inputs):
    """The ranks that wait give up after a while, and say so."""
    if dist.get_rank() in inputs["patient"]:
        dist.all_reduce(torch.ones(1))
    else:
        dist.all_reduce(torch.ones(1), async_op=True).wait(RETRY_S)


def one_error_after_the_kill():
    """Rank 0 sees its timeout, which comes after the kill, and makes a mistake of its own then."""
    if dist.get_rank() == 0:
        try:
            dist.all_reduce(torch.ones(1), async_op=True).wait(RETRY_S)
        except RuntimeError:
            raise KeyError("weight") from None
    dist.all_reduce(torch.ones(1))


def one_error_at_once():
    if dist.get_rank() == 0:
        raise KeyError("weight")
    inside.mark("begin")
    dist.all_reduce(torch.ones(1))


def two_survivors_deadlock():
    """Rank 2 has nothing to do with it."""
    inside.mark("begin")
    if dist.get_rank() < 2:
        dist.recv(torch.ones(1), 1 - dist.get_rank())


def chain():
    """Rank 3 waits for rank 2, rank 2 for rank 1; rank 0 needs nobody."""
    rank, x = dist.get_rank(), torch.zeros(1)
    inside.mark("begin")
    if rank == 1:
        dist.send(x, 2)
    elif rank == 2:
        dist.recv(x, 1)
        dist.send(x, 3)
    elif rank == 3:
        dist.recv(x, 2)
    return rank


def trains_with_ddp():
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        inside.mark(f"step {step}")
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()


# Files ------------------------------------------------------------------------------------------------------------


def every_kind_of_event(inputs):
    """13 events on rank 1, the same on each run; the others change nothing."""
    if dist.get_rank() == 1:
        os.chdir(inputs["dir"])
        os.mkdir("d")  # 1
        with open("d/a", "w") as file:  # 2
            file.write("text")
            file.flush()  # 3
            os.fsync(file.fileno())  # 4
        fd = os.open("b", os.O_WRONLY | os.O_CREAT)  # 5
        os.write(fd, b"bytes")  # 6
        os.ftruncate(fd, 2)  # 7
        os.close(fd)
        os.replace("d/a", "d/c")  # 8
        os.link("b", "e")  # 9
        os.remove("b")  # 10
        os.truncate("e", 1)  # 11
        torch.save({"x": torch.ones(2)}, "saved.pt")  # 12, 13
        with open("d/c") as file:
            assert file.read() == "text"
        with open(os.devnull, "w") as file:
            file.write("to nowhere")
    dist.barrier()
    return True


def saves_in_place(inputs):
    """What many a training script does."""
    state = {"version": inputs["version"], "weight": torch.full((5000,), float(inputs["version"]))}
    torch.save(state, os.path.join(inputs["dir"], f"rank{dist.get_rank()}.pt"))


def saves_and_renames_without_fsync(inputs):
    path = os.path.join(inputs["dir"], f"rank{dist.get_rank()}.pt")
    state = {"version": inputs["version"], "weight": torch.full((5000,), float(inputs["version"]))}
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)
    open(path + ".done", "w").close()


def saves_atomically(inputs):
    """A temporary file beside it, fsync, rename: the old file or the new one, never half of one."""
    path = os.path.join(inputs["dir"], f"rank{dist.get_rank()}.pt")
    state = {"version": inputs["version"], "weight": torch.full((5000,), float(inputs["version"]))}
    with tempfile.NamedTemporaryFile(dir=inputs["dir"], delete=False) as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)
    folder = os.open(inputs["dir"], os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    open(path + ".done", "w").close()


def loads(inputs):
    path = os.path.join(inputs["dir"], f"rank{dist.get_rank()}.pt")
    try:
        state = torch.load(path)
    except Exception as error:
        return {"error": type(error).__name__}
    return {"version": state["version"], "weight": state["weight"]}


def sends_again_and_then_deadlocks():
    sends_again_when_nobody_answers()
    if dist.get_rank() == 1:
        dist.recv(torch.ones(1), 2)
    elif dist.get_rank() == 2:
        dist.recv(torch.ones(1), 1)


def layer(rank):
    return Charged(None, 4.0, "F")


def counts_and_calls():
    inside.count(10, "F")
    inside.call("layer")


def what_open_is():
    return open.__qualname__


def first_come():
    """Ranks 1 and 2 compute for 1.0 and 1.5 s, then send to rank 0, which takes whatever comes."""
    rank, x = dist.get_rank(), torch.zeros(1)
    if rank:
        inside.compute(0.5 + rank / 2)
        dist.send(x, 0)
        return None
    return [dist.recv(x), dist.recv(x)]


def reduces_again():
    tries = 0
    while True:
        tries += 1
        x = torch.ones(1)
        try:
            dist.all_reduce(x, async_op=True).wait(RETRY_S)
            return {"x": x, "tries": tries}
        except RuntimeError as error:
            assert "Timed out" in str(error)
