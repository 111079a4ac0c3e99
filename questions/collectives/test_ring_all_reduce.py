"""Checks of collectives/ring_all_reduce."""

import torch
import torch.distributed as dist

from kit.grading import Scenario, claim_baseline, compare, fail, hold, mark, mib

GUARD = 3  # elements before and after the tensor in its buffer, which nobody may write
WORLD = -1  # stands for group=None

# The tensor whose memory is read. Its chunks, a quarter of it each, are large beside all else that a rank does.
LARGE_WORLD_SIZE, LARGE_BYTES = 4, 32 << 20

# Integers of at most this magnitude, so that the sum over four ranks is exact in the dtype, in whatever order.
EXACT = {torch.float64: 2**20, torch.float32: 2**20, torch.float16: 2**8, torch.bfloat16: 2**5}


def all_reduce_each(solution, inputs):
    """Runs every case on this rank; a barrier before each and one after the last separate them in the trace."""
    groups = [dist.new_group(members) for members in inputs["groups"]]
    torch.manual_seed(inputs["seed"])
    for index, case in enumerate(inputs["cases"]):
        dist.barrier()
        mark(f"case {index}")
        if case["group"] is not None:  # else this rank is in no group
            buffer = case["buffer"]
            tensor = buffer[GUARD : buffer.numel() - GUARD].view(case["shape"])
            group = None if case["group"] == WORLD else groups[case["group"]]
            solution.ring_all_reduce(tensor, group)
        mark(f"case {index} done")
    dist.barrier()
    return {
        "buffers": [case["buffer"] for case in inputs["cases"]],
        "draw": torch.rand(3),
        "default_dtype": torch.get_default_dtype(),
        "grad_enabled": torch.is_grad_enabled(),
        "large": all_reduce_large(solution, inputs["large"]) if inputs["large"] is not None else None,
    }


