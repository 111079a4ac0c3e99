"""Checks of pp/gpipe."""

import torch
import torch.distributed as dist

from kit.grading import Charged, Scenario, call, claim_persistent, compare, fail, hold, mark

FORWARD_S, BACKWARD_S = 1.0, 2.0  # virtual seconds of one microbatch on one stage


class Stage:
    """One stage, y = tanh(x W^T + b), as a schedule sees it: weights, work and its cost are the deciding process's."""

    def __init__(self, batch, dtype, input_shapes, is_last):
        self.num_microbatches = len(input_shapes)
        self.dtype = dtype
        self._batch = batch
        self._input_shapes = [tuple(shape) for shape in input_shapes]
        self._is_last = is_last
        self._saved = {}  # microbatch -> (x, what the caller was given)

    def input_shape(self, mb):
        return self._input_shapes[mb]

    def forward(self, mb, x):
        y = call("stage", "forward", self._batch, mb, x)
        given = y.requires_grad_(self._is_last)
        self._saved[mb] = (x.detach(), given)  # the caller's memory, as autograd would save it
        return given

    def loss_backward(self, mb, loss):
        if not self._is_last:
            raise RuntimeError("stage.loss_backward: only the last stage has a loss; the others call stage.backward")
        x, given = self._take("loss_backward", mb)
        grad_output = None
        if isinstance(loss, torch.Tensor) and loss.requires_grad:
            (grad_output,) = torch.autograd.grad(loss, given, retain_graph=True, allow_unused=True)
        if grad_output is None:
            raise RuntimeError(f"stage.loss_backward: the loss does not depend on the output of microbatch {mb}")
        return call("stage", "loss_backward", self._batch, mb, x, grad_output)

    def backward(self, mb, gy):
        if self._is_last:
            raise RuntimeError("stage.backward: the last stage calls stage.loss_backward with its loss")
        x, _ = self._take("backward", mb)
        return call("stage", "backward", self._batch, mb, x, gy)

    def _take(self, method, mb):
        saved = self._saved.pop(mb, None)
        if saved is None:
            raise RuntimeError(f"stage.{method}: microbatch {mb} has no forward that waits for its backward")
        return saved


class Stages:
    """All stages of all batches, in the deciding process: what they computed, and in which order."""

    def __init__(self, problem):
        self._batches = problem["batches"]
        self.logs = {}  # (rank, batch) -> "F" or "B" and the microbatch, in the order of the calls
        self.grads = {}  # (rank, batch) -> {"weight", "bias"}
        self._waiting = {}  # (rank, batch) -> microbatches that wait for their backward

    def __call__(self, rank, method, index, mb, x, gy=None):
        batch = self._batches[index]
        pipeline = pipeline_of(batch, rank)
        stage = pipeline["members"].index(rank)
        size, width = batch["sizes"][mb], pipeline["widths"]
        key, what = (rank, index), f"stage.{method}: the {{}} of microbatch {mb}"
        match(what.format("input"), x, (size, width[stage]), batch["dtype"])
        waiting = self._waiting.setdefault(key, {})
        log = self.logs.setdefault(key, [])
        weight = pipeline["weights"][stage].clone().requires_grad_()
        bias = pipeline["biases"][stage].clone().requires_grad_()
        x = x.detach().requires_grad_(stage > 0)
        y = torch.tanh(torch.nn.functional.linear(x, weight, bias))
        if method == "forward":
            if mb in waiting:
                raise RuntimeError(f"stage.forward: microbatch {mb} has already been forwarded")
            waiting[mb] = True
            log.append(["F", mb])
            return Charged(y.detach(), FORWARD_S, "F", f"stage {stage}", mb)
        match(what.format("output gradient"), gy, y.shape, batch["dtype"])
        if not waiting.get(mb):
            raise RuntimeError(f"stage.{method}: microbatch {mb} has no forward that waits for its backward")
        waiting[mb] = False
        log.append(["B", mb])
        y.backward(gy)
        total = self.grads.setdefault(key, {"weight": torch.zeros_like(weight), "bias": torch.zeros_like(bias)})
        total["weight"] += weight.grad
        total["bias"] += bias.grad
        return Charged(x.grad, BACKWARD_S, "B", f"stage {stage}", mb)


