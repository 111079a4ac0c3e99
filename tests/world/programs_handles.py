"""Asynchronous handles, futures, functional collectives and collectives with gradients.

All values are whole numbers, so that sums are exact in any order.
"""

from __future__ import annotations

import datetime

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.nn.functional as nn_collectives


def whole(*shape, salt=0, dtype=torch.float64, requires_grad=False):
    """Whole numbers from -50 to 50, other ones on every rank."""
    generator = torch.Generator().manual_seed(1000 * dist.get_rank() + salt)
    x = torch.randint(-50, 51, shape, generator=generator).to(dtype)
    return x.requires_grad_(requires_grad)


def run_all(inputs):
    """What this rank saw in each function that inputs["cases"] names."""
    seen = []
    for number, name in enumerate(inputs["cases"]):
        print(number, flush=True)
        try:
            seen.append(globals()[name]())
        except (RuntimeError, ValueError, TypeError) as error:
            seen.append({"raised": type(error).__name__, "says": str(error)})
    return seen


# Handles and futures -------------------------------------------------------------------------------------------------


def waits_in_another_order():
    xs = [whole(3, salt=i) for i in range(4)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    answers = [works[i].wait() for i in (2, 0, 3, 1)]
    return [xs, answers, [work.is_completed() for work in works]]


def waits_twice():
    x = whole(5)
    work = dist.all_reduce(x, async_op=True)
    return [work.wait(), work.wait(datetime.timedelta(seconds=20)), x]


def polls_until_done():
    """is_completed() alone, without wait(): a program that polls is right."""
    xs = [whole(4, salt=i) for i in range(3)]
    works = [dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True) for x in xs]
    while not all([work.is_completed() for work in works]):  # noqa: C419 - every one of them has to be asked
        pass
    return [xs, [work.is_success() for work in works]]


def started():
    """One operation of each kind whose handle gives its tensors; gloo's reduce_scatter gives none."""
    n, rank = dist.get_world_size(), dist.get_rank()
    xs = [whole(2, 3, salt=i) for i in range(n)]

    def room():
        return [torch.zeros(2, 3, dtype=torch.float64) for _ in range(n)]

    return [
        dist.all_reduce(xs[0].clone(), async_op=True),
        dist.broadcast(xs[0].clone(), 0, async_op=True),
        dist.all_gather(room(), xs[0], async_op=True),
        dist.scatter(room()[0], xs if rank == 0 else None, async_op=True),
        dist.gather(xs[0], room() if rank == 0 else None, async_op=True),
        dist.all_to_all(room(), xs, async_op=True),
        dist.all_to_all_single(torch.zeros(2 * n, 3, dtype=torch.float64), torch.cat(xs), async_op=True),
    ]


def results_of_works():
    works = started()
    for work in works:
        work.wait()
    return [[work.result(), work.is_success()] for work in works]


def values_of_futures():
    futures = [work.get_future() for work in started()]
    return [[future.wait(), future.done(), future.value()] for future in reversed(futures)]


def then_chains():
    x, y = whole(4), whole(4, salt=1)
    first = dist.all_reduce(x, async_op=True).get_future().then(lambda future: future.value()[0] * 2)
    second = dist.all_reduce(y, async_op=True).get_future().then(lambda future: future.value()[0] + 1)
    third = second.then(lambda future: future.value() * 10)
    return [third.wait(), first.wait(), x, y]


def waits_for_all_futures():
    xs = [whole(4, salt=i) for i in range(4)]
    futures = [dist.all_reduce(x, async_op=True).get_future() for x in xs]
    values = torch.futures.wait_all(futures)
    return [values, xs]


def collects_all_futures():
    xs = [whole(4, salt=i) for i in range(4)]
    futures = [dist.all_reduce(x, async_op=True).get_future() for x in xs]
    together = torch.futures.collect_all(futures).then(lambda all_done: [f.value()[0].sum() for f in all_done.value()])
    return [together.wait(), xs]


def future_after_wait():
    x = whole(4)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    future = work.get_future()
    return [future.done(), future.wait()]


def polls_a_future():
    x = whole(4)
    work = dist.all_reduce(x, async_op=True)
    future = work.get_future()
    while not work.is_completed():
        pass
    return [future.wait(), x]


def async_barrier():
    work = dist.barrier(async_op=True)
    return work.wait()


def coalesced_future():
    xs = [whole(3, salt=i) for i in range(2)]
    answer = dist.all_reduce_coalesced(xs, async_op=True)
    answer.wait()
    return xs


# What tensors go through ----------------------------------------------------------------------------------------------


