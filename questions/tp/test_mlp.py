"""Checks of tp/mlp."""

import torch
import torch.distributed as dist
from torch import nn

from kit.grading import Scenario, claim_persistent, compare, fail, hold

HIDDEN, FFN = 7, 12  # 12 divides by 1, 2, 3 and 4; 7 by none of them but 1
NUM_LAYERS = 2
KEYS = ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")

# Where memory is read: 32 MiB of weights, and a rank's share of the hidden features has 8 MiB, as its share of them.
HELD_WORLD_SIZE = 4
HELD_HIDDEN, HELD_FFN, HELD_TOKENS = 128, 32768, 256
HELD_BYTES = 4 * (2 * HELD_HIDDEN * HELD_FFN)

# --- on every rank ------------------------------------------------------------------------------------------


def mark():
    """Separates forward from backward in the trace."""
    one = torch.zeros(1, dtype=torch.uint8)
    dist.scatter(one.clone(), [one] * dist.get_world_size() if dist.get_rank() == 0 else None, src=0)


def build(solution, inputs, group):
    """One ParallelMLP per shard, in float64, holding it."""
    mlps = []
    for shard in inputs["shards"]:
        mlp = solution.ParallelMLP(HIDDEN, FFN, bias="fc1.bias" in shard, group=group).double()
        mlp.load_state_dict(shard, strict=True)
        mlps.append(mlp)
    return mlps


def group_of_this_rank(inputs):
    """Every rank makes every group, in the same order; None stands for WORLD."""
    groups = [(members, dist.new_group(members)) for members in inputs["partition"]]
    return next((group for members, group in groups if dist.get_rank() in members), None)


def train_stack(solution, inputs):
    """Two MLPs on top of one another, forward and backward for each microbatch; gradients accumulate."""
    group = group_of_this_rank(inputs)
    torch.manual_seed(inputs["seed"])
    mlps = build(solution, inputs, group)
    drawn_by_now = torch.rand(3)

    torch.manual_seed(inputs["seed"])
    microbatches = [
        Microbatch(layout(batch["x"], inputs["is_transposed"]), batch["upstream"].clone())
        for batch in inputs["microbatches"]
    ]
    for action, number in order_of(len(microbatches), inputs["is_interleaved"]):
        microbatch = microbatches[number]
        mark()
        if action == "forward":
            microbatch.x.requires_grad_(inputs["needs_input_gradient"])
            microbatch.outputs = forward(mlps, microbatch.x, inputs["is_residual"])
        else:
            microbatch.outputs[-1].backward(microbatch.upstream)
    mark()
    draw = torch.rand(3)
    returned = {
        "microbatches": [microbatch.returned() for microbatch in microbatches],
        "gradients": [gradients_of(mlp) for mlp in mlps],
    }
    for mlp in mlps:
        mlp.eval()
    with torch.no_grad():
        returned["inference"] = forward(mlps, layout(inputs["microbatches"][0]["x"], inputs["is_transposed"]), False)
    mark()
    if inputs["has_frozen"]:
        returned["frozen"] = run_frozen(solution, inputs, group)
    if inputs["is_held"]:
        hold_large(solution)
    return {
        **returned,
        "drawn_after_construction": drawn_by_now,
        "draw": draw,
        "default_dtype": torch.get_default_dtype(),
        "grad_enabled": torch.is_grad_enabled(),
    }


class Microbatch:
    """What comes in, and what came out of it."""

    def __init__(self, x, upstream):
        self.x, self.upstream, self.outputs = x, upstream, None

    def returned(self):
        """As it is when all microbatches are through: what an output was before is of no use to anyone."""
        return {
            "outputs": [y.detach().clone() for y in self.outputs],
            "input_gradient": None if self.x.grad is None else self.x.grad.clone(),
            "x": self.x.detach().clone(),
            "upstream": self.upstream,
        }


def order_of(num_microbatches, is_interleaved):
    """Each forward and its backward; interleaved: all forwards before the first backward, as a pipeline has them."""
    if is_interleaved:
        return [(action, number) for action in ("forward", "backward") for number in range(num_microbatches)]
    return [(action, number) for number in range(num_microbatches) for action in ("forward", "backward")]


