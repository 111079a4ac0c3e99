"""Checks of dp/bucketed."""

from dataclasses import replace
from itertools import pairwise

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from kit.grading import Charged, Scenario, call, claim_persistent, compare, fail, hold, mark


def state_of(module):
    """Name and tensor of every parameter and buffer; also buffers that state_dict() leaves out."""
    return [*module.named_parameters(), *module.named_buffers()]


def load(module, state):
    with torch.no_grad():
        for name, tensor in state_of(module):
            tensor.copy_(state[name])


def draw_state(module, rng):
    state = {}
    for name, tensor in state_of(module):
        if not tensor.is_floating_point():
            state[name] = torch.randint(1, 9, tensor.shape, generator=rng)  # BatchNorm's counter
        elif name.endswith("running_var"):
            state[name] = torch.rand(tensor.shape, generator=rng, dtype=tensor.dtype) + 0.5
        else:
            state[name] = (torch.randn(tensor.shape, generator=rng, dtype=torch.float64) / 2).to(tensor.dtype)
    return state


def snapshot(named_tensors):
    return {name: None if tensor is None else tensor.detach().clone() for name, tensor in named_tensors}


def gradients(module):
    return snapshot((name, param.grad) for name, param in module.named_parameters() if param.requires_grad)


def descend(module, learning_rate=0.1):
    with torch.no_grad():
        for param in module.parameters():
            if param.grad is not None:
                param -= learning_rate * param.grad


def mean_of(trees):
    return {name: sum(tree[name].double() for tree in trees) / len(trees) for name in trees[0]}


def plus(tree, other):
    return other if tree is None else {name: tree[name] + other[name] for name in tree}


# --- time: between the layers whose gradients travel, layers that the deciding process computes and charges ---

FORWARD_S, BACKWARD_S = 1.0, 2.0  # virtual seconds of one layer
# An all_reduce of S bytes takes S / 480 s. Gradients of 48, 60, 40 and 192 numbers take 0.8, 1, 0.67 and 3.2 s: the
# last layer's is longer than a layer's backward, and still all but the first layer's can be done when backward ends.
REDUCED_BYTES_PER_S = 480.0
SLACK_S = 0.01  # for polls, which cost a microsecond each
# 629 bytes, for gradients of 384, 480, 320, 1536 bytes, so that every right bucket ends where a layer of these ends:
# from the last, [1536], [320], [480], [384], or [1536], [320, 480], [384] if a bucket closes upon passing the cap.
TIMED_BUCKET_SIZE_MB = 0.0006
WIDTHS = (4, 12, 5, 8, 24)
NUM_LAYERS = len(WIDTHS) - 1
NUM_TIMED_STEPS = 2


class Charge(torch.autograd.Function):
    """A layer of the deciding process: backward cannot pass it without waiting until it has been computed."""

    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        ctx.save_for_backward(x)
        return call("layer", "forward", layer, x.detach())

    @staticmethod
    def backward(ctx, gy):
        (x,) = ctx.saved_tensors
        return call("layer", "backward", ctx.layer, x.detach(), gy), None


class Tower(nn.Module):
    """Linear layers, each followed by `between(x, layer)`; at the top a frozen one, of which no gradient ever comes."""

    def __init__(self, between):
        super().__init__()
        self.between = between
        self.layers = nn.ModuleList(nn.Linear(*sides, bias=False, dtype=torch.float64) for sides in pairwise(WIDTHS))
        self.frozen = nn.Linear(WIDTHS[-1], 2, dtype=torch.float64).requires_grad_(False)

    def forward(self, x):
        for layer, linear in enumerate(self.layers):
            x = self.between(linear(x), layer)
        return self.frozen(x)


def layer_of(secrets):
    """y = tanh(x A) of each layer. Who calls it pays, and has no other way to A."""

    def layer(rank, method, index, x, gy=None):
        y = torch.tanh(x @ secrets[index])
        if method == "forward":
            return Charged(y, FORWARD_S, "F", f"layer {index}")
        return Charged((gy * (1 - y**2)) @ secrets[index].t(), BACKWARD_S, "B", f"layer {index}")

    return layer


def services(problem, world_size):
    return {"layer": layer_of(problem["secrets"])}


def network(world_size):
    """The links on which an all_reduce of S bytes takes S / REDUCED_BYTES_PER_S seconds at this world size."""
    from kit.grading import Tier, profile  # here, since ranks import this file too

    link = Tier(0.0, REDUCED_BYTES_PER_S * 2 * max(world_size - 1, 1) / world_size)
    return replace(profile("ideal"), name="slow", inside=link, between=link)