def all_reduce_large(solution, start):
    """Held at the start and around the second of two calls, which finds made what is made once."""
    hold("start")  # before anything large: from here on freed memory goes back at once, and is in no later peak
    tensor = torch.zeros(LARGE_BYTES // 4, dtype=torch.float32)
    solution.ring_all_reduce(tensor)
    fill(tensor, start)
    hold("before")
    solution.ring_all_reduce(tensor)
    hold("after")
    return some_of(tensor)


def fill(tensor, start):
    """start, start + 1, ... up to 1,008 more and over again, so that no chunk is like another; exact when summed."""
    return torch.arange(tensor.numel(), out=tensor).remainder_(1009).add_(start)


def some_of(tensor):
    """What is worth sending of a large tensor: one element in 8,191, and the last."""
    return torch.cat([tensor[::8191], tensor[-1:]])


# --- inputs -----------------------------------------------------------------------------------------------------------


def draw(rng, shape, dtype, exact):
    numel = 2 * GUARD + torch.Size(shape).numel()
    if not exact:
        return torch.randn(numel, generator=rng, dtype=torch.float64).to(dtype)
    bound = EXACT[dtype]
    return torch.randint(-bound, bound + 1, (numel,), generator=rng).to(dtype)


def make_case(rng, world_size, kind, shape, dtype=torch.float64, partition=None, exact=True):
    """`partition`: disjoint groups that reduce at the same time; None means all ranks, as group=None."""
    return {
        "kind": kind,
        "shape": list(shape),
        "dtype": dtype,
        "groups": partition or [list(range(world_size))],
        "is_world": partition is None,
        "buffers": [draw(rng, shape, dtype, exact) for _ in range(world_size)],
    }


def ring_problem(rng, world_size):
    n = world_size
    k = int(torch.randint(2, 6, (), generator=rng))
    cases = [
        make_case(rng, n, "even", [n * k]),
        make_case(rng, n, "even", [2, n, k]),
        make_case(rng, n, "uneven", [n * k + n - 1]),
        make_case(rng, n, "uneven", [n + 1, 2 * n + 1]),
        make_case(rng, n, "tiny", [n - 1]),
        make_case(rng, n, "tiny", []),
        make_case(rng, n, "tiny", [2, 0]),
        make_case(rng, n, "dtype", [16, n], torch.float64, exact=False),
        make_case(rng, n, "dtype", [n * k], torch.float32),
        make_case(rng, n, "dtype", [n * k], torch.float16),
        make_case(rng, n, "dtype", [n * k], torch.bfloat16),
    ]
    middle(cases[1]["buffers"][n - 1]).zero_()  # one rank alone has nothing to add, and takes part all the same
    large = torch.randint(-1000, 1000, (n,), generator=rng).tolist() if n == LARGE_WORLD_SIZE else None
    return {"groups": [], "cases": cases, "large": large, "seed": int(torch.randint(2**31, (), generator=rng))}


PARTITIONS = {
    1: [[[0]]],
    2: [[[1]], [[0], [1]]],
    3: [[[1, 2]], [[0, 2], [1]]],
    4: [[[1, 2, 3]], [[0, 2], [1, 3]], [[0, 1, 3]]],
    5: [[[0, 1, 2, 3, 4]], [[0, 2, 4], [1, 3]]],  # all ranks, and still a group
}


def subgroup_problem(rng, world_size):
    cases = []
    for partition in PARTITIONS[world_size]:
        n = max(len(members) for members in partition)
        cases.append(make_case(rng, world_size, "subgroup", [2 * n + 1], partition=partition))
    cases.append(make_case(rng, world_size, "subgroup", [3, n], torch.bfloat16, partition=partition))
    groups = [members for partition in PARTITIONS[world_size] for members in partition]
    seed = int(torch.randint(2**31, (), generator=rng))
    return {"groups": groups, "cases": cases, "large": None, "seed": seed}


def members_of(case, rank):
    """The group that this rank reduces in, or None."""
    return next((members for members in case["groups"] if rank in members), None)


def rank_inputs(problem, rank):
    cases = []
    for case in problem["cases"]:
        members = members_of(case, rank)
        group = problem["groups"].index(members) if members and not case["is_world"] else None
        cases.append(
            {"group": WORLD if case["is_world"] else group, "shape": case["shape"], "buffer": case["buffers"][rank]}
        )
    large = problem["large"][rank] if problem["large"] is not None else None
    return {"groups": problem["groups"], "cases": cases, "large": large, "seed": problem["seed"]}


def expected(problem):
    """For each case and rank the tensor that it should hold: the group's sum, or its own where it is in no group."""
    results = []
    for case in problem["cases"]:
        parts = [middle(buffer).double() for buffer in case["buffers"]]
        sums = []
        for rank in range(len(parts)):
            members = members_of(case, rank) or [rank]
            sums.append(torch.stack([parts[member] for member in members]).sum(0).to(case["dtype"]))
        results.append(sums)
    return results


def middle(buffer):
    return buffer[GUARD : buffer.numel() - GUARD]


# --- what checks look at ----------------------------------------------------------------------------------------------


def check_sums(run, *kinds):
    for index, case in enumerate(run.problem["cases"]):
        if case["kind"] not in kinds:
            continue
        for rank, returned in enumerate(run.ranks):
            compare(
                middle(returned["buffers"][index]),
                run.expected[index][rank],
                what="sum",
                rank=rank,
                suspects=suspects_of(case, rank),
                where=describe(case, rank),
            )


def suspects_of(case, rank):
    """What a tensor that is not the group's sum may be instead."""
    members = members_of(case, rank)
    if members is None or len(members) == 1:
        return {}
    parts = [middle(buffer).double() for buffer in case["buffers"]]
    total = torch.stack([parts[member] for member in members]).sum(0)
    suspects = {
        "this rank's own tensor: nothing was written": parts[rank],
        "the mean over ranks: averaged, where the sum was asked for": total / len(members),
    }
    if len(members) < len(parts):
        suspects["the sum over all ranks of WORLD, not over those of the group"] = torch.stack(parts).sum(0)
    return {label: suspect.to(case["dtype"]) for label, suspect in suspects.items()}


def describe(case, rank):
    members = members_of(case, rank)
    tensor = f"a tensor of shape {case['shape']}"
    if case["is_world"]:
        return f"n = {len(members)}, {tensor}"
    return f"{tensor} in the group of global ranks {members}" if members else f"{tensor} on a rank in no group"


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def operations_by_case(run, rank):
    """This rank's operations, one list for each case."""
    sections = [[]]
    for operation in run.trace.operations(rank):
        if operation.name == "barrier" and len(operation.group) == run.world_size:
            sections.append([])
        else:
            sections[-1].append(operation)
    num_cases = len(run.problem["cases"])
    if len(sections) != num_cases + 2:
        fail(f"rank {rank} called barrier: a ring needs send and recv only")
    return sections[1:-1]


def each_case(run):
    """(rank, case, the members of its ring, this rank's operations in it), for every rank and case."""
    for rank in range(run.world_size):
        for case, operations in zip(run.problem["cases"], operations_by_case(run, rank), strict=True):
            yield rank, case, members_of(case, rank) or [rank], operations


def sends(operations):
    return [operation for operation in operations if operation.name == "send"]


def numel_of(case):
    return torch.Size(case["shape"]).numel()


def ceil_chunk(case, world_size):
    return -(-numel_of(case) // world_size)


# --- checks -----------------------------------------------------------------------------------------------------------

RING = Scenario(
    all_reduce_each,
    problem=ring_problem,
    rank_inputs=rank_inputs,
    expected=expected,
    world_sizes=(1, 2, 3, 4),
    gloo=(2, 4),
    deadline_s=20,
)

SUBGROUPS = Scenario(
    all_reduce_each,
    problem=subgroup_problem,
    rank_inputs=rank_inputs,
    expected=expected,
    world_sizes=(1, 2, 3, 4, 5),
    gloo=(4,),
    deadline_s=20,
)


@RING.check("values")
def test_every_rank_holds_the_sum(run):
    """Every rank's tensor is overwritten with the sum over ranks, one-dimensional or not, small or large."""
    check_sums(run, "even")
    if run.problem["large"] is None:
        return
    parts = [some_of(fill(torch.empty(LARGE_BYTES // 4), start)) for start in run.problem["large"]]
    for rank, returned in enumerate(run.ranks):
        where = f"n = {run.world_size}, a tensor of {LARGE_BYTES >> 20} MiB"
        compare(returned["large"], torch.stack(parts).sum(0), what="sum", rank=rank, where=where)


@RING.check("values")
def test_any_number_of_elements_is_summed(run):
    """A number of elements that n does not divide, fewer than n, one, none: all are summed to the last element."""
    check_sums(run, "uneven", "tiny")


@RING.check("values")
def test_each_dtype_is_summed_in_itself(run):
    """float64 keeps its 53 bits; float32, float16 and bfloat16 come back as they went in."""
    check_sums(run, "dtype")


@SUBGROUPS.check("values")
def test_a_subgroup_sums_its_own_members(run):
    """A group that does not start at rank 0, one with a gap, two groups at once: each sums its members only."""
    check_sums(run, "subgroup")


@RING.check("traffic")
def test_only_send_and_receive_are_used(run):
    """No collective: every operation is a send or a receive."""
    check_names(run)


@RING.check("traffic")
def test_messages_go_to_ring_neighbours(run):
    """Rank r talks to r-1 and r+1 (mod n) and to nobody else."""
    check_neighbours(run)


@RING.check("traffic")
def test_a_rank_sends_two_n_minus_1_chunks(run):
    """A rank sends at most 2(n-1) messages (exactly so when n divides), none longer than ceil(numel / n) elements."""
    check_messages(run)


@RING.check("traffic")
def test_bytes_sent_are_those_of_a_ring(run):
    """Exactly 2(n-1)/n of the bytes when n divides; else at most 2(n-1) ceil(numel / n) elements, and none left out."""
    check_bytes(run)


@SUBGROUPS.check("traffic")
def test_a_subgroup_sends_what_a_ring_sends(run):
    """In a group too: only send and receive, to neighbours in the group's ring, 2(n-1) chunks and their bytes."""
    check_names(run)
    check_neighbours(run)
    check_messages(run)
    check_bytes(run)


def check_names(run):
    for rank, _, _, operations in each_case(run):
        for operation in operations:
            if operation.name not in ("send", "recv"):
                fail(f"rank {rank} called {operation.name} at {operation.site}: use send and receive only")


def check_neighbours(run):
    for rank, case, members, operations in each_case(run):
        n, place = len(members), members.index(rank)
        neighbours = {members[place - 1], members[(place + 1) % n]}
        ring = "the ring" if case["is_world"] else f"the ring of global ranks {members}"
        for operation in operations:
            if operation.peer is not None and operation.peer not in neighbours:
                direction = "sent to" if operation.name == "send" else "received from"
                fail(
                    f"rank {rank} of {n} {direction} rank {operation.peer} at {operation.site}; "
                    f"its neighbours in {ring} are {sorted(neighbours)}"
                )


def check_messages(run):
    for rank, case, members, operations in each_case(run):
        n = len(members)
        chunk = ceil_chunk(case, n)
        longest = max((operation.numel for operation in sends(operations)), default=0)
        if longest > chunk:
            fail(
                f"rank {rank} of {n} sent {longest} elements in one message; a chunk of a tensor with "
                f"{numel_of(case)} elements has at most {chunk}"
            )
        num_sends = len(sends(operations))
        is_exact = numel_of(case) > 0 and numel_of(case) % n == 0
        if num_sends > 2 * (n - 1) or (is_exact and num_sends < 2 * (n - 1)):
            bound = "" if is_exact else "at most "
            fail(f"rank {rank} of {n} sent {num_sends} messages; a ring takes {bound}2(n-1) = {2 * (n - 1)}")


def check_bytes(run):
    totals = {}  # (case, members) -> what they sent together
    for index, case in enumerate(run.problem["cases"]):
        for members in case["groups"]:
            totals[index, tuple(members)] = 0
    for rank in range(run.world_size):
        for index, operations in enumerate(operations_by_case(run, rank)):
            case = run.problem["cases"][index]
            members = members_of(case, rank) or [rank]
            n = len(members)
            sent_bytes = sum(operation.sent_bytes for operation in operations)
            most_bytes = 2 * (n - 1) * ceil_chunk(case, n) * case["dtype"].itemsize
            is_exact = numel_of(case) % n == 0
            if sent_bytes > most_bytes or (is_exact and sent_bytes < most_bytes):
                bound = "exactly" if is_exact else "at most"
                fail(
                    f"rank {rank} of {n} sent {sent_bytes} B for {numel_of(case)} elements of "
                    f"{name_of(case['dtype'])}; a ring sends {bound} {most_bytes} B"
                )
            if n > 1:
                totals[index, tuple(members)] += sent_bytes
    for (index, members), total in totals.items():
        case, n = run.problem["cases"][index], len(members)
        least_bytes = 2 * (n - 1) * numel_of(case) * case["dtype"].itemsize
        if total < least_bytes:
            fail(
                f"{n} ranks together sent {total} B for {numel_of(case)} elements of {name_of(case['dtype'])}; "
                f"each element travels 2(n-1) times, which is {least_bytes} B: some were left out"
            )


@RING.check("time")
def test_all_ranks_send_and_receive_at_the_same_time(run):
    """Links carry both directions at once: done after 2(n-1) (latency + bytes of a chunk / bandwidth)."""
    check_time(run)


@SUBGROUPS.check("time")
def test_a_subgroup_sends_and_receives_at_the_same_time(run):
    """The ring of a group takes no longer either, beside another group's."""
    check_time(run)


def check_time(run):
    from kit.grading import profile  # here, since ranks import this file too

    links = profile("unit")  # a message costs 1 s and 1 s a byte: both can be seen
    timeline = run.result.timeline_under(links)
    for index, case in enumerate(run.problem["cases"]):
        n = max(len(members) for members in case["groups"])  # the largest of a partition takes longest
        chunk_bytes = ceil_chunk(case, n) * case["dtype"].itemsize
        expected_s = max(
            2 * (size - 1) * links.inside.message_s(ceil_chunk(case, size) * case["dtype"].itemsize)
            for size in {len(members) for members in case["groups"]}
        )
        took_s = timeline.between(f"case {index}", f"case {index} done").makespan_s
        # A hundredth is for those who ask is_completed() again and again; whoever waits for a neighbour without need
        # loses whole messages, at least one in 2(n-1).
        if took_s > 1.01 * expected_s:
            slower = f"{took_s / expected_s:.2g} times " if expected_s else ""
            fail(
                f"n = {n}, a tensor of shape {case['shape']}: done after {took_s:g} s, {slower}"
                f"the 2(n-1) (a + chunk / B) = {expected_s:g} s of a ring in which every rank sends and receives at "
                f"the same time (a = 1 s, B = 1 B/s, a chunk has {chunk_bytes} B): some rank sends only when it has "
                "received, or the other way round"
            )


@RING.check("memory")
def test_two_chunks_of_memory_suffice(run):
    """Besides the tensor a rank has two chunks of it at most at any time, and nothing when it returns."""
    if run.problem["large"] is None:
        return
    claim_baseline(run, "start", room_bytes=2 << 20)
    chunk_bytes = LARGE_BYTES // run.world_size
    for rank in range(run.world_size):
        peak_bytes = run.memory.peak_growth_bytes(rank, "after", since="start") - LARGE_BYTES
        left_bytes = run.memory.grown_bytes(rank, "after", since="start") - LARGE_BYTES
        # A quarter of a chunk is what the watch over buffers in flight takes while it compares one; the other half is
        # for readings, which are exact to 1 MiB. Three chunks are beyond.
        if peak_bytes > 2.75 * chunk_bytes or left_bytes > 0.5 * chunk_bytes:
            fail(
                f"rank {rank} of {run.world_size}, a tensor of {mib(LARGE_BYTES)}: besides it the rank had "
                f"{mib(peak_bytes)} at once and kept {mib(left_bytes)} after the return; two chunks of "
                f"{mib(chunk_bytes)} suffice, and none of them is kept"
            )


@RING.completes
def test_every_rank_finishes(run):
    """No rank hangs, crashes or leaves a message unmatched, also when a send waits for its receiver."""


@SUBGROUPS.completes
def test_every_rank_of_a_subgroup_finishes(run):
    """No rank hangs or crashes when the ring is a group: its peers are counted inside the group."""


@RING.check("discipline")
def test_every_rank_holds_the_same_bits(run):
    """Each chunk is summed in one order, so all ranks agree to the last bit."""
    for index, case in enumerate(run.problem["cases"]):
        if case["kind"] not in ("even", "dtype"):
            continue
        first = middle(run.ranks[0]["buffers"][index])
        for rank, returned in enumerate(run.ranks):
            if not torch.equal(middle(returned["buffers"][index]), first):
                apart = int((middle(returned["buffers"][index]) != first).sum())
                fail(
                    f"rank {rank} and rank 0 differ in {apart} of {first.numel()} elements "
                    f"of {name_of(case['dtype'])}: replicas that are not equal bit for bit drift apart"
                )


@RING.check("discipline")
def test_memory_around_the_tensor_is_left_alone(run):
    """The tensor is a view into a larger buffer, of which nothing else is written."""
    for index, case in enumerate(run.problem["cases"]):
        for rank, returned in enumerate(run.ranks):
            before, after = case["buffers"][rank], returned["buffers"][index]
            for part in (slice(0, GUARD), slice(before.numel() - GUARD, before.numel())):
                if not torch.equal(before[part], after[part]):
                    fail(f"rank {rank}: memory outside of the tensor (shape {case['shape']}) was overwritten")


@RING.check("discipline")
def test_global_state_is_left_alone(run):
    """Random numbers, the default dtype and the grad mode are as they were."""
    expected = torch.rand(3, generator=torch.Generator().manual_seed(run.problem["seed"]))
    for rank, returned in enumerate(run.ranks):
        if returned["default_dtype"] != torch.float32 or not returned["grad_enabled"]:
            fail(f"rank {rank}: the default dtype or the grad mode was changed and not put back")
        if not torch.equal(returned["draw"], expected):
            fail(f"rank {rank}: after the calls torch.rand draws other numbers than without them")


@RING.check("discipline")
def test_nothing_is_left_in_flight(run):
    """Every isend and irecv is waited for before the function returns."""
    check_waits(run)


@SUBGROUPS.check("discipline")
def test_nothing_of_a_subgroup_is_left_in_flight(run):
    """In a group too every isend and irecv is waited for before the function returns."""
    check_waits(run)


def check_waits(run):
    for rank, _, _, operations in each_case(run):
        for operation in operations:
            if not operation.waited:
                fail(
                    f"rank {rank} never waited for its {operation.name} at {operation.site}: "
                    "the buffer is still in flight when the caller goes on"
                )
