"""The switchboard as a torch.distributed process group: the rank's half.

Every collective becomes one message (what, in which group, with which tensors) and, later, one wait. All checking and
all arithmetic is done by the deciding process (`kit.world.switchboard`).
"""

# The base class is C++ with overloads that torch calls by position; these methods take what it really passes.
# mypy: disable-error-code="override, assignment"
# ruff: noqa: N802

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from torch.distributed import distributed_c10d as c10d

from kit.world import tensor_rules
from kit.world.connection import Connection
from kit.world.races import RaceWatch
from kit.world.sites import call_site
from kit.world.tensors import copy_into, dtype_name, memory_order
from kit.world.work import Joined, Work

Tensors = Sequence[torch.Tensor]
_REDUCE_OPS = {
    getattr(dist.ReduceOp, name): name
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")
}
_LACKING = "the switchboard does not support {}; docs/world.md lists what it does"
_PLAIN = "a plain {} is not differentiable: gradients flow as if it were not there"


def _reduce_name(op: Any) -> str:
    for known, name in _REDUCE_OPS.items():
        if op == known:
            if name == "PREMUL_SUM":
                raise NotImplementedError(_LACKING.format("ReduceOp.PREMUL_SUM"))
            return name
    raise NotImplementedError(_LACKING.format(f"the reduction {op!r}"))


def _meta(tensor: torch.Tensor) -> list[Any]:
    return [dtype_name(tensor.dtype), list(tensor.shape), *memory_order(tensor)]


