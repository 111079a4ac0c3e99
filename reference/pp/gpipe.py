"""GPipe: all forwards, then all backwards, over a chain of stages.

Source: Y. Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
NeurIPS 2019, arXiv:1811.06965, sections 2.2 and 2.3, figure 2(c).

A batch is cut into M microbatches. With p = 3 stages and M = 4 (F = forward, B = backward, digit = microbatch):

    stage 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3
    stage 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3 .
    stage 2  .  .  F0 F1 F2 F3 B0 B1 B2 B3 .  .

Nobody computes this table: each stage takes its microbatches in order and waits for its neighbours, and the table is
what comes out. The dots are the bubble, (p-1) / (M+p-1) of the makespan. The price of the order is memory: when the
first backward begins, every stage keeps what M forwards have saved.

The paper runs the backwards from the last microbatch to the first, PyTorch's ScheduleGPipe from the first to the last
as here. Either is right, as long as all stages agree: nothing in a message says which microbatch it belongs to.

Left out: recomputing activations (the paper's other half), and starting sends without waiting for them, which hides
the transfer where it takes time.
"""

import torch
import torch.distributed as dist


def run_gpipe(stage, microbatches, targets, loss_fn, group=None):
    """One forward and backward of a batch. Leaves gradients on the stages; the last rank returns the loss, others None.

    stage: this rank's piece of the model; rank r of the group holds stage r. It has `num_microbatches`, `dtype`,
        `input_shape(mb)`, `forward(mb, x) -> y`, `loss_backward(mb, loss) -> gx` (last stage) and
        `backward(mb, gy) -> gx` (the others); gx is None on the first stage.
    microbatches: on the first rank a list of M inputs, on the others None.
    targets: on the last rank a list of M targets, on the others None.
    loss_fn: loss_fn(y, target) is the mean over the samples (dim 0) of one microbatch.
    group: None means WORLD. Every rank of the group must call.
    """
    rank, num_stages = dist.get_rank(group), dist.get_world_size(group)  # both inside the group
    is_first_stage, is_last_stage = rank == 0, rank == num_stages - 1
    if is_last_stage:
        num_samples = sum(len(target) for target in targets)
    output_shapes, losses = [], []

    # Forward. When it is over, `stage` holds the saved activations of all M microbatches.
    for mb in range(stage.num_microbatches):
        if is_first_stage:
            x = microbatches[mb]
        else:
            # A new buffer each time: the stage needs every x again in its backward.
            x = torch.empty(stage.input_shape(mb), dtype=stage.dtype)
            dist.recv(x, group=group, group_src=rank - 1)
        y = stage.forward(mb, x)
        if is_last_stage:
            # The mean over all samples is not the mean of the means: a microbatch weighs what it has of the samples.
            losses.append(loss_fn(y, targets[mb]) * (len(targets[mb]) / num_samples))
        else:
            output_shapes.append(y.shape)
            dist.send(y, group=group, group_dst=rank + 1)

    # Backward, in the same order of microbatches on every stage. The loss is scaled once, on the last stage:
    # backward is linear, so what arrives from the right is already scaled.
    for mb in range(stage.num_microbatches):
        if is_last_stage:
            grad_input = stage.loss_backward(mb, losses[mb])
        else:
            grad_output = torch.empty(output_shapes[mb], dtype=stage.dtype)
            dist.recv(grad_output, group=group, group_src=rank + 1)
            grad_input = stage.backward(mb, grad_output)
        if not is_first_stage:
            dist.send(grad_input, group=group, group_dst=rank - 1)

    return sum(losses).detach() if is_last_stage else None