def run_frozen(solution, inputs, group):
    """The stack in float32 with weights that need no gradient, as below an adapter: x needs its own all the same."""
    mlps = [mlp.float().requires_grad_(False) for mlp in build(solution, inputs, group)]
    batch = inputs["microbatches"][0]
    x = batch["x"].float().requires_grad_()
    mark()
    outputs = forward(mlps, x, False)
    mark()
    outputs[-1].backward(batch["upstream"].float())
    mark()
    return {"outputs": [y.detach() for y in outputs], "input_gradient": x.grad}


def hold_large(solution):
    """Held before a large MLP is made, and when a step with it is over and only the MLP is left."""
    share = HELD_FFN // dist.get_world_size()
    hold("start")  # before anything large, so that what is freed goes back at once
    train_large(nn.Sequential(nn.Linear(HELD_HIDDEN, share), nn.GELU(), nn.Linear(share, HELD_HIDDEN)))
    hold("before")  # what matrix products of this size make once is there by now
    mlp = solution.ParallelMLP(HELD_HIDDEN, HELD_FFN)
    mlp.load_state_dict({key: torch.full_like(value, 0.01) for key, value in mlp.state_dict().items()})
    train_large(mlp)
    dist.barrier()  # after it the transport no longer knows the last operation of backward, nor its tensor
    hold("after")


def train_large(mlp):
    """Forward and backward; no gradient is left."""
    x = torch.ones(HELD_TOKENS, HELD_HIDDEN, requires_grad=True)
    mlp(x).square().mean().backward()
    mlp.zero_grad(set_to_none=True)


def layout(x, is_transposed):
    """The same values; transposed: column by column in memory, as a matrix that came out of .t()."""
    return x.t().contiguous().t() if is_transposed else x.clone()


def forward(mlps, x, is_residual):
    """The output after each MLP."""
    outputs = []
    for mlp in mlps:
        x = x + mlp(x) if is_residual else mlp(x)
        outputs.append(x)
    return outputs


def gradients_of(mlp):
    return {name: None if p.grad is None else p.grad.clone() for name, p in mlp.named_parameters()}


# --- problems -----------------------------------------------------------------------------------------------


def draw(rng, *shape):
    return torch.randn(shape, generator=rng, dtype=torch.float64)


def make_problem(rng, world_size, leading, partition=(), *, has_bias=True, **description):
    """leading: of each microbatch, x's leading dimensions. partition: disjoint groups with own data; empty is WORLD.

    The upstream gradient has another value at each element, and so is not the gradient of a plain sum.
    """
    shapes = {
        "fc1.weight": (FFN, HIDDEN),
        "fc1.bias": (FFN,),
        "fc2.weight": (HIDDEN, FFN),
        "fc2.bias": (HIDDEN,),
    }
    groups = [list(members) for members in partition] or [list(range(world_size))]
    return {
        "partition": [list(members) for members in partition],
        "groups": groups,
        "layers": [
            {key: draw(rng, *shapes[key]) for key in KEYS if has_bias or key.endswith("weight")}
            for _ in range(NUM_LAYERS)
        ],
        "microbatches": [
            [{"x": draw(rng, *dims, HIDDEN), "upstream": draw(rng, *dims, HIDDEN)} for dims in leading] for _ in groups
        ],
        "seeds": torch.randperm(2**20, generator=rng)[:world_size].tolist(),
        "is_residual": False,
        "is_transposed": False,
        "is_interleaved": False,
        "is_held": False,
        "has_frozen": False,
        "needs_input_gradient": True,
        **description,
    }


def stack_problem(rng, world_size):
    """Microbatches of different sizes; after them the frozen stack."""
    is_held = world_size == HELD_WORLD_SIZE
    return make_problem(rng, world_size, [(3, 5), (4,)], is_held=is_held, has_frozen=True)


PARTITIONS = {
    1: [[0]],
    2: [[0], [1]],
    3: [[1], [0, 2]],
    4: [[0, 2], [1, 3]],
    6: [[0, 2, 4], [1, 3, 5]],
}