def versions_of_tensors():
    """Autograd's version counters: gloo bumps none for what it writes in place."""
    n, rank = dist.get_world_size(), dist.get_rank()
    a, b = whole(3), whole(3)
    dist.all_reduce(a)
    dist.broadcast(b, 0)
    seen = [a._version, b._version]
    if n > 1 and rank < 2:
        d = whole(3)
        dist.send(d, 1) if rank == 0 else dist.recv(d, 0)
        seen.append(d._version)
    return seen


def saved_for_backward():
    """A tensor that autograd has saved may be reduced in place: no version tells, so no error comes."""
    x, weight = whole(3, requires_grad=True), whole(3, salt=1)
    y = x * weight
    dist.all_reduce(weight)
    y.sum().backward()
    return [x.grad, weight]


def leaves_that_require_grad():
    parameter = torch.nn.Parameter(whole(3, 2))
    dist.broadcast(parameter, 0)
    with torch.no_grad():
        dist.all_reduce(parameter)
    dist.all_reduce(parameter.data)
    outputs = [torch.zeros(3, 2, dtype=torch.float64) for _ in range(dist.get_world_size())]
    dist.all_gather(outputs, parameter.detach())
    return [parameter.detach(), parameter.requires_grad, parameter.is_leaf, outputs]


def inference_mode():
    n = dist.get_world_size()
    with torch.inference_mode():
        x, y = whole(4), torch.zeros(4 * n, dtype=torch.float64)
        dist.all_reduce(x)
        dist.all_gather_into_tensor(y, x + dist.get_rank())
        work = dist.broadcast(x, n - 1, async_op=True)
    work.wait()  # outside the mode
    return [x.clone(), y.clone()]


def in_place_on_part_of_the_output():
    """NCCL's in-place forms: the input is the rank's own part of the output, the output its part of the input."""
    n, rank = dist.get_world_size(), dist.get_rank()
    whole_buffer = whole(3 * n)
    dist.all_gather_into_tensor(whole_buffer, whole_buffer[3 * rank : 3 * rank + 3])
    parts = list(whole(2 * n, salt=1).chunk(n))
    dist.all_gather(parts, parts[rank])
    addends = whole(3 * n, salt=2)
    kept = addends.clone()
    dist.reduce_scatter_tensor(addends[3 * rank : 3 * rank + 3], addends)
    return [whole_buffer, parts, addends[3 * rank : 3 * rank + 3], kept]


def views_of_one_buffer():
    """Gradient buckets: all_reduce of a slice leaves the rest alone."""
    bucket = whole(12)
    works = [dist.all_reduce(bucket[i : i + 4], async_op=True) for i in (4, 0)]
    for work in works:
        work.wait()
    return bucket


# Functional collectives ----------------------------------------------------------------------------------------------


def functional_all_reduce():
    x = whole(3, 2)
    return [[op, funcol.all_reduce(x, op, dist.group.WORLD) + 0] for op in ("sum", "max", "min", "product")] + [x]


def functional_on_group():
    ranks = list(range(0, dist.get_world_size(), 2))
    group = dist.new_group(ranks)
    if dist.get_rank() not in ranks:
        return None
    return funcol.all_reduce(whole(3), "sum", group) * 2


def functional_broadcast():
    return funcol.broadcast(whole(3, 2), dist.get_world_size() - 1, dist.group.WORLD) + 0


def functional_all_gather():
    x = whole(2, 3)
    return [funcol.all_gather_tensor(x, dim, dist.group.WORLD) + 0 for dim in (0, 1)]


def functional_reduce_scatter():
    n = dist.get_world_size()
    return [funcol.reduce_scatter_tensor(whole(2 * n, 3 * n), "sum", dim, dist.group.WORLD) + 0 for dim in (0, 1)]


def functional_all_to_all():
    n, rank = dist.get_world_size(), dist.get_rank()
    send = [(rank + j) % 3 for j in range(n)]
    take = [(i + rank) % 3 for i in range(n)]
    even = funcol.all_to_all_single(whole(2 * n, 2), None, None, dist.group.WORLD)
    uneven = funcol.all_to_all_single(whole(sum(send), 2), take, send, dist.group.WORLD)
    return [even + 0, uneven + 0]


def functional_coalesced():
    n = dist.get_world_size()
    xs = [whole(2, 3), whole(5, salt=1)]
    ys = [whole(2 * n, 3), whole(n, salt=1)]
    return [
        [x + 0 for x in funcol.all_reduce_coalesced(xs, "sum", dist.group.WORLD)],
        [x + 0 for x in funcol.all_gather_into_tensor_coalesced(xs, dist.group.WORLD)],
        [x + 0 for x in funcol.reduce_scatter_tensor_coalesced(ys, "sum", [0, 0], dist.group.WORLD)],
    ]