def match(what, tensor, shape, dtype):
    if not isinstance(tensor, torch.Tensor) or tuple(tensor.shape) != tuple(shape) or tensor.dtype != dtype:
        found = f"shape {list(tensor.shape)} and dtype {tensor.dtype}" if isinstance(tensor, torch.Tensor) else tensor
        raise ValueError(f"{what} has {found}, expected shape {list(shape)} and dtype {dtype}")


def stages(problem, world_size):
    return {"stage": Stages(problem)}


def squared_error(y, target):
    """Mean over samples of the squared distance, which differs in every row."""
    return ((y - target) ** 2).sum(dim=-1).mean()


def run_each(solution, inputs):
    """Runs every batch on this rank; a barrier before each and one after the last separate them in the trace."""
    groups = [dist.new_group(members) for members in inputs["groups"]]
    torch.manual_seed(inputs["seed"])
    losses = []
    for index, batch in enumerate(inputs["batches"]):
        dist.barrier()
        mark(f"batch {index}")
        loss = None
        if batch is not None:  # else this rank is in no pipeline
            stage = Stage(index, batch["dtype"], batch["input_shapes"], batch["is_last"])
            group = None if batch["group"] is None else groups[batch["group"]]
            loss = solution.run_gpipe(stage, batch["microbatches"], batch["targets"], squared_error, group)
            if isinstance(loss, torch.Tensor):
                loss = loss.detach()
        losses.append(loss)
        mark(f"batch {index} done")
    dist.barrier()
    returned = {
        "losses": losses,
        "draw": torch.rand(3),
        "default_dtype": torch.get_default_dtype(),
        "grad_enabled": torch.is_grad_enabled(),
    }
    if inputs["is_held"]:
        hold_batch(solution)
    return returned


# --- memory: one batch of large microbatches, on stages whose work is next to nothing ---

HELD_WORLD_SIZE = 4
HELD_MICROBATCHES = 10
HELD_SHAPE = (4, 128 << 10)
HELD_BYTES = 4 * 4 * (128 << 10)  # 2 MiB: an activation, or a gradient, in float32
HELD_BESIDE = 4  # what a rank may have beside the inputs that wait for their backward


class HeldStage:
    """y = x + 1, held when the first and when the last backward begins: with x still there, and before there is gx."""

    num_microbatches = HELD_MICROBATCHES
    dtype = torch.float32

    def __init__(self, is_first, is_last):
        self._is_first, self._is_last = is_first, is_last
        self._saved = {}
        self._num_backwards = 0

    def input_shape(self, mb):
        return HELD_SHAPE

    def forward(self, mb, x):
        y = (x.detach() + 1).requires_grad_(self._is_last)
        self._saved[mb] = (x.detach(), y if self._is_last else None)
        return y

    def loss_backward(self, mb, loss):
        given = self._begin_backward(mb)
        return self._input_gradient(torch.autograd.grad(loss, given, retain_graph=True)[0])

    def backward(self, mb, gy):
        self._begin_backward(mb)
        return self._input_gradient(gy)

    def _begin_backward(self, mb):
        self._num_backwards += 1
        if self._num_backwards in (1, HELD_MICROBATCHES):
            hold("first backward" if self._num_backwards == 1 else "last backward")
        return self._saved.pop(mb)[1]

    def _input_gradient(self, gy):
        return None if self._is_first else gy + 1


def product(y, target):
    """A loss whose graph has y, and nothing else that is large and was not there before."""
    return (y * target).mean()


def ones():
    return torch.ones(HELD_SHAPE, dtype=HeldStage.dtype)


def hold_batch(solution):
    """Held at the start, before the batch, in it by the stage, and after it, with the loss that it returned."""
    hold("start")  # before anything large: from here on freed memory goes back at once
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    microbatches = [ones() for _ in range(HELD_MICROBATCHES)] if rank == 0 else None
    targets = [ones() for _ in range(HELD_MICROBATCHES)] if rank == last else None
    hold("before")
    loss = solution.run_gpipe(HeldStage(rank == 0, rank == last), microbatches, targets, product)
    del microbatches, targets  # so that whoever still has them has them alone
    hold("after")
    return loss


# --- inputs -----------------------------------------------------------------------------------------------------------


