"""zero/sharded_optimizer: an optimizer whose state is spread over the ranks.

Run `shardkit grade zero/sharded_optimizer THIS_FILE`. You may use torch and the standard library, except what
would be the answer (ZeroRedundancyOptimizer, FSDP and the like).
"""

import torch
import torch.distributed as dist  # noqa: F401


class ShardedOptimizer(torch.optim.Optimizer):
    """Steps like `optimizer_cls(params, **kwargs)`, but each rank holds the state of its own parameters only.

    Every rank constructs it over the same parameters with the same values, and uses it as any optimizer:

        optimizer = ShardedOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
        loss.backward()                  # and something averages the gradients over ranks
        optimizer.step()                 # each rank updates what it owns and receives the rest
        optimizer.zero_grad()

    param_groups: all parameters in groups, as in any optimizer. What stands there when step is called
        rules: lr and any other hyperparameter may be changed, by hand or by a torch lr_scheduler.
    state: state[param] is the live state of a parameter, as in any optimizer, but only of those that this
        rank owns. Each parameter, as a whole tensor, belongs to one rank and never moves. A rank owns at
        most total/n + the largest parameter, in elements, counted over all groups.
    """

    def __init__(self, params, optimizer_cls, **kwargs):
        """Decide who owns what, and make an optimizer_cls for the owned parameters; no communication.

        params: an iterable (also a generator) of parameters, or of dicts that each describe a group. There
            may be fewer parameters than ranks.
        optimizer_cls: any torch optimizer that creates a parameter's state in its first step: SGD, AdamW, ...
        kwargs: passed to optimizer_cls. What neither kwargs nor a group names has optimizer_cls's default.

        Note: torch.optim.Optimizer.__init__(params, defaults) calls self.add_param_group for each group.
        """
        raise NotImplementedError

    def add_param_group(self, param_group):
        """Add a group, during construction or after any number of steps; no communication.

        param_group: {"params": a parameter or an iterable of them}, and its own hyperparameters, if any.
        From the next step on its parameters are owned and updated; the state of the others stays as it is.
        """
        raise NotImplementedError

    def step(self, closure=None, **kwargs):
        """Update every parameter on every rank as optimizer_cls.step would; return what that returns.

        Called by every rank; gradients are averaged already. A parameter whose .grad is None is skipped.
        closure: called once; recomputes the gradients and returns the loss.
        kwargs: passed to optimizer_cls.step.
        On return every parameter has the same bits on all ranks. Each parameter travels at most once a step,
        and nothing else does: there is nothing to reduce.
        """
        raise NotImplementedError
