"""A trial run: can this machine start ranks, and do they hear each other."""

from __future__ import annotations

from collections.abc import Sequence

NUM_RANKS = 2


def rank_sum() -> float:
    """On every rank: 1 + 2 by an all_reduce."""
    import torch
    import torch.distributed as dist

    number = torch.tensor([float(dist.get_rank() + 1)])
    dist.all_reduce(number)
    return number.item()


def try_ranks(transports: Sequence[str], deadline_s: float = 30.0) -> dict[str, float | str]:
    """For each transport the seconds of a run of fresh ranks, or why it failed."""
    from kit.errors import KitError
    from kit.world.failure import WorldError
    from kit.world.world import World
    from kit.world.zygote import Zygote

    outcomes: dict[str, float | str] = {}
    with Zygote.execute() as zygote:
        for transport in transports:
            try:
                zygote.wait_ready()
                result = World(NUM_RANKS, transport=transport, zygote=zygote, deadline_s=deadline_s).run(rank_sum)
            except (WorldError, KitError) as error:
                outcomes[transport] = str(error)
                continue
            is_right = result.ranks == (3.0, 3.0)
            outcomes[transport] = result.duration_s if is_right else f"1 + 2 over the ranks gave {result.ranks}"
    return outcomes