def make_batch(rng, pipelines, sizes, dtype=torch.float64, is_world=True):
    """`pipelines`: disjoint lists of global ranks, one stage a rank; `sizes`: samples in each microbatch."""

    def randn(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64).to(dtype)

    batch = {"pipelines": [], "sizes": sizes, "dtype": dtype, "is_world": is_world}
    for members in pipelines:
        # Widths differ from stage to stage, so no weight is square and no gradient fits where it does not belong.
        widths = (3 + torch.randperm(len(members) + 1, generator=rng)).tolist()
        pairs = [(widths[stage], widths[stage + 1]) for stage in range(len(members))]
        batch["pipelines"].append(
            {
                "members": members,
                "widths": widths,
                "weights": [randn(wide, narrow) / narrow**0.5 for narrow, wide in pairs],
                "biases": [randn(wide) for _, wide in pairs],
                "inputs": [randn(size, widths[0]) for size in sizes],
                "targets": [randn(size, widths[-1]) for size in sizes],
            }
        )
    return batch


def world_batch(rng, world_size, sizes, dtype=torch.float64):
    return make_batch(rng, [list(range(world_size))], sizes, dtype)


def with_seed(rng, problem):
    return {**problem, "seed": int(torch.randint(2**31, (), generator=rng))}


def equal_problem(rng, world_size):
    """5 microbatches: more than stages, and no multiple of 2, 3 or 4; then 1, and 2: fewer than stages."""
    size = int(torch.randint(2, 5, (), generator=rng))
    batches = [
        world_batch(rng, world_size, [size] * 5),
        world_batch(rng, world_size, [size + 1]),
        world_batch(rng, world_size, [size] * 2),
        world_batch(rng, world_size, [size] * 3, torch.float32),
    ]
    return with_seed(rng, {"groups": [], "batches": batches, "is_held": world_size == HELD_WORLD_SIZE})


def unequal_problem(rng, world_size):
    """Sizes all different, the smallest microbatch last, first, and between; then the largest last and a float32."""
    sizes = (2 + torch.randperm(5, generator=rng)[:4]).tolist()
    few = sizes[:2]
    batches = [
        world_batch(rng, world_size, [*sizes, 1]),
        world_batch(rng, world_size, [1, *few]),
        world_batch(rng, world_size, [few[0], 1, few[1]]),
        world_batch(rng, world_size, [*sorted(few), 7], torch.float32),
    ]
    for pipeline in batches[1]["pipelines"]:
        # A microbatch that is predicted exactly: its loss is zero, and so is its gradient on every stage.
        pipeline["targets"][1] = output_of(pipeline, pipeline["inputs"][1])
    return with_seed(rng, {"groups": [], "batches": batches, "is_held": False})


def output_of(pipeline, x):
    for weight, bias in zip(pipeline["weights"], pipeline["biases"], strict=True):
        x = torch.tanh(torch.nn.functional.linear(x, weight, bias))
    return x


PARTITIONS = {
    1: [[[0]]],
    2: [[[1]]],
    3: [[[1, 2]], [[0, 2]]],
    4: [[[1, 2, 3]], [[0, 2], [1, 3]]],
}


def subgroup_problem(rng, world_size):
    partitions = PARTITIONS[world_size]
    batches = [make_batch(rng, pipelines, [2, 3, 2], is_world=False) for pipelines in partitions]
    groups = [members for pipelines in partitions for members in pipelines]
    return with_seed(rng, {"groups": groups, "batches": batches, "is_held": False})


def pipeline_of(batch, rank):
    """The pipeline that this rank is in, or None."""
    return next((pipeline for pipeline in batch["pipelines"] if rank in pipeline["members"]), None)


def rank_inputs(problem, rank):
    return {
        "groups": problem["groups"],
        "batches": [stage_inputs(problem, batch, rank) for batch in problem["batches"]],
        "is_held": problem["is_held"],
        "seed": problem["seed"],
    }


def stage_inputs(problem, batch, rank):
    pipeline = pipeline_of(batch, rank)
    if pipeline is None:
        return None
    members = pipeline["members"]
    index = members.index(rank)
    is_first, is_last = index == 0, index == len(members) - 1
    return {
        "group": None if batch["is_world"] else problem["groups"].index(members),
        "dtype": batch["dtype"],
        "input_shapes": [[size, pipeline["widths"][index]] for size in batch["sizes"]],
        "is_last": is_last,
        "microbatches": pipeline["inputs"] if is_first else None,
        "targets": pipeline["targets"] if is_last else None,
    }


