"""A right answer: one class for both directions, batch_isend_irecv of one, weights of losses in a tensor."""

import torch
import torch.distributed as dist


class Wire:
    def __init__(self, group):
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def _do(self, op, tensor, step):
        (work,) = dist.batch_isend_irecv([dist.P2POp(op, tensor, group=self.group, group_peer=self.rank + step)])
        work.wait()
        return tensor

    def put(self, tensor, step):
        if 0 <= self.rank + step < self.size:
            self._do(dist.isend, tensor, step)

    def get(self, shape, dtype, step):
        return self._do(dist.irecv, torch.empty(shape, dtype=dtype), step)


def run_gpipe(stage, microbatches, targets, loss_fn, group=None):
    wire, count = Wire(group), stage.num_microbatches
    is_last = wire.rank == wire.size - 1
    outputs = []
    for mb in range(count):
        x = microbatches[mb] if wire.rank == 0 else wire.get(stage.input_shape(mb), stage.dtype, -1)
        y = stage.forward(mb, x)
        wire.put(y.detach(), 1)
        outputs.append(y if is_last else torch.Size(y.shape))
    del x, y
    if is_last:
        sizes = torch.tensor([len(target) for target in targets], dtype=torch.float64)
        shares = (sizes / sizes.sum()).tolist()
    total = torch.zeros((), dtype=stage.dtype) if is_last else None
    for mb in range(count):
        if is_last:
            loss = shares[mb] * loss_fn(outputs[mb], targets[mb])
            total += loss.detach()
            grad = stage.loss_backward(mb, loss)
            outputs[mb] = None
            del loss
        else:
            grad = stage.backward(mb, wire.get(outputs[mb], stage.dtype, 1))
        if wire.rank:
            wire.put(grad, -1)
        del grad
    return total