def subgroup_problem(rng, world_size):
    """As in a mesh of data and tensor parallelism: groups with gaps, each with data of its own; x is data.

    Both microbatches go forward before the first goes backward.
    """
    return make_problem(
        rng, world_size, [(4,), (4,)], PARTITIONS[world_size], needs_input_gradient=False, is_interleaved=True
    )


def residual_problem(rng, world_size):
    """x + mlp(x), no bias, and an x that is not contiguous: none of the gradients is a tensor of its own.

    Both microbatches go forward before the first goes backward. In the lower MLP one rank's hidden features are dead:
    its part of the output is zero, and so is its part of the input gradient, and it takes part in both sums.
    """
    problem = make_problem(
        rng, world_size, [(5,), (5,)], has_bias=False, is_residual=True, is_transposed=True, is_interleaved=True
    )
    if world_size > 1:
        dead = int(torch.randint(world_size, (), generator=rng))
        problem["layers"][0]["fc1.weight"].chunk(world_size)[dead].zero_()
    return problem


def place(problem, rank):
    """(index of the rank's group, its rank in the group, the group's size)."""
    for index, members in enumerate(problem["groups"]):
        if rank in members:
            return index, members.index(rank), len(members)
    raise ValueError(f"rank {rank} is in no group")


def shard_of(whole, group_rank, num_ranks):
    """Rows of fc1, columns of fc2.weight, and fc2.bias whole; of weights or of gradients."""
    cut = {"fc1.weight": 0, "fc1.bias": 0, "fc2.weight": 1}
    return {
        key: value.chunk(num_ranks, dim=cut[key])[group_rank].contiguous() if key in cut else value
        for key, value in whole.items()
    }


def rank_inputs(problem, rank):
    """A rank gets its shard of the weights, and the data of its group."""
    group_index, group_rank, num_ranks = place(problem, rank)
    return {
        "partition": problem["partition"],
        "shards": [shard_of(layer, group_rank, num_ranks) for layer in problem["layers"]],
        "microbatches": problem["microbatches"][group_index],
        "seed": problem["seeds"][rank],
        "is_residual": problem["is_residual"],
        "is_transposed": problem["is_transposed"],
        "is_interleaved": problem["is_interleaved"],
        "has_frozen": problem["has_frozen"],
        "is_held": problem["is_held"],
        "needs_input_gradient": problem["needs_input_gradient"],
    }


# --- what is right, and what well-known mistakes come to ----------------------------------------------------


class WholeMLP(nn.Module):
    """The unsharded MLP; with a flaw, what a sharded one of that flaw computes on one rank.

    flaw: one of the values of FLAWS, or None.
    """

    def __init__(self, layer, flaw=None, group_rank=0, num_ranks=1):
        super().__init__()
        self.weights = nn.ParameterDict({key.replace(".", "_"): nn.Parameter(v) for key, v in layer.items()})
        self.flaw, self.group_rank, self.num_ranks = flaw, group_rank, num_ranks

    def product(self, x, weights):
        approximate = "tanh" if self.flaw == "tanh" else "none"
        hidden = nn.functional.linear(x, weights["fc1.weight"], weights.get("fc1.bias"))
        return nn.functional.linear(nn.functional.gelu(hidden, approximate=approximate), weights["fc2.weight"])

    def forward(self, x):
        if self.flaw == "averaged gradient":
            x = x / self.num_ranks + (1 - 1 / self.num_ranks) * x.detach()
        whole = {key.replace("_", ".", 1): value for key, value in self.weights.items()}
        y = self.product(x, whole)
        if self.flaw in ("unreduced output", "unreduced gradient"):
            part = self.product(x, shard_of(whole, self.group_rank, self.num_ranks))
            y = part if self.flaw == "unreduced output" else y.detach() + part - part.detach()
        if self.flaw == "doubly reduced gradient":
            y = self.num_ranks * y - (self.num_ranks - 1) * y.detach()
        bias_count = self.num_ranks if self.flaw == "early bias" else 1
        return y + bias_count * whole["fc2.bias"] if "fc2.bias" in whole else y


