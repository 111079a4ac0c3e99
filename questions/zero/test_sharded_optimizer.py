"""Checks of zero/sharded_optimizer."""

from itertools import cycle

import torch
import torch.distributed as dist
from torch import nn

from kit.grading import Scenario, claim_persistent, compare, fail, hold

# --- one training job, driven by its description, sharded or not --------------------------------------------


class ScaledSGD(torch.optim.SGD):
    """SGD whose step multiplies the gradients first, as optimizers with a fused unscale do."""

    def step(self, closure=None, *, grad_scale=1.0):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    param.grad.mul_(grad_scale)
        super().step()
        return loss


OPTIMIZERS = {"SGD": torch.optim.SGD, "AdamW": torch.optim.AdamW, "ScaledSGD": ScaledSGD}


def unsharded(params, optimizer_cls, **kwargs):
    return optimizer_cls(params, **kwargs)


def mark():
    """Separates the steps in the trace; on the ranks only."""
    if dist.is_initialized():
        one = torch.zeros(1, dtype=torch.uint8)
        dist.scatter(one.clone(), [one] * dist.get_world_size() if dist.get_rank() == 0 else None, src=0)


def argument(params, job):
    """The constructor's params: a list, a generator, or dicts that hold a list, a generator or one tensor."""
    groups = [
        {**group["hyperparameters"], "params": collection([params[name] for name in group["names"]], group)}
        for group in job["groups"]
    ]
    return groups if job["are_dicts"] else groups[0]["params"]


def collection(params, group):
    if group["form"] == "generator":
        return (param for param in params)
    return params[0] if group["form"] == "one" else params


def make_closure(optimizer, params, batches):
    """Clears the gradients, computes them anew from the next batch, and returns the loss.

    Called twice in a step, it takes the next step's batch. The loss depends on the batch alone, so that wrong
    parameters do not make it wrong.
    """

    def closure():
        optimizer.zero_grad()
        grads = next(batches)
        loss = sum(((params[name] - params[name].detach() + 1) * grad).sum() for name, grad in grads.items())
        loss.backward()
        return loss

    return closure


def train(make_optimizer, job):
    """Trains as the job says, and returns what it left behind: parameters after each step, state, losses."""
    params = {
        name: nn.Parameter(laid_out(value, name in job["transposed"]), requires_grad=name not in job["frozen"])
        for name, value in job["values"].items()
    }
    torch.manual_seed(job["seed"])
    optimizer = make_optimizer(argument(params, job), OPTIMIZERS[job["optimizer"]], **job["hyperparameters"])
    scheduler = None
    if job["factors"]:
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: job["factors"][step])
    closure = make_closure(optimizer, params, cycle(job["gradients"])) if job["has_closure"] else None

    steps, losses = [], []
    for step, grads in enumerate(job["gradients"]):
        for group in job["late"].get(str(step), []):
            late = collection([params[name] for name in group["names"]], group)
            optimizer.add_param_group({"params": late, **group["hyperparameters"]})
        for index, changes in job["changes"].get(str(step), []):
            optimizer.param_groups[index].update(changes)
        if step == job["edit_before"]:
            for entry in optimizer.state.values():
                if entry:
                    entry["exp_avg"].mul_(job["edit_factor"])
        mark()
        if closure is not None:
            loss = optimizer.step(closure, **job["step_arguments"])
        else:
            if step not in job["grads_kept"]:
                for name, param in params.items():
                    param.grad = None if grads[name] is None else laid_out(grads[name], name in job["transposed"])
            loss = optimizer.step(**job["step_arguments"])
        mark()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.detach().clone() if torch.is_tensor(loss) else loss)
        steps.append(values_of(params))
    returned = {"parameters": steps, "losses": losses, "state": held_state(optimizer, params)}
    returned["draw"] = torch.rand(3)
    returned["requires_grad"] = [name for name, param in params.items() if param.requires_grad]
    returned["cleared"] = [gradients_after(optimizer, params, job, {"set_to_none": False})]
    returned["cleared"].append(gradients_after(optimizer, params, job, {}))
    return returned