class SwitchboardGroup(dist.ProcessGroup):
    """One process group of one rank."""

    def __init__(
        self, connection: Connection, races: RaceWatch, rank: int, size: int, name: str, ranks: Sequence[int]
    ) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg]  # the form for Python subclasses
        self._connection = connection
        self._races = races
        self._group_rank = rank
        self._group_size = size
        self._members = list(ranks) or list(range(size))
        self._name, self._description = str(name), ""
        self._key = f"{name}:{','.join(map(str, self._members))}"

    @property
    def _device_types(self) -> list[torch.device]:
        """What torch asks before it broadcasts a state dict or saves one in the background."""
        return [torch.device("cpu")]

    def _get_backend(self, device: torch.device) -> SwitchboardGroup:
        """The group is its own backend, for the one device that it has."""
        if torch.device(device).type != "cpu":
            raise RuntimeError(f"no backend for {device}; the ranks have CPU tensors only")
        return self

    # -- one operation ------------------------------------------------------------------------------------

    def _issue(
        self,
        name: str,
        sends: Tensors,
        outputs: Tensors,
        *,
        async_op: bool = True,
        results: Tensors | None = None,
        timeout: timedelta | None = None,
        **arguments: Any,
    ) -> Work:
        tensor_rules.check(name, (*sends, *outputs))
        site, by_program = call_site()
        self._warn_if_differentiable(name, sends, site, by_program)
        self._warn_if_not_portable(name, sends, outputs, site)
        total = sum(t.numel() * t.element_size() for t in sends)
        buffer, where = self._connection.room(total)
        offset = 0
        for tensor in sends:
            copy_into(buffer, tensor, offset)
            offset += tensor.numel() * tensor.element_size()
        header = {
            "name": name,
            "group": self._key,
            "in": [_meta(t) for t in sends],
            "out": [_meta(t) for t in outputs],
            "async": async_op,
            "site": site,
            "program": by_program,
            **arguments,
            **where,
        }
        blobs = [] if where or not total else [buffer]
        seq = self._connection.issue(header, blobs)
        if async_op:  # nothing can touch the buffers of a blocking operation before it is done
            self._races.depart(seq, name, site, by_program, sends, outputs, buffer)
        written = results if results is not None else outputs
        return Work(self._connection, self._races, seq, outputs, written, where.get("segment"), timeout)

    def _warn_if_not_portable(self, name: str, sends: Tensors, outputs: Tensors, site: str) -> None:
        message = tensor_rules.portability_note(name, sends, outputs)
        if message is not None:
            self._connection.post({"op": "note", "kind": "portability", "message": message, "site": site})

    def _warn_if_differentiable(self, name: str, tensors: Tensors, site: str, by_program: bool) -> None:
        if name in ("send", "recv") or not by_program or not torch.is_grad_enabled():
            return
        if any(t.grad_fn is not None for t in tensors):
            self._connection.post({"op": "note", "kind": "autograd", "message": _PLAIN.format(name), "site": site})

    # -- collectives --------------------------------------------------------------------------------------

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Work:
        opts = opts if opts is not None else AllreduceOptions()
        if not isinstance(opts, (AllreduceOptions, AllreduceCoalescedOptions)):
            opts, op = AllreduceOptions(), opts
            opts.reduceOp = op
        reduce_op = _reduce_name(opts.reduceOp)
        return self._issue("all_reduce", tensors, tensors, async_op=opts.asyncOp, reduce_op=reduce_op)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        return self.allreduce(tensors, opts if opts is not None else AllreduceCoalescedOptions())

    def reduce(self, tensors: Tensors, opts: Any = None) -> Work:
        opts = opts if opts is not None else ReduceOptions()
        root = opts.rootRank
        outputs = tensors if root == self._group_rank else []
        return self._issue(
            "reduce", tensors, outputs, results=tensors, async_op=opts.asyncOp,
            reduce_op=_reduce_name(opts.reduceOp), root=root,
        )  # fmt: skip

    def broadcast(self, tensors: Tensors, opts: Any = None) -> Work:
        opts = opts if opts is not None else BroadcastOptions()
        is_root = opts.rootRank == self._group_rank
        return self._issue(
            "broadcast", tensors if is_root else [], [] if is_root else tensors, results=tensors,
            async_op=opts.asyncOp, root=opts.rootRank,
        )  # fmt: skip

    def allgather(self, output_lists: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Work:
        opts = opts if opts is not None else AllgatherOptions()
        outputs = list(output_lists[0])
        if len(outputs) != self._group_size:
            raise ValueError(f"all_gather: {len(outputs)} output tensors for a group of {self._group_size} ranks")
        return self._issue("all_gather", inputs, outputs, async_op=opts.asyncOp, out_parts=[t.numel() for t in outputs])

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        opts = opts if opts is not None else AllgatherOptions()
        if output.numel() != input.numel() * self._group_size:
            raise ValueError(
                f"all_gather: the output has {output.numel()} elements, not {self._group_size} ranks x "
                f"{input.numel()} of the input"
            )
        return self._issue("all_gather", [input], [output], async_op=opts.asyncOp)

    _allgather_base = all_gather_single

    def allgather_coalesced(self, output_lists: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Joined:
        """output_lists[i][j] receives rank i's j-th tensor, as torch.distributed documents it."""
        by_tensor = [[outputs[j] for outputs in output_lists] for j in range(len(inputs))]
        return Joined([self.allgather([outs], [one], opts) for outs, one in zip(by_tensor, inputs, strict=True)])

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Joined:
        return Joined([self.all_gather_single(o, i, opts) for o, i in zip(outputs, inputs, strict=True)])

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def reduce_scatter(self, outputs: Tensors, input_lists: Sequence[Tensors], opts: Any = None) -> Work:
        opts = opts if opts is not None else ReduceScatterOptions()
        parts = list(input_lists[0])
        if len(parts) != self._group_size:
            raise ValueError(f"reduce_scatter: {len(parts)} input tensors for a group of {self._group_size} ranks")
        return self._issue(
            "reduce_scatter", parts, outputs, async_op=opts.asyncOp,
            reduce_op=_reduce_name(opts.reduceOp), parts=[t.numel() for t in parts],
        )  # fmt: skip

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        opts = opts if opts is not None else ReduceScatterOptions()
        if input.numel() != output.numel() * self._group_size:
            raise ValueError(
                f"reduce_scatter: the input has {input.numel()} elements, not {self._group_size} ranks x "
                f"{output.numel()} of the output"
            )
        return self._issue(
            "reduce_scatter", [input], [output], async_op=opts.asyncOp,
            reduce_op=_reduce_name(opts.reduceOp), parts=[output.numel()] * self._group_size,
        )  # fmt: skip

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Joined:
        return Joined([self.reduce_scatter_single(o, i, opts) for o, i in zip(outputs, inputs, strict=True)])

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> Work:
        opts = opts if opts is not None else AllToAllOptions()
        for tensor in (input, output):
            tensor_rules.check_contiguous("all_to_all", tensor)
        parts = self._split("input", input, input_splits)
        out_parts = self._split("output", output, output_splits)
        return self._issue("all_to_all", [input], [output], async_op=opts.asyncOp, parts=parts, out_parts=out_parts)

    alltoall_base = all_to_all_single

    def _split(self, which: str, tensor: torch.Tensor, splits: Sequence[int]) -> list[int]:
        """Elements for each peer, from splits of dimension 0."""
        rows = tensor.shape[0] if tensor.dim() else tensor.numel()
        row = tensor.numel() // rows if rows else 0
        if not splits:
            if rows % self._group_size:
                raise ValueError(
                    f"all_to_all: dimension 0 of the {which} is {rows}, not divisible by {self._group_size} ranks"
                )
            return [rows // self._group_size * row] * self._group_size
        if len(splits) != self._group_size or sum(splits) != rows or min(splits) < 0:
            raise ValueError(
                f"all_to_all: {which} split sizes {list(splits)} do not cut a dimension of {rows} into "
                f"{self._group_size}"
            )
        return [count * row for count in splits]

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        opts = opts if opts is not None else AllToAllOptions()
        for which, tensors in (("input", inputs), ("output", outputs)):
            if len(tensors) != self._group_size:
                raise ValueError(f"all_to_all: {len(tensors)} {which} tensors for a group of {self._group_size}")
        return self._issue(
            "all_to_all", inputs, outputs, async_op=opts.asyncOp,
            parts=[t.numel() for t in inputs], out_parts=[t.numel() for t in outputs],
        )  # fmt: skip

    def gather(self, output_lists: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Work:
        opts = opts if opts is not None else GatherOptions()
        is_root = opts.rootRank == self._group_rank
        outputs = list(output_lists[0]) if is_root else []
        if is_root and len(outputs) != self._group_size:
            raise ValueError(f"gather: {len(outputs)} output tensors for a group of {self._group_size} ranks")
        return self._issue(
            "gather", inputs, outputs, async_op=opts.asyncOp, root=opts.rootRank,
            out_parts=[t.numel() for t in outputs],
        )  # fmt: skip

    def scatter(self, outputs: Tensors, input_lists: Sequence[Tensors], opts: Any = None) -> Work:
        opts = opts if opts is not None else ScatterOptions()
        is_root = opts.rootRank == self._group_rank
        parts = list(input_lists[0]) if is_root else []
        if is_root and len(parts) != self._group_size:
            raise ValueError(f"scatter: {len(parts)} input tensors for a group of {self._group_size} ranks")
        return self._issue(
            "scatter", parts, outputs, async_op=opts.asyncOp, root=opts.rootRank,
            parts=[t.numel() for t in parts],
        )  # fmt: skip

    def barrier(self, opts: Any = None) -> Work:
        opts = opts if isinstance(opts, BarrierOptions) else BarrierOptions()
        return self._issue("barrier", [], [], async_op=opts.asyncOp, timeout=opts.timeout)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        self._issue("monitored_barrier", [], [], async_op=False).wait(timeout)

    # -- point to point -----------------------------------------------------------------------------------

    def send(self, tensors: Tensors, dst: int, tag: int) -> Work:
        if dst == self._group_rank:
            raise ValueError(f"send: rank {dst} of the group sends to itself")
        tensor_rules.check_contiguous("send", tensors[0])
        return self._issue("send", tensors, [], results=tensors, peer=dst, tag=tag)

    def recv(self, tensors: Tensors, src: int, tag: int) -> Work:
        if src == self._group_rank:
            raise ValueError(f"recv: rank {src} of the group receives from itself")
        tensor_rules.check_contiguous("recv", tensors[0])
        return self._issue("recv", [], tensors, peer=src, tag=tag)

    def recv_anysource(self, tensors: Tensors, tag: int) -> Work:
        tensor_rules.check_contiguous("recv", tensors[0])
        return self._issue("recv", [], tensors, peer=-1, tag=tag)

    # -- the rest of the interface ------------------------------------------------------------------------

    def getBackendName(self) -> str:
        return "switchboard"

    def getRank(self) -> int:
        return self._group_rank

    def getSize(self) -> int:
        return self._group_size

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:
        return self._description

    def set_timeout(self, timeout: timedelta) -> None:
        """Accepted and unused: without an explicit timeout, waiting ends at quiescence."""

    def abort(self) -> None:
        """Nothing to abort: no resource outlives the rank."""

    def shutdown(self) -> None:
        """Nothing to shut down."""

    def _start_coalescing(self, device: Any) -> NoReturn:
        c10d._world.pg_coalesce_state.pop(self, None)  # or torch would silently collect all later operations
        raise NotImplementedError(_LACKING.format("_coalescing_manager with a device (it does without one)"))

    def split_group(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(_LACKING.format("split_group"))

    def merge_remote_group(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(_LACKING.format("merge_remote_group"))