def unsharded(pipeline, shares, dtype, targets=None):
    """The whole model in one process, in float64; the loss is the sum of shares[i] times microbatch i's mean."""
    weights = [weight.double().requires_grad_() for weight in pipeline["weights"]]
    biases = [bias.double().requires_grad_() for bias in pipeline["biases"]]
    loss = torch.zeros((), dtype=torch.float64)
    for share, x, target in zip(shares, pipeline["inputs"], targets or pipeline["targets"], strict=True):
        y = x.double()
        for weight, bias in zip(weights, biases, strict=True):
            y = torch.tanh(torch.nn.functional.linear(y, weight, bias))
        loss = loss + share * squared_error(y, target.double())
    grads = torch.autograd.grad(loss, weights + biases)
    return {
        "loss": loss.detach().to(dtype),
        "grads": [
            {"weight": weight_grad.to(dtype), "bias": bias_grad.to(dtype)}
            for weight_grad, bias_grad in zip(grads[: len(weights)], grads[len(weights) :], strict=True)
        ],
    }


def expected(problem):
    """For each batch and each of its pipelines the right run, and the runs that are wrong in a way that has a name."""
    return [[expected_of(batch, pipeline) for pipeline in batch["pipelines"]] for batch in problem["batches"]]


def expected_of(batch, pipeline):
    num_samples, num_microbatches = sum(batch["sizes"]), len(batch["sizes"])
    shares = [size / num_samples for size in batch["sizes"]]
    dtype = batch["dtype"]
    right = unsharded(pipeline, shares, dtype)
    if num_microbatches == 1:
        return {"right": right, "suspects": {}}
    last_only = [0.0] * (num_microbatches - 1) + shares[-1:]
    first_targets = [pipeline["targets"][0]] * num_microbatches
    suspects = {
        "the sum of the microbatch means: summed, not averaged": unsharded(pipeline, [1.0] * num_microbatches, dtype),
        "the last microbatch alone": unsharded(pipeline, last_only, dtype),
    }
    if len(set(batch["sizes"])) > 1:
        equal_shares = [1 / num_microbatches] * num_microbatches
        label = "the mean of the microbatch means: each microbatch weighs the same, whatever its number of samples"
        suspects[label] = unsharded(pipeline, equal_shares, dtype)
    else:
        label = "microbatch 0's targets used for every microbatch"
        suspects[label] = unsharded(pipeline, shares, dtype, first_targets)
    suspects["the right gradient, divided by M once more on every stage that it passed"] = {
        "loss": right["loss"],
        "grads": [
            {name: grad / num_microbatches**num_stages_passed for name, grad in grads.items()}
            for num_stages_passed, grads in zip(reversed(range(len(right["grads"]))), right["grads"], strict=True)
        ],
    }
    return {"right": right, "suspects": suspects}


# --- what checks look at ----------------------------------------------------------------------------------------------

# float64 is held to algebra; float32 to its own floor, 2^-24 per operation over a few hundred of them.
RTOL = {torch.float64: 1e-9, torch.float32: 1e-5}


def each_stage(run):
    """(index of the batch, batch, pipeline, expected run, rank, stage index), for every stage of every batch."""
    for index, batch in enumerate(run.problem["batches"]):
        for pipeline, expected_run in zip(batch["pipelines"], run.expected[index], strict=True):
            for stage_index, rank in enumerate(pipeline["members"]):
                yield index, batch, pipeline, expected_run, rank, stage_index


def describe(batch, pipeline):
    stages = f"p = {len(pipeline['members'])}"
    if not batch["is_world"]:
        stages += f" in the group of global ranks {pipeline['members']}"
    return f"{stages}, M = {len(batch['sizes'])} microbatches of {batch['sizes']} samples"