def laid_out(value, is_transposed):
    """A copy; transposed: dense, but column by column in memory, as a tied or a converted weight may be."""
    return value.t().contiguous().t() if is_transposed else value.clone()


def values_of(params):
    return {name: param.detach().clone() for name, param in params.items()}


def held_state(optimizer, params):
    """{parameter: its state}, for those whose state this rank holds."""
    names = {id(param): name for name, param in params.items()}
    return {
        names[id(param)]: {key: v.detach().clone() if torch.is_tensor(v) else v for key, v in entry.items()}
        for param, entry in optimizer.state.items()
        if entry and id(param) in names
    }


def gradients_after(optimizer, params, job, arguments):
    """Every .grad after zero_grad(**arguments), all of them having been set."""
    for name, param in params.items():
        if name not in job["frozen"]:
            param.grad = torch.ones_like(param)
    optimizer.zero_grad(**arguments)
    return {name: None if param.grad is None else param.grad.clone() for name, param in params.items()}


def train_all(solution, inputs):
    """Every rank: each job in turn, with the learner's optimizer."""
    returned = {name: train(solution.ShardedOptimizer, job) for name, job in inputs.items()}
    returned["default_dtype"] = torch.get_default_dtype()
    returned["grad_enabled"] = torch.is_grad_enabled()
    return returned


def same_for_all(problem, rank):
    """Parameters and averaged gradients are the same on every rank, as they are under data parallelism."""
    return problem


def expected_of(problem):
    """For each job what is right and, under "mistakes", what well-known mistakes would come to."""
    expected = {}
    with torch.random.fork_rng(devices=[]):
        for name, job in problem.items():
            expected[name] = train(unsharded, job)
            mistakes = {**(EVERYWHERE if job["world_size"] > 1 else {}), **MISTAKES.get(name, {})}
            expected[name]["mistakes"] = {label: train(unsharded, mistake(job)) for label, mistake in mistakes.items()}
    return expected


# --- jobs ---------------------------------------------------------------------------------------------------


def draw(rng, shape, dtype=torch.float64):
    return torch.randn(shape, generator=rng, dtype=torch.float64).to(dtype)


def pick(rng, *choices):
    return choices[int(torch.randint(len(choices), (), generator=rng))]


def big(rng):
    """A weight of 36 to 49 elements: six of them are many enough that one is less than a quarter of all."""
    return pick(rng, [6, 6], [6, 7], [7, 6], [7, 7])


def small(rng):
    return pick(rng, [1], [2], [3])


def make_job(
    rng,
    world_size,
    shapes,
    optimizer,
    hyperparameters,
    *,
    groups=None,
    num_steps=3,
    dtype=torch.float64,
    **description,
):
    """shapes: {name: shape} in order of registration. groups: the constructor's; None is one plain list.

    grads_kept: steps before which nobody touches the gradients: those of the step before are used again.
    """
    job = {
        "world_size": world_size,
        "values": {name: draw(rng, shape, dtype) for name, shape in shapes.items()},
        "frozen": [],
        "transposed": [],
        "grads_kept": [],
        "optimizer": optimizer,
        "hyperparameters": hyperparameters,
        "are_dicts": groups is not None,
        "groups": groups or [group(*shapes)],
        "gradients": [{name: draw(rng, shape, dtype) for name, shape in shapes.items()} for _ in range(num_steps)],
        "late": {},
        "changes": {},
        "factors": [],
        "has_closure": False,
        "step_arguments": {},
        "edit_before": None,
        "edit_factor": 1.0,
        "seed": int(torch.randint(2**31, (), generator=rng)),
    }
    return {**job, **description}


def group(*names, form="list", **hyperparameters):
    return {"names": list(names), "form": form, "hyperparameters": hyperparameters}


def blocks(rng, num_blocks):
    """[weight, bias, weight, bias, ...], with no relation between their sizes."""
    return {
        f"{block}.{kind}": (big if kind == "weight" else small)(rng)
        for block in range(num_blocks)
        for kind in ("weight", "bias")
    }