def run_whole(problem, rank, flaw=None):
    """What this rank should return, or would with a flaw; gradients cut to its shard."""
    group_index, group_rank, num_ranks = place(problem, rank)
    mlps = [WholeMLP(layer, flaw, group_rank, num_ranks) for layer in problem["layers"]]
    returned = {"outputs": [], "input_gradients": []}
    for batch in problem["microbatches"][group_index]:
        x = batch["x"].clone().requires_grad_()
        outputs = forward(mlps, x, problem["is_residual"])
        outputs[-1].backward(batch["upstream"])
        returned["outputs"].append([y.detach() for y in outputs])
        returned["input_gradients"].append(x.grad)
    gradients = [{key.replace("_", ".", 1): p.grad for key, p in mlp.weights.items()} for mlp in mlps]
    returned["gradients"] = [shard_of(layer, group_rank, num_ranks) for layer in gradients]
    first = problem["microbatches"][group_index][0]
    x = first["x"].clone().requires_grad_()
    outputs = forward(mlps, x, False)
    (input_gradient,) = torch.autograd.grad(outputs[-1], x, first["upstream"])
    returned["inference"] = [y.detach() for y in outputs]
    returned["frozen"] = {"outputs": [y.detach().float() for y in outputs], "input_gradient": input_gradient.float()}
    return returned


# What each flaw makes of an output, of the input gradient, and of a parameter's gradient.
FLAWS = {
    "unreduced output": (
        "this rank's partial product: the output is not reduced",
        "the one below partial products: the output is not reduced",
        "the one of a run on partial products: the output is not reduced",
    ),
    "early bias": (
        "the output with fc2.bias counted once per rank: it was added before the reduction",
        "the one below outputs with fc2.bias counted once per rank: it was added before the reduction",
        "the one of a run with fc2.bias counted once per rank: it was added before the reduction",
    ),
    "tanh": (
        "the output with the tanh approximation of gelu",
        "the one through the tanh approximation of gelu",
        "the one through the tanh approximation of gelu",
    ),
    "unreduced gradient": (
        "",
        "this rank's part: the gradient of the input is not reduced in backward",
        "the one below a part: the gradient of the input is not reduced in backward",
    ),
    "averaged gradient": (
        "",
        "the mean over ranks, where the gradient of the input is the sum",
        "the one below a mean over ranks, where the gradient of the input is the sum",
    ),
    "doubly reduced gradient": (
        "",
        "the one with the upstream gradient reduced once more, which is whole already",
        "the one with the upstream gradient reduced once more, which is whole already",
    ),
}
IN_FORWARD = ("unreduced output", "early bias", "tanh")
BIAS_REDUCED = "the whole gradient counted once per rank: it was reduced, though every rank has all of it"
BIAS_DIVIDED = "the whole gradient divided by the ranks: the bias was added in parts, 1/n on each rank"


def expected(problem):
    """One entry per rank: what is right, and under "flaws" what each flaw would give."""
    results = []
    for rank in range(len(problem["seeds"])):
        right = run_whole(problem, rank)
        is_sharded = place(problem, rank)[2] > 1
        right["flaws"] = {flaw: run_whole(problem, rank, flaw) for flaw in FLAWS if is_sharded or flaw == "tanh"}
        results.append(right)
    return results


