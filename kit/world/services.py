"""What the deciding process computes on behalf of ranks: layers whose weights no rank has.

A rank calls a service by name (`kit.world.inside.call`); the deciding process evaluates it and charges the rank's
virtual clock. So that work can neither be skipped nor moved to another moment, and what a service notes down about
its calls is seen from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kit.world.rank_state import RankState
from kit.world.trace import Event
from kit.world.tree import TreeError, decode, encode, read_tensors

if TYPE_CHECKING:
    from kit.world.run_loop import RunLoop

MAX_ARGUMENT_BYTES = 1 << 30
Service = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Charged:
    """What a service answers: a value, and what computing it costs in virtual time.

    what: F, B, I, W or another word (see `kit.world.inside.compute`).
    """

    value: Any
    seconds: float
    what: str = "compute"
    label: str = ""
    microbatch: int | None = None


def attach(loop: RunLoop, services: Mapping[str, Service]) -> None:
    """Let the ranks of this loop call `services[name](rank, *arguments)`.

    A service returns a tree, or a Charged tree. What it raises is raised in the rank: ValueError and
    NotImplementedError as themselves, everything else as RuntimeError.
    """

    def call(state: RankState, header: dict[str, Any], payload: bytearray) -> None:
        raw = bytearray(loop.board.data_of(state.rank, header, payload, _bounded(header["bytes"])))
        arguments = decode(header["value"], read_tensors(raw, header["tensors"]))
        answer: dict[str, Any] = {"id": header["id"]}
        service = services.get(header["service"])
        if service is None:
            error: Exception = ValueError(f"no service {header['service']!r}; there are: {', '.join(sorted(services))}")
            loop.reply(state.rank, {**answer, **_raised(error)}, (), ())
            return
        try:
            found = service(state.rank, *arguments)
            charged = found if isinstance(found, Charged) else Charged(found, 0.0)
            skeleton, tensors = encode(charged.value)
        except Exception as problem:
            loop.reply(state.rank, {**answer, **_raised(problem)}, (), ())
            return
        if isinstance(found, Charged):
            state.events.append(
                Event(
                    "compute",
                    seconds=charged.seconds,
                    what=charged.what,
                    label=charged.label,
                    microbatch=charged.microbatch,
                    site=str(header["site"])[:200],
                )
            )
        answer |= {"value": skeleton, "tensors": [descriptor for descriptor, _ in tensors]}
        loop.reply(state.rank, answer, [blob for _, blob in tensors], ())

    loop.board.attendants["call"] = call


def _bounded(nbytes: Any) -> int:
    if type(nbytes) is not int or not 0 <= nbytes <= MAX_ARGUMENT_BYTES:
        raise TreeError("arguments that are too large")
    return nbytes


def _raised(error: Exception) -> dict[str, str]:
    name = type(error).__name__
    if name in ("ValueError", "NotImplementedError", "RuntimeError"):
        return {"error": str(error), "type": name}
    return {"error": f"{name}: {error}", "type": "RuntimeError"}