def check_losses(run):
    for index, batch, pipeline, expected_run, rank, stage_index in each_stage(run):
        loss = run.ranks[rank]["losses"][index]
        if stage_index < len(pipeline["members"]) - 1:
            if loss is not None:
                fail(f"rank {rank} (stage {stage_index}) returned {loss!r}, expected None: no loss here")
            continue
        compare(
            loss,
            expected_run["right"]["loss"],
            what="loss",
            rank=rank,
            rtol=RTOL[batch["dtype"]],
            suspects={label: suspect["loss"] for label, suspect in expected_run["suspects"].items()},
            where=describe(batch, pipeline),
        )


def check_gradients(run):
    for index, batch, pipeline, expected_run, rank, stage_index in each_stage(run):
        grads = run.services["stage"].grads.get((rank, index))
        if grads is None:
            fail(f"stage {stage_index} (rank {rank}) never ran a backward: {describe(batch, pipeline)}")
        compare(
            grads,
            expected_run["right"]["grads"][stage_index],
            what=f"gradient of stage {stage_index}",
            rank=rank,
            rtol=RTOL[batch["dtype"]],
            suspects={label: suspect["grads"][stage_index] for label, suspect in expected_run["suspects"].items()},
            where=describe(batch, pipeline),
        )


def operations_by_batch(run, rank):
    """This rank's operations, one list for each batch."""
    sections = [[]]
    for operation in run.trace.operations(rank):
        if operation.name == "barrier" and len(operation.group) == run.world_size:
            sections.append([])
        else:
            sections[-1].append(operation)
    if len(sections) != len(run.problem["batches"]) + 2:
        fail(f"rank {rank} called barrier: a pipeline needs send and receive only")
    return sections[1:-1]


def each_trace(run):
    """(rank, batch, this rank's operations in it), for every rank and batch."""
    for rank in range(run.world_size):
        for batch, operations in zip(run.problem["batches"], operations_by_batch(run, rank), strict=True):
            yield rank, batch, operations


# --- checks -----------------------------------------------------------------------------------------------------------

EQUAL = Scenario(
    run_each,
    problem=equal_problem,
    rank_inputs=rank_inputs,
    expected=expected,
    services=stages,
    world_sizes=(1, 2, 3, 4),
    gloo=(2, 4),
    deadline_s=20,
)

UNEQUAL = Scenario(
    run_each,
    problem=unequal_problem,
    rank_inputs=rank_inputs,
    expected=expected,
    services=stages,
    world_sizes=(1, 2, 3, 4),
    gloo=(4,),
    deadline_s=20,
)

SUBGROUPS = Scenario(
    run_each,
    problem=subgroup_problem,
    rank_inputs=rank_inputs,
    expected=expected,
    services=stages,
    world_sizes=(1, 2, 3, 4),
    gloo=(4,),
    deadline_s=20,
)


@EQUAL.check("values")
def test_loss_is_the_mean_over_the_batch(run):
    """The last rank returns the mean over all samples, the other ranks None; for M = 5, 1, 2 and 3."""
    check_losses(run)


@EQUAL.check("values")
def test_gradients_equal_the_unsharded_run(run):
    """Every parameter of every stage has the gradient that one process with the whole model would get."""
    check_gradients(run)


@UNEQUAL.check("values")
def test_unequal_microbatches_weigh_by_their_samples(run):
    """Microbatches of different sizes: loss and gradients are those of the mean over all samples."""
    check_losses(run)
    check_gradients(run)


@SUBGROUPS.check("values")
def test_a_subgroup_is_a_pipeline_of_its_own(run):
    """A group that does not start at rank 0, and two pipelines at once: loss and gradients are right in each."""
    check_losses(run)
    check_gradients(run)


@EQUAL.check("traffic")
def test_only_neighbours_send_and_receive(run):
    """No collective, and no message but between stage s and stage s + 1."""
    check_neighbours(run)


@EQUAL.check("traffic")
def test_each_activation_and_gradient_travels_once(run):
    """M activations to the next rank and M gradients to the previous one, each in a message of its own size."""
    check_messages(run)


@UNEQUAL.check("traffic")
def test_unequal_microbatches_travel_as_they_are(run):
    """Unequal microbatches are neither padded nor announced: each message has its own size, and there is no other."""
    check_neighbours(run)
    check_messages(run)


@SUBGROUPS.check("traffic")
def test_a_subgroup_sends_what_a_pipeline_sends(run):
    """In a group too: no collective, and every activation and every gradient once, between neighbours."""
    check_neighbours(run)
    check_messages(run)


