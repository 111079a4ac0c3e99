"""pp/gpipe: run one batch through a pipeline, all forwards first, then all backwards.

Run `shardkit grade pp/gpipe THIS_FILE`. You may use torch and the standard library, except what would be
the answer (torch.distributed.pipelining).
"""

import torch
import torch.distributed as dist


def run_gpipe(
    stage,
    microbatches: list[torch.Tensor] | None,
    targets: list[torch.Tensor] | None,
    loss_fn,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor | None:
    """Forward and backward of one batch of M microbatches; leaves parameter gradients on the stages.

    Rank r of `group` (None means WORLD) holds stage r of p = world size stages; every rank calls.

    stage: this rank's piece of the model. It keeps what its backward needs, and accumulates parameter gradients.
        stage.num_microbatches       M, the same on every rank: any number, also fewer than p
        stage.dtype                  dtype of all activations and of their gradients
        stage.input_shape(mb)        shape of the input of microbatch mb; microbatches may differ in dim 0
        stage.forward(mb, x)         -> y, the output. x is kept for backward, not copied. On the last stage y requires
                                     grad, so that loss_fn(y, target) can be handed to loss_backward
        stage.loss_backward(mb, loss) -> gx, last stage only. loss: a scalar that was computed from y of microbatch mb
        stage.backward(mb, gy)       -> gx, the other stages. gy: the gradient of the loss with respect to y
                                     gx: the gradient with respect to x; None on the first stage
    microbatches: list of the M inputs on the first rank, None elsewhere.
    targets: list of the M targets on the last rank, None elsewhere.
    loss_fn: loss_fn(y, target) -> scalar, the mean over the samples (dim 0) of this one microbatch.

    Returns on the last rank the loss of the batch, detached: the mean over all samples of all microbatches. Returns
    None elsewhere. The gradients are those of that loss, as if the unsharded model had run the whole batch at once.

    Every stage finishes its M forwards before it begins its first backward. Every activation goes once to the next
    rank, every gradient once to the previous rank, each in a message of its own; nothing else is sent. Peers are
    counted inside the group, while dist.send and dist.recv take global ranks unless you pass group_dst and group_src.
    A send may wait until its receiver has posted the receive: nothing is buffered.

    While backwards run a rank has, beside the inputs that still wait for theirs (and the outputs on the last rank), at
    most four tensors of the size of a microbatch's activation; after the return nothing of the batch is left. Random
    numbers, the default dtype and the grad mode are left alone.
    """
    raise NotImplementedError