def draw_tower(rng, world_size):
    def randn(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    return {
        "secrets": [randn(width, width) / width**0.5 for width in WIDTHS[1:]],
        "towers": [draw_state(Tower(None), rng) for _ in range(world_size)],
        "timed_batches": [[randn(3, WIDTHS[0]) for _ in range(NUM_TIMED_STEPS)] for _ in range(world_size)],
        "timed_slopes": [[1.0, 0.0 if 0 < rank == world_size - 1 else 1.0] for rank in range(world_size)],
    }


def tower_loss(module, x, slope):
    """slope 0: every gradient is there, and is zero."""
    return module(x).pow(2).sum() * slope


def timed_train(solution, inputs):
    """A step with no gradient yet, and one more: what the first has left behind must not hold up the second."""
    module = Tower(Charge.apply)
    load(module, inputs["tower"])
    ddp = solution.DDPBucketed(module, TIMED_BUCKET_SIZE_MB)
    returned = []
    for step, (x, slope) in enumerate(zip(inputs["timed_batches"], inputs["timed_slopes"], strict=True), start=1):
        dist.barrier()
        mark(f"step {step}")
        ddp.zero_grad()
        tower_loss(ddp, x, slope).backward()
        ddp.finish_gradient_synchronization()
        mark(f"step {step} done")
        returned.append(gradients(ddp.module))
    return returned


def timed_expected(problem):
    """For each step the means over ranks."""
    module = Tower(lambda x, layer: torch.tanh(x @ problem["secrets"][layer]))
    load(module, problem["towers"][0])
    means = []
    for step in range(NUM_TIMED_STEPS):
        local = []
        for batches, slopes in zip(problem["timed_batches"], problem["timed_slopes"], strict=True):
            module.zero_grad()
            tower_loss(module, batches[step], slopes[step]).backward()
            local.append(gradients(module))
        means.append(mean_of(local))
    return means


# --- two wrapped modules in one backward, as a generator and its critic: neither may mind the other ---

PAIR_BUCKET_SIZE_MB = 0.0001  # 104 bytes, for gradients of 24, 24, 72 and 24 bytes in each of them


class Half(nn.Module):
    """A linear layer, and BatchNorm for its mode and its buffers."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3, dtype=torch.float64)
        self.linear = nn.Linear(3, 3, dtype=torch.float64)

    def forward(self, x):
        return self.linear(self.norm(x))


def draw_pair(rng, world_size):
    return {
        "halves": [[draw_state(Half(), rng) for _ in range(2)] for _ in range(world_size)],
        "x": [torch.randn(4, 3, generator=rng, dtype=torch.float64) for _ in range(world_size)],
    }


def pair_loss(first, second, x):
    return (first(x) * second(x)).sum()


def train_pair(solution, inputs):
    """Both are waited for when backward is over; before it each is evaluated, which is not training."""
    halves = []
    for state in inputs["halves"]:
        module = Half()
        load(module, state)
        halves.append(solution.DDPBucketed(module, PAIR_BUCKET_SIZE_MB))
    mark("pair constructed")
    loss = pair_loss(*halves, inputs["x"])
    evaluated = [evaluate(half, inputs["x"]) for half in halves]
    loss.backward()
    for half in halves:
        half.finish_gradient_synchronization()
    mark("pair")
    return {"gradients": [gradients(half.module) for half in halves], "evaluated": evaluated}


def evaluate(module, x):
    module.eval()
    with torch.no_grad():
        y = module(x)
    module.train()
    return {"output": y.clone(), "requires grad": y.requires_grad}


def pair_expected(problem):
    halves = [Half() for _ in range(2)]
    local, evaluated = [], []
    for x in problem["x"]:
        for half, state in zip(halves, problem["halves"][0], strict=True):
            load(half, state)
            half.zero_grad()
        pair_loss(*halves, x).backward()
        local.append([gradients(half) for half in halves])
        evaluated.append([evaluate(half, x) for half in halves])
    return {"gradients": [mean_of(trees) for trees in zip(*local, strict=True)], "evaluated": evaluated}


# --- memory: what is left of steps whose gradients are large ---

HELD_WORLD_SIZE = 2
NUM_HELD_STEPS = 4
WIDE_SHAPES = [(256, 512)] * 4  # 0.5 MiB each in float32: large beside what readings are off by, and soon reduced


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList(torch.zeros(shape) for shape in WIDE_SHAPES)

    def forward(self, x):
        return sum((weight @ x).sum() for weight in self.weights)


def hold_steps(solution):
    """Held before the module is wrapped, and after its steps, with the last gradients still there."""
    module = Wide()
    hold("before")
    ddp = solution.DDPBucketed(module, bucket_size_mb=1)
    for step in range(NUM_HELD_STEPS):
        ddp.zero_grad()
        ddp(torch.full((512,), 1.0 + step)).backward()
        ddp.finish_gradient_synchronization()
    hold("after")


# --- several steps of a model with everything that a state can consist of ---

# Before each backward: what zero_grad(set_to_none=...) is called with; None: it is not called, gradients accumulate.
ZERO_GRAD = (True, False, True, None, None)
OPTIMIZER_STEP_AFTER = 1
FROZEN = ("frozen.weight", "frozen.bias")
# 419 bytes, for gradients of 240, 40, 280, 56, 56, 56, 336, 528, 48 bytes. A MB of 10**6 bytes gives the same buckets.
BUCKET_SIZE_MB = 0.0004


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(6, 5, dtype=torch.float64).t())  # [5, 6], dense, stored transposed

    def forward(self, x):
        return x @ self.weight


class Classifier(nn.Module):
    """Tied embedding and output, BatchNorm, a frozen layer, a transposed weight, a buffer outside state_dict()."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(6, dtype=torch.float64))
        self.embedding = nn.Embedding(11, 6, dtype=torch.float64)
        self.lower = nn.Linear(6, 7, dtype=torch.float64)
        self.norm = nn.BatchNorm1d(7, dtype=torch.float64)
        self.frozen = nn.Linear(7, 7, dtype=torch.float64).requires_grad_(False)
        self.upper = nn.Linear(7, 5, dtype=torch.float64)
        self.head = Head()
        self.register_buffer("shift", torch.zeros(6, dtype=torch.float64), persistent=False)
        self.output = nn.Linear(6, 11, bias=False, dtype=torch.float64)
        self.output.weight = self.embedding.weight

    def forward(self, tokens, *, temperature):
        x = torch.tanh(self.lower(self.scale * self.embedding(tokens).mean(dim=1)))
        x = self.frozen(self.norm(x))
        x = self.head(torch.tanh(self.upper(x))) + self.shift
        return {"logits": self.output(x) / temperature}


def loss_of(module, batch):
    logits = module(batch["tokens"], temperature=batch["temperature"])["logits"]
    return F.cross_entropy(logits, batch["labels"])


def draw_batch(rng, rank):
    num_samples = 3 + rank % 2
    return {
        "tokens": torch.randint(0, 11, (num_samples, 4), generator=rng),
        "labels": torch.randint(0, 11, (num_samples,), generator=rng),
        "temperature": 0.5 + rank,
    }


def train_problem(rng, world_size):
    return {
        "states": [draw_state(Classifier(), rng) for _ in range(world_size)],
        "batches": [[draw_batch(rng, rank) for _ in ZERO_GRAD] for rank in range(world_size)],
        "seed": int(torch.randint(0, 2**31, (), generator=rng)),
        **draw_tower(rng, world_size),
        "pair": draw_pair(rng, world_size),
    }


def train_inputs(problem, rank):
    return {
        "state": problem["states"][rank],
        "batches": problem["batches"][rank],
        "seed": problem["seed"],
        "tower": problem["towers"][rank],
        "timed_batches": problem["timed_batches"][rank],
        "timed_slopes": problem["timed_slopes"][rank],
        "pair": {name: drawn[rank] for name, drawn in problem["pair"].items()},
    }


def train(solution, inputs):
    module = Classifier()
    load(module, inputs["state"])
    torch.manual_seed(inputs["seed"])
    ddp = solution.DDPBucketed(module, BUCKET_SIZE_MB)
    mark("constructed")
    returned = {"initial": snapshot(state_of(ddp.module)), "gradients": []}
    for backward, batch in enumerate(inputs["batches"]):
        if ZERO_GRAD[backward] is not None:
            ddp.zero_grad(set_to_none=ZERO_GRAD[backward])
        loss_of(ddp, batch).backward()
        ddp.finish_gradient_synchronization()
        mark(f"backward {backward + 1}")
        returned["gradients"].append(gradients(ddp.module))
        if backward == OPTIMIZER_STEP_AFTER:
            returned["buffers"] = snapshot(ddp.module.named_buffers())
            descend(ddp.module)
    frozen = [(name, param) for name, param in ddp.module.named_parameters() if not param.requires_grad]
    returned["frozen"] = snapshot(frozen)
    returned["frozen_gradients"] = snapshot((name, param.grad) for name, param in frozen)
    returned["draw"] = torch.rand(4)
    returned["default_dtype"] = torch.get_default_dtype()
    returned["grad_enabled"] = torch.is_grad_enabled()
    returned["timed"] = timed_train(solution, inputs)
    returned["pair"] = train_pair(solution, inputs["pair"])
    if dist.get_world_size() == HELD_WORLD_SIZE:
        hold_steps(solution)
    returned["in_one_bucket"] = train_in_one_bucket(solution, inputs)
    return returned


def train_in_one_bucket(solution, inputs):
    """The first backward once more, with bucket_size_mb=None."""
    module = Classifier()
    load(module, inputs["state"])
    ddp = solution.DDPBucketed(module, None)
    mark("constructed again")
    loss_of(ddp, inputs["batches"][0]).backward()
    ddp.finish_gradient_synchronization()
    mark("in one bucket")
    return gradients(ddp.module)


def train_expected(problem):
    """One replica per rank, side by side in one process; the mean of their gradients steps all of them."""
    replicas = [Classifier() for _ in problem["states"]]
    for replica in replicas:
        load(replica, problem["states"][0])
    result = {"gradients": [], "means": [], "local": []}
    total = total_local = None
    for backward, zero_grad in enumerate(ZERO_GRAD):
        for replica, batches in zip(replicas, problem["batches"], strict=True):
            replica.zero_grad()
            loss_of(replica, batches[backward]).backward()
        local = [gradients(replica) for replica in replicas]
        if zero_grad is not None:
            total, total_local = None, [None] * len(local)
        total = plus(total, mean_of(local))
        total_local = [plus(*trees) for trees in zip(total_local, local, strict=True)]
        result["gradients"].append(total)
        result["means"].append(mean_of(local))
        result["local"].append(total_local)
        if backward == OPTIMIZER_STEP_AFTER:
            result["buffers"] = [snapshot(replica.named_buffers()) for replica in replicas]
            for replica in replicas:
                for name, param in replica.named_parameters():
                    param.grad = total.get(name)
                descend(replica)
    result["timed"] = timed_expected(problem)
    result["pair"] = pair_expected(problem["pair"])
    result["draw"] = torch.rand(4, generator=torch.Generator().manual_seed(problem["seed"]))
    return result


TRAIN = Scenario(
    train,
    problem=train_problem,
    rank_inputs=train_inputs,
    expected=train_expected,
    services=services,
    profile=network,
    world_sizes=(1, 2, 3, 4),
    gloo=(2, 4),
    deadline_s=20,
)


@TRAIN.completes
def test_every_rank_finishes(run):
    """No rank hangs, crashes or leaves a collective unmatched."""


@TRAIN.check("values")
def test_every_rank_starts_as_rank_0(run):
    """After construction every parameter and buffer is rank 0's, also frozen ones and persistent=False ones."""
    states = run.problem["states"]
    for rank, returned in enumerate(run.ranks):
        compare(
            returned["initial"],
            states[0],
            what="initial state",
            rank=rank,
            world_size=run.world_size,
            rtol=0,  # copied, not computed
            suspects={"this rank's own initial value": states[rank]} if rank else None,
        )


@TRAIN.check("values")
def test_gradients_are_the_mean(run):
    """After finish, every .grad on every rank is the mean over ranks."""
    compare_gradients(run, [k for k, zero_grad in enumerate(ZERO_GRAD) if zero_grad is not None])
    for rank, returned in enumerate(run.ranks):
        compare(returned["timed"], run.expected["timed"], what="gradient", rank=rank, world_size=run.world_size)
        compare(
            returned["pair"]["gradients"],
            run.expected["pair"]["gradients"],
            what="gradient",
            rank=rank,
            world_size=run.world_size,
            where="two wrapped modules in one backward",
        )


@TRAIN.check("values")
def test_forward_is_the_module_s_own(run):
    """Forward returns what the module returns, in eval mode and under no_grad too."""
    for rank, returned in enumerate(run.ranks):
        compare(
            returned["pair"]["evaluated"],
            run.expected["pair"]["evaluated"][rank],
            what="evaluation",
            rank=rank,
            world_size=run.world_size,
            where="in eval mode and under no_grad, between forward and backward",
        )


@TRAIN.check("values")
def test_gradients_accumulate(run):
    """After k backwards without zero_grad, each followed by finish, .grad is the sum of the k means."""
    compare_gradients(run, [k for k, zero_grad in enumerate(ZERO_GRAD) if zero_grad is None])


def compare_gradients(run, backwards):
    for backward in backwards:
        for rank, returned in enumerate(run.ranks):
            compare(
                returned["gradients"][backward],
                run.expected["gradients"][backward],
                what="gradient",
                rank=rank,
                world_size=run.world_size,
                suspects={
                    "this rank's local gradient": run.expected["local"][backward][rank],
                    "the mean of the last microbatch alone": run.expected["means"][backward],
                },
                where=f"after backward {backward + 1}",
            )


@TRAIN.check("values")
def test_frozen_parameters_stay_frozen(run):
    """A parameter with requires_grad=False is rank 0's, gets no gradient and does not change."""
    before = {name: run.problem["states"][0][name] for name in FROZEN}
    for rank, returned in enumerate(run.ranks):
        for name, grad in returned["frozen_gradients"].items():
            if grad is not None:
                fail(f"rank {rank}: {name} is frozen (requires_grad=False), but has a .grad")
        compare(returned["frozen"], before, what="frozen parameter", rank=rank, world_size=run.world_size, rtol=0)


@TRAIN.check("values")
def test_buffers_stay_local_after_construction(run):
    """BatchNorm's running statistics follow this rank's own batches: buffers travel once, in __init__."""
    for rank, returned in enumerate(run.ranks):
        compare(
            returned["buffers"],
            run.expected["buffers"][rank],
            what="buffer",
            rank=rank,
            world_size=run.world_size,
            suspects={"rank 0's": run.expected["buffers"][0]} if rank else None,
            where="after two forwards",
        )


@TRAIN.check("values")
def test_none_is_one_bucket(run):
    """bucket_size_mb=None gives the same means."""
    for rank, returned in enumerate(run.ranks):
        compare(
            returned["in_one_bucket"],
            run.expected["gradients"][0],
            what="gradient",
            rank=rank,
            world_size=run.world_size,
            suspects={"this rank's local gradient": run.expected["local"][0][rank]},
            where="with bucket_size_mb=None",
        )


def operations_until(run, rank):
    """Each mark's name, and the operations that the rank issued since the mark before it."""
    operations, parts, part = run.trace.operations(rank), {}, []
    for event in run.trace.events(rank):
        if event.kind == "issue":
            part.append(operations[event.operation])
        elif event.kind == "mark":
            parts[event.what], part = part, []
    return parts


def backwards_of(run, rank):
    """For each backward: where it is, the cap in bytes, and its operations."""
    parts = operations_until(run, rank)
    for number in range(1, len(ZERO_GRAD) + 1):
        yield f"rank {rank}, backward {number}", BUCKET_SIZE_MB * 2**20, parts[f"backward {number}"]
    yield f"rank {rank}, bucket_size_mb=None", float("inf"), parts["in one bucket"]


def pair_of(run, rank):
    """What was sent for two wrapped modules in one backward."""
    where = f"rank {rank}, two wrapped modules in one backward and an evaluation"
    return where, only(operations_until(run, rank)["pair"], ("all_reduce",), where)


def only(operations, allowed, where):
    """The operations, once it is sure that no others than the allowed are among them."""
    others = sorted({operation.name for operation in operations} - set(allowed))
    if others:
        fail(f"{where}: needs {allowed[0]} alone, but used {', '.join(others)}")
    return operations


def sizes_of(tensors):
    return [tensor.numel() * tensor.element_size() for tensor in tensors]


def cut_into_buckets(sent, sizes):
    """[48, 80], [40, 8, 80] -> [[40, 8], [80]]; None unless the sizes, in their order, make up what was sent."""
    rest, buckets = list(sizes), []
    for num_bytes in sent:
        bucket = []
        while rest and sum(bucket) < num_bytes:
            bucket.append(rest.pop(0))
        buckets.append(bucket)
    return buckets if not rest and [sum(bucket) for bucket in buckets] == list(sent) else None


def not_the_gradients(where, sent, sizes):
    carried = f"{where}: {len(sent)} all_reduces carry {sum(sent)} bytes, and the gradients are {sum(sizes)}"
    if sum(sent) < sum(sizes):
        fail(f"{carried}: some of them never travel ({sent} bytes sent)")
    if sum(sent) > sum(sizes):
        fail(f"{carried}: some of them travel twice, or in a wider dtype ({sent} bytes sent)")
    fail(
        f"{where}: buckets of {sent} bytes were sent, which do not follow the gradients in reverse order of "
        f"parameters(), {sizes} bytes: filled, or started, in another order"
    )


@TRAIN.check("traffic")
def test_state_is_broadcast_once(run):
    """__init__ broadcasts every parameter and buffer; no state travels later."""
    if run.world_size == 1:
        return  # nobody to talk to
    state = run.problem["states"][0]
    least = sum(sizes_of(state.values()))
    most = least + sum(sizes_of([state["embedding.weight"]]))  # the tied weight may go under both of its names
    for rank in range(run.world_size):
        in_init = only(operations_until(run, rank)["constructed"], ("broadcast", "barrier"), f"rank {rank}, __init__")
        num_bytes = sum(op.nbytes for op in in_init if op.name == "broadcast")
        if not least <= num_bytes <= most:
            fail(f"rank {rank}: __init__ broadcast {num_bytes} bytes; all parameters and buffers are {least}")
        for where, _, operations in backwards_of(run, rank):
            later = [op for op in operations if op.name == "broadcast"]
            if later:
                fail(f"{where}: {len(later)} broadcasts, the first of {later[0].nbytes} bytes")


@TRAIN.check("traffic")
def test_buckets_are_filled_up_to_the_cap(run):
    """Buckets fill in reverse order of parameters(), and close before or upon passing the cap."""
    if run.world_size == 1:
        return  # alone, a rank may leave the all_reduces out
    sizes = sizes_of(reversed(run.expected["means"][0].values()))
    for rank in range(run.world_size):
        for where, cap, operations in backwards_of(run, rank):
            reductions = only([op for op in operations if op.name != "broadcast"], ("all_reduce",), where)
            sent = [op.nbytes for op in reductions]
            buckets = cut_into_buckets(sent, sizes) or not_the_gradients(where, sent, sizes)
            for bucket, following in zip(buckets, [*buckets[1:], None], strict=True):
                if sum(bucket[:-1]) > cap:
                    fail(
                        f"{where}: {len(buckets)} buckets; one holds gradients of {bucket} bytes, though without the "
                        f"last it was over the cap of {cap:.0f} bytes already"
                    )
                if following and sum(bucket) + following[0] < cap:
                    fail(
                        f"{where}: {len(buckets)} buckets; one was closed at {sum(bucket)} bytes, though the next "
                        f"gradient, {following[0]} bytes, fits under the cap of {cap:.0f}"
                    )
        where, operations = pair_of(run, rank)
        sent, needed = (
            sum(op.nbytes for op in operations),
            sum(sum(sizes_of(g.values())) for g in run.expected["pair"]["gradients"]),
        )
        if sent != needed:
            fail(f"{where}: all_reduces carry {sent} bytes, and the gradients are {needed}")


@TRAIN.check("time")
def test_only_the_last_bucket_is_exposed(run):
    """A step on a slow network takes no longer than its compute and the last bucket's all_reduce."""
    if run.world_size == 1:
        return  # nobody to talk to
    compute_s = NUM_LAYERS * (FORWARD_S + BACKWARD_S)
    # The last bucket is the first layer's. It is full when backward ends, so nothing is left to hide it behind.
    exposed_s = sum(sizes_of([run.expected["timed"][0]["layers.0.weight"]])) / REDUCED_BYTES_PER_S
    for step in range(1, NUM_TIMED_STEPS + 1):
        part = run.timeline.between(f"step {step}", f"step {step} done")
        if part.makespan_s > compute_s + exposed_s + SLACK_S:
            fail(
                f"step {step} took {part.makespan_s:.2f} s, expected {compute_s:g} s of compute and at most "
                f"{exposed_s:.2f} s in which a rank stands and waits; start each all_reduce as soon as its "
                "bucket is full, and wait for it in finish"
            )


@TRAIN.check("memory")
def test_no_step_leaves_anything_behind(run):
    """Between steps a rank keeps the gradients and one copy of them at most, however many steps there were."""
    if run.world_size != HELD_WORLD_SIZE:
        return
    gradient_bytes = sum(4 * rows * columns for rows, columns in WIDE_SHAPES)
    claim_persistent(
        run,
        "after",
        since="before",
        expected_bytes=lambda rank: 2 * gradient_bytes,
        given_bytes=lambda rank: gradient_bytes,  # the module
        room_bytes=gradient_bytes,  # steps that leave a copy behind have left 5 in all
        of="gradients",
    )


@TRAIN.check("discipline")
def test_nothing_is_left_unwaited(run):
    """Every asynchronous operation is waited for, not only the last one."""
    for finding in run.findings:
        if finding.kind in ("unwaited", "incomplete"):
            fail(f"rank {finding.rank}: {finding.message}")


@TRAIN.check("discipline")
def test_every_rank_has_the_same_gradients(run):
    """Gradients are bitwise the same on every rank, so that replicas cannot drift apart."""
    for rank, returned in enumerate(run.ranks):
        for number, (mine, first) in enumerate(
            zip(returned["gradients"], run.ranks[0]["gradients"], strict=True), start=1
        ):
            for name, grad in first.items():
                if grad is None or mine.get(name) is None or not torch.equal(mine[name], grad):
                    fail(f"backward {number}: the gradient of {name} on rank {rank} is not the one on rank 0")


@TRAIN.check("discipline")
def test_global_state_is_left_alone(run):
    """Random numbers, the default dtype and the grad mode are as they would be without the wrapper."""
    for rank, returned in enumerate(run.ranks):
        if returned["default_dtype"] != torch.float32 or not returned["grad_enabled"]:
            fail(f"rank {rank}: the default dtype or the grad mode was changed and not put back")
        if not torch.equal(returned["draw"], run.expected["draw"]):
            fail(f"rank {rank}: after training, torch.rand draws other numbers than it would without the wrapper")


# --- parameters that only some ranks use, in three dtypes ---

# What the graph of each rank contains, by backward; the fourth rank does as the first. The second backward accumulates.
ROUTES = (
    ("left", "right", "neither"),
    ("left", "left", "left"),
    ("right", "neither", "right"),
    ("neither", "right", "neither"),
)
ROUTES_ZERO_GRAD = (True, None, True, False)
ROUTES_BUCKET_SIZE_MB = 0.0001  # 104 bytes
# In float32 and bfloat16 each rank's gradient is exact (small integers). Left is the rounding of the mean: one unit
# in the last place for the division, for each of up to four additions, and for what had accumulated.
FLOOR = {torch.float64: 1e-9, torch.float32: 1e-6, torch.bfloat16: 2**-6}


class Router(nn.Module):
    """Uses `left`, `right` or neither; nobody uses `never`. right and shift are float32, gain is bfloat16."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(4, dtype=torch.float32))
        self.gain = nn.Parameter(torch.zeros(4, dtype=torch.bfloat16))
        self.stem = nn.Linear(4, 5, dtype=torch.float64)
        self.left = nn.Linear(5, 3, dtype=torch.float64)
        self.never = nn.Linear(5, 2, dtype=torch.float64)
        self.right = nn.Linear(4, 3, dtype=torch.float32)

    def forward(self, x, route):
        hidden = torch.tanh(self.stem(x))
        score = hidden.sum(dim=1)
        if route == "left":
            score = score + self.left(hidden).pow(2).sum(dim=1)
        if route == "right":
            score = score + (self.right(x.float()) * torch.arange(1.0, 4.0)).sum(dim=1).double()
        return score + (self.shift * x.float()).sum(dim=1).double() + (self.gain * x.bfloat16()).sum(dim=1).double()


def draw_route_batch(rng, rank, route):
    x = torch.randint(1, 4, (2 + rank % 2, 4), generator=rng).double()
    return {"x": x, "slope": float(torch.randint(1, 3, (), generator=rng)), "route": route}


def route_problem(rng, world_size):
    return {
        "states": [draw_state(Router(), rng) for _ in range(world_size)],
        "batches": [[draw_route_batch(rng, rank, routes[rank % 3]) for routes in ROUTES] for rank in range(world_size)],
    }


def route_inputs(problem, rank):
    return {"state": problem["states"][rank], "batches": problem["batches"][rank]}


def route_loss(module, batch):
    return (module(batch["x"], batch["route"]) * batch["slope"]).sum()


def route_train(solution, inputs):
    module = Router()
    load(module, inputs["state"])
    ddp = solution.DDPBucketed(module, ROUTES_BUCKET_SIZE_MB)
    returned = []
    for zero_grad, batch in zip(ROUTES_ZERO_GRAD, inputs["batches"], strict=True):
        if zero_grad is not None:
            ddp.zero_grad(set_to_none=zero_grad)
        route_loss(ddp, batch).backward()
        ddp.finish_gradient_synchronization()
        returned.append(gradients(ddp.module))
    return {"gradients": returned}


def route_expected(problem):
    """The means over all ranks; and, to recognise it, what comes of dividing by the ranks that used a parameter."""
    replica = Router()
    load(replica, problem["states"][0])
    dtypes = {name: param.dtype for name, param in replica.named_parameters()}
    result = {"gradients": [], "by_users": [], "local": []}
    total = by_users = total_local = None
    for backward, zero_grad in enumerate(ROUTES_ZERO_GRAD):
        local, num_users = [], dict.fromkeys(dtypes, 0)
        for batches in problem["batches"]:
            replica.zero_grad()
            route_loss(replica, batches[backward]).backward()
            for name, param in replica.named_parameters():
                num_users[name] += param.grad is not None
                param.grad = torch.zeros_like(param) if param.grad is None else param.grad
            local.append(gradients(replica))
        if zero_grad is not None:
            total, by_users, total_local = None, None, [None] * len(local)
        mean = mean_of(local)
        total = plus(total, mean)
        by_users = plus(by_users, {name: g * len(local) / max(num_users[name], 1) for name, g in mean.items()})
        total_local = [plus(*trees) for trees in zip(total_local, local, strict=True)]
        result["local"].append(total_local)
        result["gradients"].append({name: g.to(dtypes[name]) for name, g in total.items()})
        result["by_users"].append({name: g.to(dtypes[name]) for name, g in by_users.items()})
    return result


UNUSED = Scenario(
    route_train,
    problem=route_problem,
    rank_inputs=route_inputs,
    expected=route_expected,
    world_sizes=(1, 2, 3, 4),
    gloo=(2,),
    deadline_s=20,
)


@UNUSED.completes
def test_unused_parameters_do_not_hang(run):
    """Ranks whose graphs contain different parameters still issue the same all_reduces in the same order."""


@UNUSED.check("values")
def test_unused_parameters_count_as_zero(run):
    """A parameter that some ranks did not use is summed over the others and divided by all ranks, in any dtype."""
    for backward, expected in enumerate(run.expected["gradients"]):
        by_users = run.expected["by_users"][backward]
        for rank, returned in enumerate(run.ranks):
            got = dict(returned["gradients"][backward])
            for name, grad in expected.items():
                if got.get(name) is None and not grad.any():
                    got[name] = grad  # where nobody used it, None is as good as zero
            for dtype, rtol in FLOOR.items():
                names = [name for name, grad in expected.items() if grad.dtype == dtype]
                compare(
                    {name: got.get(name) for name in names},
                    {name: expected[name] for name in names},
                    what="gradient",
                    rank=rank,
                    world_size=run.world_size,
                    rtol=rtol,
                    suspects={
                        "this rank's local gradient": run.expected["local"][backward][rank],
                        "the mean over the ranks that used it, not over all": by_users,
                    },
                    where=f"after backward {backward + 1}",
                )


@UNUSED.check("traffic")
def test_one_dtype_a_bucket(run):
    """A bucket holds gradients of one dtype, and all gradients travel, also those that no rank has."""
    if run.world_size == 1:
        return
    grads = [run.expected["gradients"][0][name] for name, _ in reversed(list(Router().named_parameters()))]
    for rank in range(run.world_size):
        operations = [op for op in run.trace.operations(rank) if op.name not in ("broadcast", "barrier")]
        dtypes = {str(dtype).removeprefix("torch.") for dtype in FLOOR}
        for op in operations:
            if op.dtype not in dtypes:
                fail(f"rank {rank}: {op.name} of {op.dtype} {list(op.shape)} at {op.site}; gradients alone travel")
        for dtype in FLOOR:
            name = str(dtype).removeprefix("torch.")
            where = f"rank {rank}, {name}, all {len(ROUTES)} backwards"
            sizes = sizes_of(grad for grad in grads if grad.dtype == dtype) * len(ROUTES)
            sent = [op.nbytes for op in only(operations, ("all_reduce",), where) if op.dtype == name]
            if cut_into_buckets(sent, sizes) is None:
                not_the_gradients(where, sent, sizes)
