"""Programs that go wrong, each in one way: what the deciding process must name exactly."""

from __future__ import annotations

import ctypes
import datetime
import os
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist


def skips_a_collective():
    x = torch.ones(8)
    dist.all_reduce(x)
    if dist.get_rank() != 0:
        dist.all_reduce(x)
    return x


def skips_and_goes_on():
    x = torch.ones(8)
    if dist.get_rank() != 0:
        dist.all_reduce(x)
    dist.barrier()


def leaves_by_os_exit():
    dist.barrier()
    if dist.get_rank() == 1:
        os._exit(7)
    dist.all_reduce(torch.ones(2))


def leaves_by_sys_exit():
    if dist.get_rank() == 1:
        sys.exit(0)
    dist.barrier()


def raises():
    if dist.get_rank() == 2:
        raise KeyError("weight")
    dist.barrier()


def raises_on_every_rank():
    raise ValueError(f"rank {dist.get_rank()}")


def error_without_text():
    class Hostile(Exception):
        def __str__(self):
            raise RuntimeError("no text for you")

    if dist.get_rank() == 0:
        raise Hostile
    dist.barrier()


def segfaults():
    if dist.get_rank() == 1:
        ctypes.string_at(0)
    dist.barrier()


def kills_itself():
    if dist.get_rank() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def stops_itself():
    if dist.get_rank() == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.barrier()


def spins():
    if dist.get_rank() == 1:
        while True:
            pass
    dist.barrier()


def sleeps():
    if dist.get_rank() == 0:
        time.sleep(1000)
    dist.barrier()


def floods_stdout():
    while True:
        print("x" * 4000)


def allocates_without_end():
    kept = []
    while True:
        kept.append(torch.ones(1 << 22))


def shapes_differ():
    dist.all_reduce(torch.ones(4 + (dist.get_rank() == 2)))


def dtypes_differ():
    dist.all_reduce(torch.ones(8, dtype=torch.float64 if dist.get_rank() == 1 else torch.float32))


def dtypes_of_the_same_size_differ():
    dist.all_reduce(torch.ones(8, dtype=torch.int32 if dist.get_rank() == 1 else torch.float32))


def order_swapped():
    x, y = torch.ones(4), torch.ones(4)
    if dist.get_rank() == 1:
        dist.broadcast(y, 0)
        dist.all_reduce(x)
    else:
        dist.all_reduce(x)
        dist.broadcast(y, 0)


def reductions_differ():
    op = dist.ReduceOp.MAX if dist.get_rank() == 1 else dist.ReduceOp.SUM
    dist.all_reduce(torch.ones(4), op=op)


def sources_differ():
    dist.broadcast(torch.ones(4), 0 if dist.get_rank() != 1 else 1)


def both_receive_first():
    rank, x = dist.get_rank(), torch.ones(3)
    if rank < 2:
        dist.recv(x, 1 - rank)
        dist.send(x, 1 - rank)


def both_send_first():
    rank, x = dist.get_rank(), torch.ones(3)
    if rank < 2:
        dist.send(x, 1 - rank)
        dist.recv(x, 1 - rank)


def ring_of_receives():
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.recv(torch.ones(3), (rank + 1) % size)


def tags_differ():
    if dist.get_rank() == 0:
        dist.send(torch.ones(3), 1, tag=5)
    elif dist.get_rank() == 1:
        dist.recv(torch.ones(3), 0, tag=6)


def receives_more_than_is_sent():
    if dist.get_rank() == 0:
        dist.send(torch.ones(3), 1)
    elif dist.get_rank() == 1:
        dist.recv(torch.ones(5), 0)


def receives_less_than_is_sent():
    if dist.get_rank() == 0:
        dist.send(torch.ones(5), 1)
    elif dist.get_rank() == 1:
        dist.recv(torch.ones(3), 0)


def message_dtypes_differ():
    if dist.get_rank() == 0:
        dist.send(torch.ones(3), 1)
    elif dist.get_rank() == 1:
        dist.recv(torch.ones(3, dtype=torch.int32), 0)


def strided_view():
    dist.all_reduce(torch.ones(4, 4)[:, 0])


def wrong_size_of_reduce_scatter():
    dist.reduce_scatter_tensor(torch.ones(2), torch.ones(2 * dist.get_world_size() + 1))


def not_waited():
    dist.all_reduce(torch.ones(4), async_op=True)


def isend_not_waited():
    rank, size = dist.get_rank(), dist.get_world_size()
    work = dist.irecv(torch.ones(4), (rank - 1) % size)
    dist.isend(torch.ones(4), (rank + 1) % size)
    work.wait()


