"""Programs that keep, free and pass through memory in known amounts, and are held in between."""

from __future__ import annotations

import ctypes
import mmap
import os

import torch
import torch.distributed as dist

from kit.world import inside

MIB = 1 << 20


def tensors(total_bytes, each_bytes):
    return [torch.ones(each_bytes // 4) for _ in range(total_bytes // each_bytes)]


def warm():
    """What torch makes at its first step."""
    layer = torch.nn.Linear(8, 8)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(2, 8)).sum().backward()
    optimizer.step()


def keep_and_free():
    warm()
    inside.hold("baseline")
    large = tensors(32 * MIB, 4 * MIB)
    inside.hold("32 in 4 MiB")
    small = tensors(32 * MIB, MIB // 8)
    inside.hold("32 more in 128 KiB")
    tiny = tensors(8 * MIB, MIB // 64)
    inside.hold("8 more in 16 KiB")
    del large[4:]
    inside.hold("16 less")
    small = small[::2]
    inside.hold("every second freed")
    tiny.clear()
    inside.hold("8 less")
    passing = torch.ones(12 * MIB)
    del passing
    inside.hold("through 48")
    views = [large[0][:10], large[0].view(2, -1), large[0].detach()]
    inside.hold("views")
    large[0].untyped_storage().resize_(0)
    inside.hold("resized")
    del large, small, views
    inside.hold("all freed")


def gaps_in_the_heap():
    """Gaps of 1 to 8 MiB, then tensors that just fit into them, one after the other."""
    warm()
    first = torch.ones(4 * MIB)
    del first  # from here on, malloc takes what is smaller from the heap
    blocks, pins = [], []
    for mib in range(1, 9):
        blocks.append(torch.ones(mib * MIB // 4))
        pins.append(torch.ones(MIB // 64))
    blocks.clear()
    inside.hold("baseline")
    for mib in range(1, 9):
        passing = torch.ones(mib * MIB // 4)
        del passing
    inside.hold("passed")
    return len(pins)


def pages_of_libraries_taken_away():
    """What the kernel does to files when memory runs short, in the middle of a step that needs 8 MiB."""
    warm()
    with open("/proc/self/maps") as file:
        lines = [line.split() for line in file if "libtorch_cpu" in line and " r-xp " in line]
    start, end = (int(bound, 16) for bound in lines[0][0].split("-"))
    end = min(end, start + 24 * MIB)
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    read = sum(ctypes.string_at(page, 1)[0] for page in range(start, end, mmap.PAGESIZE))
    inside.hold("baseline")
    passing = torch.ones(2 * MIB)
    libc.madvise(start, end - start, mmap.MADV_DONTNEED)
    del passing
    inside.hold("step")
    return read


def hidden_behind_a_file(path):
    """A peak of 24 MiB while a file of 24 MiB is not mapped, which is mapped before and after it."""
    warm()

    def mapped():
        mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        return mapping, sum(mapping[:: mmap.PAGESIZE])

    with open(path, "rb") as file:
        first, _ = mapped()
        inside.hold("baseline")
        first.close()
        passing = torch.ones(6 * MIB)
        del passing
        again, _ = mapped()
        inside.hold("step")
        again.close()


def keeps_in_reserve(amounts):
    """amounts: MiB that this rank takes before it is held."""
    kept = tensors(amounts * MIB, MIB)
    inside.hold("baseline")
    return len(kept)


def in_a_cycle():
    warm()
    inside.hold("baseline")
    tensor = torch.ones(8 * MIB)
    cycle = [tensor]
    cycle.append(cycle)
    del tensor, cycle
    inside.hold("garbage")


def allocate(amounts):
    """amounts: MiB to keep, one hold after each; negative ones free what was kept first."""
    warm()
    inside.hold("baseline")
    kept = []
    for step, (amount, each_kib) in enumerate(amounts):
        if amount < 0:
            del kept[: len(kept) // 2]
        else:
            kept += tensors(amount * MIB, each_kib * 1024)
        inside.hold(f"step {step}")
    return [sum(t.numel() * 4 for t in kept)]


def not_its_own(folder):
    """Collectives through the kit's segments, and a file: none of it is what the rank keeps."""
    warm()
    x = torch.ones(4 * MIB)
    inside.hold("baseline")
    for _ in range(3):
        dist.all_reduce(x)
    gathered = torch.empty(dist.get_world_size() * 4 * MIB)
    dist.all_gather_into_tensor(gathered, x)
    del gathered
    inside.hold("after collectives")
    path = os.path.join(folder, f"weights-{dist.get_rank()}")
    mapped = torch.from_file(path, shared=True, size=8 * MIB)
    mapped.fill_(1.0)
    inside.hold("a file")
    return float(mapped.sum())


def hidden_in_shared_memory():
    warm()
    inside.hold("baseline")
    fd = os.memfd_create("shardkit")  # as the kit's own are called
    os.ftruncate(fd, 32 * MIB)
    named = torch.frombuffer(mmap.mmap(fd, 32 * MIB), dtype=torch.float32)
    named.fill_(1.0)
    inside.hold("memfd")
    anonymous = torch.frombuffer(mmap.mmap(-1, 32 * MIB), dtype=torch.float32)
    anonymous.fill_(1.0)
    inside.hold("anonymous")


def shared_with_a_child():
    """A child's copy makes every page of this process shared, and hides none."""
    warm()
    inside.hold("baseline")
    state = torch.ones(8 * MIB)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the parent's end is closed
        os._exit(0)
    os.close(read)
    inside.hold("after a fork")
    os.close(write)
    os.waitpid(child, 0)
    return float(state[0])


def one_rank_each():
    """Rank r keeps (r + 1) * 8 MiB."""
    warm()
    inside.hold("baseline")
    kept = torch.ones((dist.get_rank() + 1) * 2 * MIB)
    dist.barrier()
    inside.hold("kept")
    return float(kept[0])


def hold_twice():
    inside.hold("here")
    inside.hold("here")


def hold_and_return():
    inside.hold("here")
    return 7


def races_and_memory():
    """The same steps with buffers in flight."""
    warm()
    x, y = torch.ones(4 * MIB), torch.ones(4 * MIB)
    inside.hold("baseline")
    for _ in range(3):
        works = [dist.all_reduce(x, async_op=True), dist.broadcast(y, 0, async_op=True)]
        for work in works:
            work.wait()
    inside.hold("after")