def each_place(run):
    """(rank, batch, its pipeline, its stage there, its operations), for every stage of every batch."""
    for rank, batch, operations in each_trace(run):
        pipeline = pipeline_of(batch, rank)
        if pipeline is not None:
            yield rank, batch, pipeline, pipeline["members"].index(rank), operations


def neighbours_of(pipeline, stage):
    """{-1: the rank of the stage before, 1: of the stage after}, as far as there are any."""
    members = pipeline["members"]
    return {side: members[stage + side] for side in (-1, 1) if 0 <= stage + side < len(members)}


def check_neighbours(run):
    for rank, _, pipeline, stage, operations in each_place(run):
        for operation in operations:
            if operation.name not in ("send", "recv"):
                fail(f"rank {rank} called {operation.name} at {operation.site}: use send and receive only")
            if operation.peer is not None and operation.peer not in neighbours_of(pipeline, stage).values():
                direction = "sent to" if operation.name == "send" else "received from"
                fail(f"rank {rank} {direction} rank {operation.peer} at {operation.site}, which is not its neighbour")


def check_messages(run):
    for rank, batch, pipeline, stage, operations in each_place(run):
        for side, peer in neighbours_of(pipeline, stage).items():
            what, width = ("activations", stage + 1) if side == 1 else ("gradients", stage)
            width = pipeline["widths"][width]
            expected_bytes = [size * width * batch["dtype"].itemsize for size in batch["sizes"]]
            sent_bytes = [op.nbytes for op in operations if op.name == "send" and op.peer == peer]
            if sorted(sent_bytes) != sorted(expected_bytes):
                fail(
                    f"rank {rank} sent {len(sent_bytes)} messages, {sum(sent_bytes)} B, to rank {peer}; "
                    f"with {describe(batch, pipeline)} "
                    f"the {what} are {len(expected_bytes)} messages, {sum(expected_bytes)} B"
                )


HELD_AT = {
    "first backward": "when the first backward begins",
    "last backward": "when the last backward begins",
    "after": "after the return",
}


def claim_held(run, label, num_inputs, num_outputs, room, since="before"):
    """Grown by so many inputs (but for rank 0, which was given them), outputs (on the last rank) and `room` tensors."""

    def expected_bytes(rank):
        is_last = rank == run.world_size - 1
        return HELD_BYTES * ((num_inputs if rank > 0 else 0) + (num_outputs if is_last else 0))

    def given_bytes(rank):  # microbatches, targets, or with one rank both
        is_given = (rank == 0) + (rank == run.world_size - 1)
        return HELD_BYTES * HELD_MICROBATCHES * is_given if since == "before" else 0

    claim_persistent(
        run,
        label,
        since=since,
        expected_bytes=expected_bytes,
        given_bytes=given_bytes,
        room_bytes=int(HELD_BYTES * room),
        of=f"activations and gradients, {HELD_MICROBATCHES} x {HELD_BYTES >> 20} MiB each, {HELD_AT[label]}",
    )


@EQUAL.check("memory")
def test_backwards_keep_only_what_they_need(run):
    """Beside inputs that wait for their backward (and outputs on the last rank) a rank has four tensors at most."""
    if run.problem["is_held"]:
        # Half a tensor, 1 MiB, for the readings. What is kept for all microbatches is 10 tensors, or 9.
        room = HELD_BESIDE + 0.5
        claim_held(run, "first backward", HELD_MICROBATCHES, HELD_MICROBATCHES, room)
        claim_held(run, "last backward", 1, HELD_MICROBATCHES, room)


@EQUAL.check("memory")
def test_nothing_of_the_batch_is_kept(run):
    """After the return no activation and no gradient is left, nor the graph of the loss."""
    if run.problem["is_held"]:
        claim_held(run, "after", 0, 0, 1, since="start")