def fit_problem(rng, world_size):
    """AdamW on six blocks and a scalar; before the last step, whoever holds a first moment multiplies it.

    In all jobs eps is large, for with a small one Adam's update hardly depends on the scale of the gradients.
    """
    shapes = {**blocks(rng, 6), "temperature": []}
    hyperparameters = {"lr": 0.05, "betas": [0.8, 0.9], "eps": 0.1, "weight_decay": 0.1}
    return {
        "fit": make_job(
            rng,
            world_size,
            shapes,
            "AdamW",
            hyperparameters,
            num_steps=4,
            edit_before=3,
            edit_factor=-2.5,
            transposed=["1.weight", "4.weight"],
        )
    }


def use_problem(rng, world_size):
    return {
        "groups": groups_job(rng, world_size),
        "schedule": schedule_job(rng, world_size),
        "changes": changes_job(rng, world_size),
        "late": late_job(rng, world_size),
        "skipped": skipped_job(rng, world_size),
        "closure": closure_job(rng, world_size),
    }


def groups_job(rng, world_size):
    """Three groups, each a large tensor before small ones, so that starting anew in each fills one rank."""
    shapes = {"a": [7, 6], "b": small(rng), "c": [6, 7], "d": small(rng), "e": [7, 7], "f": small(rng)}
    groups = [
        group("a", "b"),
        group("c", "d", form="generator", lr=0.3, momentum=0.5),
        group("e", form="one", weight_decay=0.2),
        group("f", lr=0.01),
    ]
    return make_job(rng, world_size, shapes, "SGD", {"lr": 0.1, "momentum": 0.9}, groups=groups)


def schedule_job(rng, world_size):
    """The learning rate is AdamW's default; the scheduler is what changes it."""
    shapes = blocks(rng, 2)
    groups = [group(*shapes, form="generator")]
    job = make_job(
        rng,
        world_size,
        shapes,
        "AdamW",
        {"eps": 0.1, "weight_decay": 0.5},
        groups=groups,
        factors=[4.0, 1.0, 0.25, 0.5],
    )
    return {**job, "are_dicts": False}


def changes_job(rng, world_size):
    """By hand: the learning rate of one group, then momentum and weight decay of the other, then dampening.

    The third step is with the gradients of the second.
    """
    shapes = blocks(rng, 2)
    groups = [group("0.weight", "0.bias"), group("1.weight", "1.bias")]
    changes = {
        "1": [[0, {"lr": 0.02}]],
        "2": [[1, {"momentum": 0.3, "weight_decay": 0.4}]],
        "3": [[0, {"dampening": 0.5}]],
    }
    hyperparameters = {"lr": 0.1, "momentum": 0.9}
    return make_job(
        rng, world_size, shapes, "SGD", hyperparameters, groups=groups, num_steps=4, changes=changes, grads_kept=[2]
    )


def late_job(rng, world_size):
    """A group after the first step, another after the second; the groups before have momentum by then."""
    shapes = {"a": [7, 6], "b": small(rng), "c": [6, 7], "d": small(rng), "e": [7, 7]}
    return make_job(
        rng,
        world_size,
        shapes,
        "AdamW",
        {"lr": 0.05, "eps": 0.1},
        groups=[group("a", "b")],
        num_steps=4,
        late={"1": [group("c", "d", form="generator", lr=0.2)], "2": [group("e", form="one")]},
    )