def functional_permute():
    n = dist.get_world_size()
    return funcol.permute_tensor(whole(3), [(i + 1) % n for i in range(n)], dist.group.WORLD) + 0


def functional_wait_and_async():
    x = funcol.all_reduce(whole(3), "sum", dist.group.WORLD)
    y = funcol.all_reduce(whole(3, salt=1), "sum", dist.group.WORLD)
    return [funcol.wait_tensor(y) + 0, funcol.wait_tensor(x) + 0]


def functional_gradients():
    n = dist.get_world_size()
    x = whole(2 * n, 3, requires_grad=True)
    y = whole(2 * n, 3, salt=1, requires_grad=True)
    z = whole(2 * n, 3, salt=2, requires_grad=True)
    weight = whole(2 * n * n, 3, salt=3)
    gathered = funcol.all_gather_tensor_autograd(x, 0, dist.group.WORLD)
    scattered = funcol.reduce_scatter_tensor_autograd(y, "sum", 0, dist.group.WORLD)
    exchanged = funcol.all_to_all_single_autograd(z, [2] * n, [2] * n, dist.group.WORLD)
    ((gathered * weight).sum() + (scattered * weight[:2]).sum() + (exchanged * weight[: 2 * n]).sum()).backward()
    return [gathered.detach() + 0, scattered.detach() + 0, exchanged.detach() + 0, x.grad, y.grad, z.grad]


# torch.distributed.nn.functional: collectives with gradients ---------------------------------------------------------


def backward_of(output, *inputs):
    """The output, and the gradients of a weighted sum of it with other weights on every rank."""
    outputs = output if isinstance(output, (list, tuple)) else [output]
    sum((whole(*out.shape, salt=77 + i) * out).sum() for i, out in enumerate(outputs)).backward()
    return [[out.detach() for out in outputs], [x.grad for x in inputs]]


def nn_all_reduce():
    x = whole(3, 2, requires_grad=True)
    return backward_of(nn_collectives.all_reduce(x * 2), x)


def nn_broadcast():
    x = whole(3, 2, requires_grad=True)
    return backward_of(nn_collectives.broadcast(x * 2, dist.get_world_size() - 1), x)


def nn_reduce():
    x = whole(3, 2, requires_grad=True)
    output = nn_collectives.reduce(x * 2, dist.get_world_size() - 1)
    seen = backward_of(output, x)
    # As with dist.reduce: elsewhere than on the root gloo leaves partial sums.
    return seen if dist.get_rank() == dist.get_world_size() - 1 else seen[1]


def nn_gather():
    x = whole(3, 2, requires_grad=True)
    return backward_of(nn_collectives.gather(x * 2, 0), x)


def nn_scatter():
    xs = [whole(3, 2, salt=i, requires_grad=True) for i in range(dist.get_world_size())]
    return backward_of(nn_collectives.scatter([x * 2 for x in xs], 0), *xs)


def nn_reduce_scatter():
    xs = [whole(3, 2, salt=i, requires_grad=True) for i in range(dist.get_world_size())]
    output = torch.zeros(3, 2, dtype=torch.float64)
    return backward_of(nn_collectives.reduce_scatter(output, [x * 2 for x in xs]), *xs)


def nn_all_gather():
    x = whole(3, 2, requires_grad=True)
    return backward_of(nn_collectives.all_gather(x * 2), x)


def nn_all_to_all():
    n = dist.get_world_size()
    xs = [whole(3, 2, salt=i, requires_grad=True) for i in range(n)]
    outputs = [torch.zeros(3, 2, dtype=torch.float64) for _ in range(n)]
    return backward_of(nn_collectives.all_to_all(outputs, [x * 2 for x in xs]), *xs)


def nn_all_to_all_single():
    n, rank = dist.get_world_size(), dist.get_rank()
    send = [(rank + j) % 3 for j in range(n)]
    take = [(i + rank) % 3 for i in range(n)]
    x = whole(sum(send), 2, requires_grad=True)
    output = torch.zeros(sum(take), 2, dtype=torch.float64)
    return backward_of(nn_collectives.all_to_all_single(output, x * 2, take, send), x)


CASES = tuple(
    name
    for name, function in list(globals().items())
    if callable(function) and getattr(function, "__module__", "") == __name__
    if name not in ("whole", "run_all", "started", "backward_of")
)