def never_completes():
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(4), async_op=True)


def mismatch_that_nobody_waits_for():
    dist.all_reduce(torch.ones(4 + dist.get_rank()), async_op=True)


def not_a_member():
    group = dist.new_group([0, 1])
    x = torch.ones(2)
    dist.all_reduce(x, group=group)
    return x


def group_made_by_members_only():
    if dist.get_rank() < 2:
        dist.new_group([0, 1])
    dist.barrier()


def mean_of_integers():
    dist.all_reduce(torch.ones(4, dtype=torch.int64), op=dist.ReduceOp.AVG)


def plain_collective_in_a_differentiable_path():
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    dist.all_reduce(y)
    y.sum().backward()


def collective_inside_a_function_of_autograd():
    class Reduce(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x = x.clone()
            dist.all_reduce(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = torch.ones(4, requires_grad=True)
    Reduce.apply(x * 2).sum().backward()
    return x.grad


def monitored_barrier():
    if dist.get_rank() != 1:
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=3), wait_all_ranks=True)
    else:
        dist.recv(torch.ones(1), 0)


def wait_with_a_timeout():
    if dist.get_rank() == 0:
        work = dist.irecv(torch.ones(1), 1)
        try:
            work.wait(datetime.timedelta(seconds=5))
        except RuntimeError as error:
            return str(error)
    return None


def retries_for_ever():
    if dist.get_rank() == 0:
        work = dist.irecv(torch.ones(1), 1)
        while True:
            try:
                work.wait(datetime.timedelta(seconds=5))
            except RuntimeError:
                continue


def waits_in_the_store():
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 0:
        store.get("never-set")
    else:
        dist.barrier()


def polls_for_ever():
    work = dist.irecv(torch.ones(1), 1) if dist.get_rank() == 0 else None
    while work is not None and not work.is_completed():
        pass


def polls_and_is_right():
    rank, x = dist.get_rank(), torch.zeros(1)
    if rank == 0:
        work = dist.irecv(x, 1)
        polls = 0
        while not work.is_completed():
            polls += 1
        return x, polls
    if rank == 1:
        time.sleep(0.05)
        dist.send(torch.ones(1) * 7, 0)
    return x, 0


def a_thread_sends_later():
    rank, x = dist.get_rank(), torch.zeros(1)
    if rank == 0:
        thread = threading.Thread(target=lambda: (time.sleep(0.2), dist.send(torch.ones(1), 1)))
        thread.start()
        dist.recv(x, 1)
        thread.join()
    elif rank == 1:
        dist.recv(x, 0)
        dist.send(x, 0)
    return x


def hangs_with_a_thread():
    if dist.get_rank() == 0:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    dist.recv(torch.zeros(1), (dist.get_rank() + 1) % dist.get_world_size())


def starts_daemons(directory):
    """Every rank leaves a child in its group, one in a session of its own, and a double fork behind."""
    pids = []
    for new_session in (False, True):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=new_session)
        pids.append(child.pid)
    middle = os.fork()
    if middle == 0:
        os.setsid()
        grandchild = os.fork()
        if grandchild == 0:
            time.sleep(1000)
            os._exit(0)
        with open(os.path.join(directory, f"{dist.get_rank()}.pid"), "w") as file:
            file.write(str(grandchild))
        os._exit(0)
    os.waitpid(middle, 0)
    return pids


def writes_junk_to_the_wire():
    if dist.get_rank() == 1:
        for fd in range(3, 64):
            try:
                os.write(fd, b"junk" * 100)
            except OSError:
                continue
    dist.barrier()


def truncates_shared_memory():
    if dist.get_rank() == 1:
        dist.all_reduce(torch.ones(1 << 16))
        for name in os.listdir("/proc/self/map_files"):
            path = os.path.join("/proc/self/map_files", name)
            try:
                if os.readlink(path).startswith("/memfd:shardkit"):
                    os.truncate(path, 0)
            except OSError:
                continue
        dist.all_reduce(torch.ones(1 << 16))
    else:
        dist.all_reduce(torch.ones(1 << 16))
        dist.all_reduce(torch.ones(1 << 16))
    return "survived"


def returns_a_subclass():
    class Mine(torch.Tensor):
        pass

    return torch.ones(2).as_subclass(Mine)


def returns_an_object():
    return object()


def prints_and_fails():
    print("to stdout from", dist.get_rank())
    print("to stderr from", dist.get_rank(), file=sys.stderr)
    raise RuntimeError("after printing")