def skipped_job(rng, world_size):
    """Gradients that are missing in some steps; momentum and weight decay show it if they count as zero.

    And one that is there and zero: what it belongs to moves by its momentum and its weight decay.
    """
    shapes = blocks(rng, 3)
    job = make_job(rng, world_size, shapes, "SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.2}, num_steps=4)
    for step, name in [(0, "0.weight"), (1, "1.weight"), (1, "1.bias"), (2, "0.weight"), (3, "2.bias")]:
        job["gradients"][step][name] = None
    for grads in job["gradients"]:
        grads["2.weight"] = None
    job["gradients"][2]["1.weight"].zero_()
    return {**job, "frozen": ["2.weight"]}


def closure_job(rng, world_size):
    arguments = {"grad_scale": 0.5}
    hyperparameters = {"lr": 0.1, "momentum": 0.9}
    return make_job(
        rng,
        world_size,
        blocks(rng, 2),
        "ScaledSGD",
        hyperparameters,
        has_closure=True,
        step_arguments=arguments,
        dtype=torch.float32,
    )


def few_problem(rng, world_size):
    """Fewer tensors than ranks, then one more."""
    shapes = {str(index): small(rng) for index in range(max(1, world_size // 2))}
    first = group(*shapes)
    shapes["late"] = [4]
    hyperparameters = {"lr": 0.1, "momentum": 0.9}
    late = {"2": [group("late")]}
    return {
        "few": make_job(
            rng, world_size, shapes, "SGD", hyperparameters, groups=[first], num_steps=4, late=late, has_closure=True
        ),
        "weights": weights(rng) if world_size in HELD_WORLD_SIZES else None,
    }


# --- memory ------------------------------------------------------------------------------------------------

MIB = 1 << 20
HELD_WORLD_SIZES = (1, 3)
MOMENTS = 2  # Adam's


def weights(rng):
    """32 MiB of float32 in tensors of 1 to 2 MiB and one of 3, so that Adam's state is 64 MiB: much beside all else."""
    numels, left = [3 * MIB // 4], 29 * MIB // 4
    while left:
        numel = min(left, int(torch.randint(MIB // 4, MIB // 2, (), generator=rng)))
        numels.append(numel)
        left -= numel
    return {"numels": numels, "num_steps": 3}


def steps_with_adam(optimizer, params, num_steps):
    """Every step with new gradients; none is left in the end."""
    for step in range(num_steps):
        for param in params:
            param.grad = torch.full_like(param, 0.5 + step)
        optimizer.step()
    for param in params:
        param.grad = None


def train_and_hold(solution, description):
    """Held before the optimizer is made and after its steps; returns the bytes of state that it shows."""
    few = [nn.Parameter(torch.ones(8)) for _ in range(8)]  # what a first step makes once is there before
    steps_with_adam(solution.ShardedOptimizer(few, torch.optim.Adam, lr=0.1), few, 2)
    params = [nn.Parameter(torch.ones(numel)) for numel in description["numels"]]
    hold("before")
    optimizer = solution.ShardedOptimizer(params, torch.optim.Adam, lr=0.1)
    steps_with_adam(optimizer, params, description["num_steps"])
    hold("after")
    return sum(
        value.numel() * value.element_size()
        for entry in optimizer.state.values()
        for value in entry.values()
        if torch.is_tensor(value)
    )


def train_few_and_hold(solution, inputs):
    """The job with few parameters; before it, at some sizes, the large ones."""
    held = {} if inputs["weights"] is None else {"shown_bytes": train_and_hold(solution, inputs["weights"])}
    return {**train_all(solution, {"few": inputs["few"]}), **held}


def expected_of_few(problem):
    """What is large is seen from outside and not returned."""
    return expected_of({"few": problem["few"]})


# --- what the jobs would come to with a known mistake -------------------------------------------------------


def averaged_again(job):
    """With AdamW the error alone would not tell: its update depends on the scale of gradients through eps only."""
    n = job["world_size"]
    gradients = [
        {name: None if grad is None else grad / n for name, grad in grads.items()} for grads in job["gradients"]
    ]
    return {**job, "gradients": gradients}


def without_group_hyperparameters(job):
    return {**job, "groups": [{**one, "hyperparameters": {}} for one in job["groups"]]}


def without_late_groups(job):
    return {**job, "late": {}}


def with_zeros_for_none(job):
    zeros = {name: torch.zeros_like(value) for name, value in job["values"].items()}
    gradients = [
        {name: zeros[name] if grad is None else grad for name, grad in grads.items()} for grads in job["gradients"]
    ]
    return {**job, "gradients": gradients}


EVERYWHERE = {"the run with gradients that are averaged twice": averaged_again}

MISTAKES = {
    "groups": {"the run in which every group has the constructor's values": without_group_hyperparameters},
    "schedule": {"the run at the learning rate of construction": lambda job: {**job, "factors": []}},
    "changes": {
        "the run with the values of construction": lambda job: {**job, "changes": {}},
        "the run in which only lr follows": lambda job: {**job, "changes": {"1": job["changes"]["1"]}},
    },
    "late": {"the run without the late groups": without_late_groups},
    "skipped": {"the run in which a missing gradient counts as zero": with_zeros_for_none},
    "closure": {"the run without grad_scale": lambda job: {**job, "step_arguments": {}}},
}


# --- what checks look at ------------------------------------------------------------------------------------


def rtol_of(run, job):
    """float64 is held to algebra; float32 to its own floor, 2^-24 for each of a step's few operations."""
    is_double = all(value.dtype == torch.float64 for value in run.problem[job]["values"].values())
    return 1e-9 if is_double else 1e-6


def check_parameters(run, job, steps=None):
    """Every parameter on every rank after each of the steps."""
    expected = run.expected[job]
    for step in range(len(expected["parameters"])) if steps is None else steps:
        before = expected["parameters"][step - 1] if step else run.problem[job]["values"]
        suspects = {"what it was before the step: not updated there, or not received": before}
        for label, mistaken in expected["mistakes"].items():
            suspects[label] = mistaken["parameters"][step]
        for rank, returned in enumerate(run.ranks):
            compare(
                returned[job]["parameters"][step],
                expected["parameters"][step],
                what="parameter",
                rank=rank,
                world_size=run.world_size,
                rtol=rtol_of(run, job),
                suspects=suspects,
                where=f"after step {step + 1}",
            )


def holders(run, job, name):
    """The ranks that hold the state of a parameter."""
    return [rank for rank, returned in enumerate(run.ranks) if name in returned[job]["state"]]


def check_state(run, job):
    """The state of every parameter is on some rank, and wherever it is, it is the unsharded run's."""
    expected = run.expected[job]["state"]
    for name in run.problem[job]["values"]:
        ranks = holders(run, job, name)
        if name not in expected:
            if ranks:
                fail(f"rank {ranks[0]} holds state of {name}, which never had a gradient; torch makes none")
            continue
        if not ranks:
            fail(
                f"no rank holds the state of {name} in optimizer.state; it must be the live state of the "
                "parameters that the rank owns, as optimizer_cls keeps it"
            )
        for rank in ranks:
            compare(
                run.ranks[rank][job]["state"][name],
                expected[name],
                what=f"state of {name}",
                rank=rank,
                world_size=run.world_size,
                suspects={
                    label: mistaken["state"].get(name) for label, mistaken in run.expected[job]["mistakes"].items()
                },
                where=f"after step {len(run.expected[job]['parameters'])}",
            )


def check_share(run, job):
    """No rank holds state of more than total/n + the largest parameter, in elements."""
    numels = {name: value.numel() for name, value in run.problem[job]["values"].items()}
    n = run.world_size
    bound = sum(numels.values()) / n + max(numels.values())
    for rank, returned in enumerate(run.ranks):
        owned = sum(numels[name] for name in returned[job]["state"])
        if owned > bound:
            everything = ", which is all" if owned == sum(numels.values()) else ""
            fail(
                f"rank {rank} of {n} holds the state of {owned} elements{everything}; its share is at most "
                f"{bound:.0f} (total {sum(numels.values())} / {n} + the largest parameter, "
                f"{max(numels.values())})"
            )


# --- checks -------------------------------------------------------------------------------------------------

FIT = Scenario(
    train_all,
    problem=fit_problem,
    rank_inputs=same_for_all,
    expected=expected_of,
    world_sizes=(1, 2, 3, 4),
    gloo=(2, 4),
    deadline_s=20,
)

USE = Scenario(
    train_all,
    problem=use_problem,
    rank_inputs=same_for_all,
    expected=expected_of,
    world_sizes=(1, 2, 3, 4),
    gloo=(2, 4),
    deadline_s=20,
)

FEW = Scenario(
    train_few_and_hold,
    problem=few_problem,
    rank_inputs=same_for_all,
    expected=expected_of_few,
    world_sizes=(1, 2, 3, 4),
    gloo=(2, 4),
    deadline_s=30,
)


@FIT.completes
def test_every_rank_finishes(run):
    """No rank hangs or crashes, and every collective is matched."""


@FIT.check("values")
def test_parameters_equal_the_unsharded_run(run):
    """After every step every parameter on every rank is what one optimizer over everything gives."""
    check_parameters(run, "fit", steps=range(3))


@FIT.check("values")
def test_state_equals_the_unsharded_state(run):
    """optimizer.state holds every parameter's state on its owner, with the unsharded optimizer's values."""
    check_state(run, "fit")


@FIT.check("values")
def test_state_is_what_updates_use(run):
    """Whoever changes optimizer.state[param] on the owner changes the next update of param on every rank."""
    check_parameters(run, "fit", steps=[3])


@FIT.check("memory")
def test_each_state_lives_on_one_rank(run):
    """The sets of parameters whose state a rank holds are disjoint: no state exists twice."""
    names = list(run.problem["fit"]["values"])
    shared = [name for name in names if len(holders(run, "fit", name)) > 1]
    if shared:
        ranks = ", ".join(map(str, holders(run, "fit", shared[0])))
        fail(
            f"the state of {len(shared)} of {len(names)} parameters exists more than once, that of "
            f"{shared[0]} on ranks {ranks}: "
            + ("nothing is sharded" if len(shared) == len(names) else "each parameter has one owner")
        )


@FIT.check("memory")
def test_no_rank_owns_more_than_its_share(run):
    """No rank holds the state of more than total/n + the largest parameter, in elements."""
    check_share(run, "fit")


def received_bytes(operation):
    """What the operation brings to this rank: for symmetric collectives as much as it sends."""
    if operation.name in ("send", "reduce", "gather", "barrier"):
        return 0
    if operation.name == "broadcast":
        return 0 if operation.root == operation.rank else operation.nbytes
    return operation.nbytes if operation.name == "recv" else operation.sent_bytes


def operations_by_step(run, rank):
    """(operations outside of step, [those of step 1, those of step 2, ...])."""
    parts = [[]]
    for operation in run.trace.operations(rank):
        if operation.name == "scatter":
            parts.append([])
        else:
            parts[-1].append(operation)
    outside = [operation for part in parts[0::2] for operation in part]
    return outside, parts[1::2]


def owned_bytes(run, job, rank):
    """Bytes of the parameters that a rank may own: it holds their state, or nobody shows it."""
    return sum(
        value.numel() * value.element_size()
        for name, value in run.problem[job]["values"].items()
        if rank in holders(run, job, name) or not holders(run, job, name)
    )


def shown_bytes(run, job, rank):
    """Bytes of the parameters whose state a rank holds."""
    values = run.problem[job]["values"]
    return sum(v.numel() * v.element_size() for name, v in values.items() if rank in holders(run, job, name))


MOVES = ("broadcast", "send", "recv", "gather", "barrier", "monitored_barrier")
PADS = ("all_gather", "all_to_all")


def check_step(run, job, rank, step, operations, least):
    """Nothing but parameters travels, each once and in no more messages than there are parameters.

    least: bytes that have to come. What is gathered from all may be padded to the longest shard, that of the rank that
    owns most, or may; all else comes in its own size.
    """
    values, n = run.problem[job]["values"].values(), run.world_size
    sizes = [value.numel() * value.element_size() for value in values]
    longest = max([sum(sizes) / n + max(sizes), *(owned_bytes(run, job, each) for each in range(n))])
    is_padded = any(operation.name in PADS for operation in operations)
    most = (n - 1) * longest if is_padded else sum(sizes) - shown_bytes(run, job, rank)
    got = sum(map(received_bytes, operations))
    others = sum(sizes) - owned_bytes(run, job, rank)
    names = ", ".join(sorted({operation.name for operation in operations})) or "no operation"
    if not least <= got <= most:
        fail(
            f"rank {rank}, step {step}: received {got} bytes ({names}); it does not own {others} of the "
            f"{sum(sizes)} bytes of parameters, so should receive {least} to {most:.0f}"
        )
    for operation in operations:
        if operation.name not in MOVES + PADS:
            fail(
                f"rank {rank}, step {step}: {operation.name} of {operation.nbytes} bytes at {operation.site}: a step "
                "moves parameters from their owners, and has nothing to reduce"
            )
    num_messages = sum(1 for operation in operations if operation.name not in ("send", "barrier", "monitored_barrier"))
    if num_messages > max(len(sizes), n):
        fail(
            f"rank {rank}, step {step}: {num_messages} operations ({names}) for {len(sizes)} parameters: each travels "
            "once, and nothing else does"
        )


@FIT.check("traffic")
def test_parameters_travel_once_a_step(run):
    """In each step a rank receives the parameters that it does not own, and little more: no second copy."""
    total = sum(value.numel() * value.element_size() for value in run.problem["fit"]["values"].values())
    for rank in range(run.world_size):
        for step, operations in enumerate(operations_by_step(run, rank)[1], start=1):
            check_step(run, "fit", rank, step, operations, total - owned_bytes(run, "fit", rank))


@USE.check("traffic")
def test_nothing_else_travels_in_use(run):
    """Groups, closures and missing gradients: parameters travel in step, once at most, and nothing else does."""
    for rank in range(run.world_size):
        outside, steps = operations_by_step(run, rank)
        require_silence(run, rank, outside)
        jobs = [(job, step) for job in run.problem for step in range(len(run.problem[job]["gradients"]))]
        for (job, step), operations in zip(jobs, steps, strict=True):
            check_step(run, job, rank, step + 1, operations, 0)


def require_silence(run, rank, outside):
    outside = [operation for operation in outside if operation.nbytes]
    if run.world_size > 1 and outside:
        first = outside[0]
        fail(f"rank {rank}: {first.name} of {first.nbytes} bytes at {first.site}, which is not in step")


@FIT.check("traffic")
def test_only_step_communicates(run):
    """Nothing travels outside of step: parameters are equal at the start, and who owns what is computed."""
    for rank in range(run.world_size):
        require_silence(run, rank, operations_by_step(run, rank)[0])


@FIT.check("discipline")
def test_replicas_stay_bitwise_equal(run):
    """After every step every rank has the very bits of rank 0, so replicas cannot drift apart."""
    for rank, returned in enumerate(run.ranks[1:], start=1):
        steps = zip(returned["fit"]["parameters"], run.ranks[0]["fit"]["parameters"], strict=True)
        for step, (mine, first) in enumerate(steps, start=1):
            for name in first:
                if not torch.equal(mine[name], first[name]):
                    fail(f"after step {step}, {name} on rank {rank} is not the one on rank 0")


@FIT.check("discipline")
def test_global_state_is_left_alone(run):
    """Random numbers, the default dtype and the grad mode are as they would be without sharding."""
    for rank, returned in enumerate(run.ranks):
        if returned["default_dtype"] != torch.float32 or not returned["grad_enabled"]:
            fail(f"rank {rank}: the default dtype or the grad mode was changed and not put back")
        if not torch.equal(returned["fit"]["draw"], run.expected["fit"]["draw"]):
            fail(f"rank {rank}: after training, torch.rand draws other numbers than with AdamW itself")


@FIT.check("discipline")
def test_no_work_is_left_unwaited(run):
    """Every asynchronous operation is waited for before step returns."""
    for finding in run.findings:
        if finding.kind == "unwaited":
            fail(f"rank {finding.rank}: {finding.message}")


@USE.completes
def test_it_is_used_like_any_optimizer(run):
    """Groups, a scheduler, late groups, missing gradients, closures: no call of the Optimizer API fails."""


@USE.check("values")
def test_each_group_keeps_its_hyperparameters(run):
    """Four groups, given as dicts, differ in lr, momentum and weight decay, or leave them out."""
    check_parameters(run, "groups")
    check_state(run, "groups")


@USE.check("values")
def test_a_scheduler_sets_the_learning_rate(run):
    """A torch lr_scheduler writes to the outer param_groups, where it also finds the default lr."""
    check_parameters(run, "schedule")
    check_state(run, "schedule")


@USE.check("values")
def test_changed_hyperparameters_count(run):
    """lr, momentum and weight decay that are changed in param_groups later count from then on."""
    check_parameters(run, "changes")
    check_state(run, "changes")


@USE.check("values")
def test_a_late_group_is_trained(run):
    """add_param_group after some steps: the new parameters are updated, the old ones keep their state."""
    check_parameters(run, "late")
    check_state(run, "late")


@USE.check("values")
def test_parameters_without_gradient_are_skipped(run):
    """grad None means no update at all: no weight decay, no momentum, no state."""
    check_parameters(run, "skipped")
    check_state(run, "skipped")
    for rank, returned in enumerate(run.ranks):
        expected = run.expected["skipped"]["requires_grad"]
        if returned["skipped"]["requires_grad"] != expected:
            fail(
                f"rank {rank}: parameters that require a gradient are {returned['skipped']['requires_grad']}, and were "
                f"{expected} before the optimizer was made"
            )


@USE.check("values")
def test_step_returns_the_loss_of_its_closure(run):
    """step(closure) calls it once and returns its loss; step() returns None."""
    for job in ("closure", "groups"):
        for rank, returned in enumerate(run.ranks):
            compare(
                returned[job]["losses"],
                run.expected[job]["losses"],
                what="result of step",
                rank=rank,
                rtol=rtol_of(run, job),
                world_size=run.world_size,
            )


@USE.check("values")
def test_arguments_of_step_arrive(run):
    """Keyword arguments of step reach optimizer_cls.step, on the gradients that the closure has computed."""
    check_parameters(run, "closure")


@USE.check("values")
def test_zero_grad_clears_every_gradient(run):
    """zero_grad clears the gradients of all parameters on every rank, not only of those that it owns."""
    for rank, returned in enumerate(run.ranks):
        compare(
            returned["late"]["cleared"],
            run.expected["late"]["cleared"],
            what="gradient",
            rank=rank,
            world_size=run.world_size,
            where="after zero_grad(set_to_none=False), then after zero_grad()",
        )


@USE.check("memory")
def test_shares_count_all_groups(run):
    """The share of a rank is counted over all groups, also those that came later."""
    check_share(run, "groups")
    check_share(run, "late")


@FEW.completes
def test_a_rank_that_owns_nothing_takes_part(run):
    """With more ranks than parameters nobody crashes over an empty list or stays out of the collectives."""


@FEW.check("values")
def test_fewer_parameters_than_ranks(run):
    """With more ranks than parameters every rank still gets every update, and the closure's loss."""
    check_parameters(run, "few")
    check_state(run, "few")
    for rank, returned in enumerate(run.ranks):
        compare(
            returned["few"]["losses"],
            run.expected["few"]["losses"],
            what="result of step",
            rank=rank,
            world_size=run.world_size,
        )


@FEW.check("memory")
def test_the_process_keeps_its_share(run):
    """Between steps a rank's process has grown by the state that it owns, and by an eighth of the parameters at most.

    32 MiB of parameters have 64 MiB of state. 4 MiB of room are four times what readings may be off by; state that is
    kept twice lies some 10 MiB beyond them, also on a rank that owns less than others.
    """
    if run.problem["weights"] is None:
        return
    numels = run.problem["weights"]["numels"]
    most = sum(numels) / run.world_size + max(numels)  # elements that a rank may own
    claim_persistent(
        run,
        "after",
        since="before",
        expected_bytes=lambda rank: min(run.ranks[rank]["shown_bytes"], int(4 * MOMENTS * most)),
        given_bytes=lambda rank: 4 * sum(numels),
        room_bytes=4 * sum(numels) // 8,
        whole_bytes=4 * MOMENTS * sum(numels),
    )
