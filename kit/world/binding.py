"""How torch.distributed inside a rank is led to the switchboard, whatever backend the program names."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import BuiltinCommHookType
from torch.distributed import distributed_c10d as c10d
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel

from kit.world.connection import Connection
from kit.world.process_group import SwitchboardGroup
from kit.world.races import RaceWatch
from kit.world.sites import call_site
from kit.world.store import ServedStore
from kit.world.work import patch_future_wait

BACKEND = "switchboard"
_TIMEOUT = timedelta(minutes=30)

# Alive as long as the process: torch keeps only C++ references to what is in here.
_connection: Connection | None = None
_store: ServedStore | None = None
_races: RaceWatch | None = None
_registered = False


def connection() -> Connection | None:
    """This rank's line to the deciding process; None outside of any world."""
    return _connection


def watched_connection() -> Connection | None:
    """This rank's line to the deciding process where that process keeps a record; None under gloo and outside."""
    return _connection if _races is not None else None


def register_backend() -> None:
    """Make the switchboard known to torch.distributed. Done once, in the zygote."""
    global _registered
    if not _registered:
        dist.Backend.register_backend(BACKEND, _create_group, extended_api=True, devices=["cpu"])
        patch_future_wait()
        _registered = True


def _create_group(options: Any, _backend_options: Any) -> SwitchboardGroup:
    assert _connection is not None and _races is not None
    return SwitchboardGroup(
        _connection,
        _races,
        options.group_rank,
        options.group_size,
        options.group_id,
        options.global_ranks_in_group,
    )


def join_switchboard(connection: Connection, races: RaceWatch, rank: int, world_size: int) -> None:
    """torch.distributed of this process becomes rank `rank` of a switchboard of `world_size`."""
    global _connection, _store, _races
    register_backend()
    _connection, _races = connection, races
    _store = ServedStore(connection)
    _patch_group_creation(connection)
    _patch_builtin_hooks()
    _patch_common(connection, rank, world_size)
    dist.init_process_group("gloo", store=_store, rank=rank, world_size=world_size, timeout=_TIMEOUT)


def join_gloo(connection: Connection, rank: int, world_size: int, timeout_s: float) -> None:
    """The same program over gloo itself; only the rendezvous store is ours."""
    global _connection, _store
    _connection = connection
    _store = ServedStore(connection)
    interface = next((name for name in ("lo", "lo0") if os.path.exists(f"/sys/class/net/{name}")), None)
    if interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    _patch_common(connection, rank, world_size)
    dist.init_process_group(
        "gloo", store=_store, rank=rank, world_size=world_size, timeout=timedelta(seconds=timeout_s)
    )


def _patch_group_creation(connection: Connection) -> None:
    plain = c10d._new_process_group_helper

    def helper(
        group_size: int, group_rank: int, global_ranks: list[int], backend: Any, *rest: Any, **named: Any
    ) -> Any:
        asked = str(backend) if backend is not None else "gloo"
        site, _ = call_site()
        group_name = rest[1] if len(rest) > 1 else named["group_name"]
        connection.post({"op": "group", "ranks": list(global_ranks), "name": str(group_name), "site": site})
        group, store = plain(group_size, group_rank, global_ranks, BACKEND, *rest, **named)
        if isinstance(group, dist.ProcessGroup):
            # What get_backend() answers: the name that the program asked for.
            single = asked if ":" not in asked and asked != "undefined" else "gloo"
            c10d._world.pg_map[group] = (single, c10d._world.pg_map[group][1])
        return group, store

    vars(c10d)["_new_process_group_helper"] = helper


def _patch_builtin_hooks() -> None:
    """DDP's FP16_COMPRESS becomes torch's same hook in Python: the one in C++ takes no future that Python made."""
    plain = DistributedDataParallel._register_builtin_comm_hook

    def register(self: DistributedDataParallel, comm_hook_type: Any) -> None:
        if comm_hook_type == BuiltinCommHookType.FP16_COMPRESS:
            self.register_comm_hook(self.process_group, fp16_compress_hook)
        else:
            plain(self, comm_hook_type)

    DistributedDataParallel._register_builtin_comm_hook = register  # type: ignore[method-assign]


def _patch_common(connection: Connection, rank: int, world_size: int) -> None:
    plain_warn: Callable[[str], None] = c10d._warn_not_in_group

    def warn_not_in_group(name: str) -> None:
        site, _ = call_site()
        message = f"called {name} on a group that it is not in, which does nothing"
        connection.post({"op": "note", "kind": "non_member", "message": message, "site": site})
        plain_warn(name)

    plain_init = dist.init_process_group

    def init_process_group(backend: Any = None, *rest: Any, **named: Any) -> None:
        """Accepted inside a rank: torch.distributed is already initialised, by the kit."""
        if c10d.is_initialized():
            if named.get("rank", -1) in (-1, rank):
                return
            raise ValueError(f"init_process_group: this is rank {rank} of {world_size}, not {named['rank']}")
        plain_init(backend, store=_store, rank=rank, world_size=world_size, timeout=named.get("timeout") or _TIMEOUT)

    vars(c10d)["_warn_not_in_group"] = warn_not_in_group
    for module in (dist, c10d):
        vars(module)["init_process_group"] = init_process_group
