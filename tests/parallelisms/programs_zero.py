"""ZeroRedundancyOptimizer over DistributedDataParallel, and Join over both."""

from __future__ import annotations

import torch
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from tests.parallelisms.models import copied, gradients, load, loss_of


def trains(given):
    """given: {"state", "steps", "views": bool, "late": whether the last layer joins the optimizer after a step}.

    Returns parameters after each step, and the momenta that rank 0 collected in the end.
    """
    model = load("mlp", given["state"])
    wrapped = DistributedDataParallel(model)
    first, last = list(model[:-1].parameters()), list(model[-1].parameters())
    optimizer = ZeroRedundancyOptimizer(
        first if given["late"] else first + last,
        torch.optim.SGD,
        parameters_as_bucket_view=given["views"],
        lr=0.02,
        momentum=0.9,
    )
    seen = {"losses": [], "grads": [], "params": []}
    for number, batch in enumerate(given["steps"]):
        if number == 1 and given["late"]:
            optimizer.add_param_group({"params": last, "lr": 0.05})
        wrapped.zero_grad()
        loss = loss_of(wrapped(batch["x"]), batch)
        loss.backward()
        seen["losses"].append(loss.item())
        seen["grads"].append(gradients(model.named_parameters()))
        optimizer.step()
        seen["params"].append(copied(model.named_parameters()))
    seen["own"] = sum(state["momentum_buffer"].numel() for state in optimizer.optim.state.values())
    optimizer.consolidate_state_dict(to=0)
    if torch.distributed.get_rank() == 0:
        state = optimizer.state_dict()["state"]
        seen["momenta"] = [state[number]["momentum_buffer"].clone() for number in sorted(state)]
    return seen


def joins(given):
    """Both the gradients' and the optimizer's collectives are shadowed by ranks that have run out of batches."""
    model = load("mlp", given["state"])
    wrapped = DistributedDataParallel(model, bucket_cap_mb=0.0005)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.02, momentum=0.9)
    with Join([wrapped, optimizer]):
        for batch in given["steps"]:
            optimizer.zero_grad()
            loss_of(wrapped(batch["x"]), batch).backward()
            optimizer.step()
    return copied(model.named_parameters())


class Counter(torch.distributed.algorithms.join.Joinable):
    """Adds up numbers over all ranks, call by call; ranks that have left add nothing."""

    def __init__(self):
        super().__init__()
        self.sums = []

    def add(self, number):
        Join.notify_join_context(self)
        total = torch.tensor([number], dtype=torch.float64)
        torch.distributed.all_reduce(total)
        self.sums.append(total.item())

    def join_hook(self, **kwargs):
        return CounterHook(self, kwargs["last"])

    @property
    def join_device(self):
        return torch.device("cpu")

    @property
    def join_process_group(self):
        return torch.distributed.group.WORLD


class CounterHook(torch.distributed.algorithms.join.JoinHook):
    def __init__(self, counter, last):
        self.counter = counter
        self.last = last

    def main_hook(self):
        torch.distributed.all_reduce(torch.zeros(1, dtype=torch.float64))

    def post_hook(self, is_last_joiner):
        self.last.append(is_last_joiner)


def counts(given):
    """given: this rank's numbers, of its own count. Returns the sums it saw and whether it left last."""
    counter, last = Counter(), []
    with Join([counter], last=last):
        for number in given:
            counter.add(number)
    return counter.sums, last