def draw_after(seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.rand(3)


# --- what checks look at ------------------------------------------------------------------------------------


OF_OUTPUT, OF_INPUT, OF_PARAMETER = range(3)  # the places of a flaw's labels


def match(run, rank, got, kind, *path, labels, what, where="", rtol=1e-9, suspects=()):
    """Compare what this rank returned with expected[kind][path...], with the flaws as suspects."""

    def at(tree):
        tree = tree[kind]
        for step in path:
            tree = tree[step]
        return tree

    expected = run.expected[rank]
    known = {
        FLAWS[flaw][labels]: at(flawed)
        for flaw, flawed in expected["flaws"].items()
        if FLAWS[flaw][labels] and (labels == OF_OUTPUT or flaw not in IN_FORWARD or not has_right_outputs(run, rank))
    }
    compare(got, at(expected), what=what, rank=rank, rtol=rtol, suspects={**known, **dict(suspects)}, where=where)


def has_right_outputs(run, rank):
    """Whether what is wrong on this rank is wrong in backward only."""
    pairs = zip(run.ranks[rank]["microbatches"], run.expected[rank]["outputs"], strict=True)
    return all(
        got.shape == right.shape and torch.allclose(got.double(), right, rtol=1e-9, atol=1e-9)
        for batch, outputs in pairs
        for got, right in zip(batch["outputs"], outputs, strict=True)
    )


def check_outputs(run):
    for rank, returned in enumerate(run.ranks):
        for number, batch in enumerate(returned["microbatches"]):
            for layer, output in enumerate(batch["outputs"]):
                where = f"MLP {layer + 1} of {NUM_LAYERS}, microbatch {number + 1}"
                match(run, rank, output, "outputs", number, layer, labels=OF_OUTPUT, what="output", where=where)
        for layer, output in enumerate(returned.get("frozen", {}).get("outputs", ())):
            match_frozen(run, rank, output, "outputs", layer, labels=OF_OUTPUT, what=f"output of MLP {layer + 1}")


def match_frozen(run, rank, got, *path, **description):
    """float32 is held to its own floor, 2^-24 an operation over a few hundred of them."""
    where = f"{NUM_LAYERS} MLPs in float32 whose weights need no gradient"
    match(run, rank, got, "frozen", *path, where=where, rtol=1e-5, **description)


def check_input_gradients(run):
    for rank, returned in enumerate(run.ranks):
        for number, batch in enumerate(returned["microbatches"]):
            where = f"below {NUM_LAYERS} MLPs, microbatch {number + 1}"
            got = batch["input_gradient"]
            what = "gradient of the input"
            match(run, rank, got, "input_gradients", number, labels=OF_INPUT, what=what, where=where)
        if "frozen" in returned:
            got = returned["frozen"]["input_gradient"]
            match_frozen(run, rank, got, "input_gradient", labels=OF_INPUT, what="gradient of the input")


def check_parameter_gradients(run, *keys):
    """From the last MLP down, so that the first complaint is about the one where the mistake is made."""
    for layer in reversed(range(NUM_LAYERS)):
        for rank, returned in enumerate(run.ranks):
            for key in keys:
                got = returned["gradients"][layer].get(key)
                where, what = f"MLP {layer + 1} of {NUM_LAYERS}", f"gradient of {key}"
                suspects = bias_suspects(run, rank, layer) if key == "fc2.bias" else ()
                labels = OF_PARAMETER
                match(run, rank, got, "gradients", layer, key, labels=labels, what=what, where=where, suspects=suspects)


def bias_suspects(run, rank, layer):
    """fc2.bias is on every rank: what its gradient is if that is not minded."""
    n, right = place(run.problem, rank)[2], run.expected[rank]["gradients"][layer]["fc2.bias"]
    if n == 1 or not has_right_outputs(run, rank):
        return {}
    return {BIAS_REDUCED: n * right, BIAS_DIVIDED: right / n}


def sections(run, rank):
    """(what was going on, its x, the operations), for each forward and backward of this rank, in their order."""
    parts = [[]]
    for operation in run.trace.operations(rank):
        if operation.name == "scatter":
            parts.append([])
        else:
            parts[-1].append(operation)
    batches = run.problem["microbatches"][place(run.problem, rank)[0]]
    order = order_of(len(batches), run.problem["is_interleaved"])
    names = [(action, f"{action} of microbatch {number + 1}", batches[number]["x"]) for action, number in order]
    names.append(("forward", "forward under no_grad", batches[0]["x"]))
    if run.problem["has_frozen"]:
        frozen = "of float32 MLPs whose weights need no gradient"
        names.append(("construction", "construction", None))
        names += [(action, f"{action} {frozen}", batches[0]["x"].float()) for action in ("forward", "backward")]
    for (action, when, x), operations in zip(names, parts[1:], strict=False):
        if x is not None:
            yield action, when, x, operations


def check_reductions(run, *num_reductions):
    """num_reductions: of a forward and of a backward; None does not look at them."""
    wanted = dict(zip(("forward", "backward"), num_reductions, strict=True))
    for rank in range(run.world_size):
        for action, when, x, operations in sections(run, rank):
            if wanted[action] is not None:
                check_section(run, rank, operations, wanted[action], when, x)


def check_section(run, rank, operations, num_reductions, when, x):
    """These operations send as much as num_reductions all_reduces of a tensor like x, inside the group."""
    group_index, _, n = place(run.problem, rank)
    size = x.element_size()
    least = num_reductions * (2 * (n - 1) * x.numel() * size // n)
    most = num_reductions * 2 * (n - 1) * -(-x.numel() // n) * size
    sent = sum(operation.sent_bytes for operation in operations)
    names = [operation.name for operation in operations]
    listed = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names)) or "no operation"
    if not least <= sent <= most:
        fail(
            f"rank {rank}, {when}: sent {sent} bytes ({listed}); {num_reductions} all_reduce(s) of the "
            f"{x.numel() * size} bytes of x over {n} ranks send {least} to {most}"
        )
    for operation in operations:
        if operation.name == "barrier":
            fail(f"rank {rank}, {when}: barrier at {operation.site}; the reduction alone has to be paid for")
        if operation.group != tuple(run.problem["groups"][group_index]):
            fail(
                f"rank {rank}, {when}: {operation.name} at {operation.site} is over ranks "
                f"{list(operation.group)}; its group is {run.problem['groups'][group_index]}"
            )


# --- checks -------------------------------------------------------------------------------------------------

STACK = Scenario(
    train_stack,
    problem=stack_problem,
    rank_inputs=rank_inputs,
    expected=expected,
    world_sizes=(1, 2, 3, 4),
    gloo=(2, 4),
    deadline_s=20,
)

SUBGROUPS = Scenario(
    train_stack,
    problem=subgroup_problem,
    rank_inputs=rank_inputs,
    expected=expected,
    world_sizes=(1, 2, 3, 4, 6),
    gloo=(4,),
    deadline_s=20,
)

RESIDUAL = Scenario(
    train_stack,
    problem=residual_problem,
    rank_inputs=rank_inputs,
    expected=expected,
    world_sizes=(1, 2, 3, 4),
    gloo=(2, 4),
    deadline_s=20,
)


@STACK.completes
def test_every_rank_finishes(run):
    """Shards load strictly by name and shape; no rank hangs or crashes in forward or backward."""


@STACK.check("values")
def test_output_equals_the_unsharded_mlp(run):
    """On every rank the output of both MLPs is that of the whole weights, biases included."""
    check_outputs(run)


@STACK.check("values")
def test_input_gradient_is_whole(run):
    """x.grad, below two MLPs, is the whole gradient on every rank."""
    check_input_gradients(run)


@STACK.check("values")
def test_weight_gradients_are_slices_of_the_whole(run):
    """The gradients of fc1 and of fc2.weight are the rank's slices, accumulated over two microbatches."""
    check_parameter_gradients(run, "fc2.weight", "fc1.weight", "fc1.bias")


@STACK.check("values")
def test_output_bias_gradient_is_whole(run):
    """The gradient of fc2.bias is the whole one on every rank: not a part, not on one rank only."""
    check_parameter_gradients(run, "fc2.bias")


@STACK.check("traffic")
def test_forward_costs_one_all_reduce(run):
    """Each MLP sends one all_reduce of its output in forward, and nothing else."""
    check_reductions(run, NUM_LAYERS, None)


@STACK.check("traffic")
def test_backward_costs_one_all_reduce(run):
    """Each MLP sends one all_reduce of its input's gradient in backward, and nothing else."""
    check_reductions(run, None, NUM_LAYERS)


@STACK.check("memory")
def test_a_rank_keeps_its_shards_only(run):
    """Between steps a rank has grown by its shards: nothing of the whole weights is left, and no activation."""
    if run.problem["is_held"]:
        claim_persistent(
            run,
            "after",
            since="before",
            expected_bytes=lambda rank: HELD_BYTES // run.world_size,
            given_bytes=lambda rank: 3 << 20,  # what matrix products of this size make once
            # Four times what readings may be off by, and half of the least that is wrong: shards that are kept twice.
            room_bytes=HELD_BYTES // 8,
            whole_bytes=HELD_BYTES,
            of="weights and activations",
            is_least_too=True,
        )


@STACK.check("discipline")
def test_ranks_agree_bit_for_bit(run):
    """Outputs, input gradients and gradients of fc2.bias have the same bits on every rank."""
    for rank, returned in enumerate(run.ranks[1:], start=1):
        mine, first = replicated(returned), replicated(run.ranks[0])
        for name in first:
            if mine[name] is None or first[name] is None or not torch.equal(mine[name], first[name]):
                fail(f"the {name} on rank {rank} is not the one on rank 0")


def replicated(returned):
    """What every rank should hold alike, by name."""
    values = {}
    for number, batch in enumerate(returned["microbatches"], start=1):
        values[f"output of microbatch {number}"] = batch["outputs"][-1]
        values[f"input gradient of microbatch {number}"] = batch["input_gradient"]
    for layer, gradients in enumerate(returned["gradients"], start=1):
        values[f"gradient of fc2.bias of MLP {layer}"] = gradients.get("fc2.bias")
    return values


@STACK.check("discipline")
def test_no_work_is_left_unwaited(run):
    """Every asynchronous operation is waited for."""
    for finding in run.findings:
        if finding.kind == "unwaited":
            fail(f"rank {finding.rank}: {finding.message}")


@STACK.check("discipline")
def test_global_state_is_left_alone(run):
    """Construction does not seed the generator; forward and backward draw nothing and change no default."""
    draws = [returned["drawn_after_construction"] for returned in run.ranks]
    for rank, drawn in enumerate(draws[1:], start=1):
        if torch.equal(drawn, draws[0]):
            fail(
                f"after construction ranks 0 and {rank} draw the same random numbers, though they were "
                "seeded differently: the constructor seeds the global generator"
            )
    for rank, returned in enumerate(run.ranks):
        if returned["default_dtype"] != torch.float32 or not returned["grad_enabled"]:
            fail(f"rank {rank}: the default dtype or the grad mode was changed and not put back")
        if not torch.equal(returned["draw"], draw_after(run.problem["seeds"][rank])):
            fail(f"rank {rank}: after forward and backward torch.rand draws other numbers than before")


@SUBGROUPS.completes
def test_subgroups_finish(run):
    """Groups that do not begin at rank 0, or have gaps, run side by side."""


@SUBGROUPS.check("values")
def test_subgroups_compute_on_their_own(run):
    """Each group has its own data: outputs and gradients are of its members only."""
    check_outputs(run)
    check_parameter_gradients(run, "fc2.weight", "fc2.bias", "fc1.weight", "fc1.bias")


@SUBGROUPS.check("traffic")
def test_reductions_stay_inside_the_group(run):
    """Nothing leaves the group, and an x without requires_grad costs no reduction in backward."""
    check_reductions(run, NUM_LAYERS, NUM_LAYERS - 1)


@RESIDUAL.completes
def test_it_works_without_bias(run):
    """bias=False: neither layer has a bias, and the shard without them loads strictly."""


@RESIDUAL.check("values")
def test_residual_stream_stays_whole(run):
    """x + mlp(x), twice, on an x that is not contiguous: outputs and all gradients are the whole model's."""
    check_outputs(run)
    check_parameter_gradients(run, "fc2.weight", "fc1.weight")
    check_input_gradients(run)


@RESIDUAL.check("values")
def test_nothing_given_is_overwritten(run):
    """x and the gradient that backward was given are the same afterwards: they belong to the caller."""
    for rank, returned in enumerate(run.ranks):
        given = run.problem["microbatches"][place(run.problem, rank)[0]]
        for number, batch in enumerate(returned["microbatches"]):
            for what in ("x", "upstream"):
                compare(
                    batch[what],
                    given[number][what],
                    what="x" if what == "x" else "gradient of the output",
                    rank=rank,
                    rtol=0,
                    where=f"after backward of microbatch {number + 1}",
                )


@RESIDUAL.check("values")
def test_inference_needs_no_gradient(run):
    """In eval mode and under torch.no_grad the output is the same."""
    for rank, returned in enumerate(run.ranks):
        for layer, output in enumerate(returned["inference"]):
            where = f"MLP {layer + 1} of {NUM_LAYERS}, in eval mode and under no_grad"
            match(run, rank, output, "inference", layer, labels=OF_OUTPUT, what="output", where=where)
