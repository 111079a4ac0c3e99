"""N ranks on one machine, watched: run a function on every rank, and know all that they said to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit.world.failure import Finding, WorldError
    from kit.world.services import Charged
    from kit.world.trace import Operation, Trace
    from kit.world.world import Result, World
    from kit.world.zygote import Zygote

_HOMES = {
    "Charged": "services",
    "Finding": "failure",
    "Operation": "trace",
    "Result": "world",
    "Trace": "trace",
    "World": "world",
    "WorldError": "failure",
    "Zygote": "zygote",
}
__all__ = ["Charged", "Finding", "Operation", "Result", "Trace", "World", "WorldError", "Zygote"]


def __getattr__(name: str) -> Any:
    """Loads a name when it is first asked for: importing this package does not import torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import warnings
    from importlib import import_module

    # torch says so once at import where numpy is missing; nothing here needs numpy.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