@EQUAL.check("time")
def test_the_bubble_is_that_of_gpipe(run):
    """Forwards take 1, backwards 2 and messages no time: M microbatches on p stages are done after 3 (M + p - 1)."""
    for index, batch in enumerate(run.problem["batches"]):
        num_microbatches = len(batch["sizes"])
        expected_s = (num_microbatches + run.world_size - 1) * (FORWARD_S + BACKWARD_S)
        timeline = run.timeline.between(f"batch {index}", f"batch {index} done")
        # Sums of small whole numbers: exact in floating point.
        if timeline.makespan_s > expected_s:
            rank = min(range(run.world_size), key=timeline.busy_s)
            fail(
                f"M = {num_microbatches}, p = {run.world_size}: done after {timeline.makespan_s:g}, expected "
                f"3 (M + p - 1) = {expected_s:g}; rank {rank} idles for {timeline.idle_s(rank):g} of it, "
                f"{timeline.bubble_fraction(rank):.0%}: pass each microbatch on as soon as it is computed, "
                "and compute each as soon as it is there"
            )


@EQUAL.completes
def test_every_rank_finishes(run):
    """No rank hangs, crashes or leaves a message unmatched: M = 5, 1, 2 and 3, and sends wait for their receivers."""


@UNEQUAL.completes
def test_every_rank_finishes_with_unequal_microbatches(run):
    """No rank hangs or crashes when every microbatch has its own number of samples."""


@SUBGROUPS.completes
def test_every_rank_of_a_subgroup_finishes(run):
    """No rank hangs or crashes when the pipeline is a group: its peers are counted inside the group."""


@EQUAL.check("discipline")
def test_all_forwards_come_before_any_backward(run):
    """GPipe's order on every stage: M forwards, then M backwards."""
    check_order(run)
    for rank in range(1, run.world_size):
        check_gradients_leave_after_all_activations(run, rank)


@UNEQUAL.check("discipline")
def test_unequal_microbatches_keep_the_order(run):
    """Unequal microbatches too: M forwards, then M backwards."""
    check_order(run)


def check_order(run):
    for index, batch, _, _, rank, stage_index in each_stage(run):
        num_microbatches = len(batch["sizes"])
        calls = run.services["stage"].logs[rank, index]
        for position, (kind, microbatch) in enumerate(calls[:num_microbatches]):
            if kind == "B":
                fail(
                    f"stage {stage_index} (rank {rank}) ran the backward of microbatch {microbatch} after {position} "
                    f"of {num_microbatches} forwards; GPipe runs all forwards first"
                )


def check_gradients_leave_after_all_activations(run, rank):
    """The same seen from outside: no gradient goes back before the last activation of its batch has come."""
    arrivals = {event.operation: at for at, event in enumerate(run.trace.events(rank)) if event.kind == "wait"}
    departures = {event.operation: at for at, event in enumerate(run.trace.events(rank)) if event.kind == "issue"}
    for operations in operations_by_batch(run, rank):
        received = [op.order for op in operations if op.name == "recv" and op.peer == rank - 1]
        sent = [op.order for op in operations if op.name == "send" and op.peer == rank - 1]
        if received and sent and departures[sent[0]] < max(arrivals.get(order, 0) for order in received):
            fail(
                f"rank {rank} sent a gradient to rank {rank - 1} before it had received all activations from it: "
                "GPipe runs all forwards first"
            )


@EQUAL.check("discipline")
def test_global_state_is_left_alone(run):
    """Random numbers, the default dtype and the grad mode are as they were."""
    expected = torch.rand(3, generator=torch.Generator().manual_seed(run.problem["seed"]))
    for rank, returned in enumerate(run.ranks):
        if returned["default_dtype"] != torch.float32 or not returned["grad_enabled"]:
            fail(f"rank {rank}: the default dtype or the grad mode was changed and not put back")
        if not torch.equal(returned["draw"], expected):
            fail(f"rank {rank}: after the batches torch.rand draws other numbers than without them")


@EQUAL.check("discipline")
def test_nothing_is_left_in_flight(run):
    """Every isend and irecv is waited for before the function returns."""
    check_waits(run)


@SUBGROUPS.check("discipline")
def test_nothing_of_a_subgroup_is_left_in_flight(run):
    """In a group too every isend and irecv is waited for before the function returns."""
    check_waits(run)


def check_waits(run):
    for rank, _, operations in each_trace(run):
        for operation in operations:
            if not operation.waited:
                fail(
                    f"rank {rank} never waited for its {operation.name} at {operation.site}: "
                    "the buffer is still in flight when the caller goes on"
                )
