"""In which order questions that are new are asked."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence

from kit.bank.load import Header


def study_order(headers: Sequence[Header], seed: int) -> tuple[str, ...]:
    """Every question after those that it requires, and else the easier ones first; the seed decides the rest.

    Give all headers of the bank and choose afterwards, so that a chain holds also through a question left out. Ids that
    a question requires and that are not there are no obstacle; of a circle, which `lint` refuses, the first goes first.
    """
    from kit.bank.draw import shuffled

    by_id = {header.id: header for header in sorted(headers, key=lambda header: header.id)}
    places = dict(zip(by_id, shuffled(len(by_id), random.Random(f"study {seed}")), strict=True))
    waits = {name: {other for other in header.requires if other in by_id} for name, header in by_id.items()}
    ready = [(by_id[name].level, places[name], name) for name, required in waits.items() if not required]
    heapq.heapify(ready)
    order: list[str] = []
    while len(order) < len(by_id):
        name = heapq.heappop(ready)[2] if ready else next(name for name in by_id if name not in order)
        order.append(name)
        waits[name] = set()
        for other, required in waits.items():
            if name in required:
                required.discard(name)
                if not required and other not in order:
                    heapq.heappush(ready, (by_id[other].level, places[other], other))
    return tuple(order)
