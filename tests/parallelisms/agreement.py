"""Cases, and how what ranks return is compared: switchboard with gloo, and both with the unsharded run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

# Relative to the largest number of the tensor (at least 1). Sharding changes the order in which a few hundred terms
# are added, some 10 operations deep and over at most 4 steps: far under 1e4 roundings, and far above what is seen
# (1e-15). The mildest fault, a gradient scaled by 3/4 in one step, moves parameters by more than 1e-4.
EXACT = 1e4 * torch.finfo(torch.float64).eps


@dataclass(frozen=True, slots=True)
class Case:
    """One program and what it must return.

    function: a top-level function of a programs module; inputs[r] is what it is called with on rank r.
    expected[r]: what rank r must return, from the unsharded run.
    tolerance: how far both transports may be from the unsharded run, relative to the largest number.
    between: the same for the two transports; the unsharded run's tolerance may be coarse (half precision), this is not.
    traffic: given a rank, {operation, or operation and dtype: bytes that it must send in these}, where a closed form
    exists.
    """

    function: Callable[..., Any]
    inputs: Sequence[Any]
    expected: Sequence[Any]
    tolerance: float = EXACT
    between: float = EXACT
    traffic: Callable[[int], dict[str, float]] | None = None
    label: str = ""

    @property
    def name(self) -> str:
        return f"{self.function.__name__} {self.label}".strip()


def differences(seen: Any, expected: Any, tolerance: float, path: str = "") -> list[str]:
    """Every leaf at which two trees differ, in words."""
    if isinstance(expected, torch.Tensor) and isinstance(seen, torch.Tensor):
        if seen.shape != expected.shape or seen.dtype is not expected.dtype:
            return [f"{path}: {seen.dtype} {list(seen.shape)}, not {expected.dtype} {list(expected.shape)}"]
        if not seen.numel() or torch.equal(seen, expected):
            return []
        wide = torch.complex128 if expected.is_complex() else torch.float64
        seen, expected = seen.to(wide), expected.to(wide)
        apart = (seen - expected).abs().max().item()
        bound = tolerance * max(1.0, expected.abs().max().item())
        return [] if apart <= bound else [f"{path}: {apart:.3g} apart, at most {bound:.3g}"]
    if type(seen) is not type(expected):
        return [f"{path}: {type(seen).__name__} {seen!r:.80}, not {type(expected).__name__} {expected!r:.80}"]
    if isinstance(expected, dict):
        if seen.keys() != expected.keys():
            return [f"{path}: keys {list(seen)}, not {list(expected)}"]
        pairs = [(f"{path}[{key!r}]", seen[key], expected[key]) for key in expected]
    elif isinstance(expected, (list, tuple)):
        if len(seen) != len(expected):
            return [f"{path}: {len(seen)} entries, not {len(expected)}"]
        pairs = [(f"{path}[{i}]", one, other) for i, (one, other) in enumerate(zip(seen, expected, strict=True))]
    elif isinstance(expected, float):
        return differences(*(torch.tensor(value, dtype=torch.float64) for value in (seen, expected)), tolerance, path)
    else:
        return [] if seen == expected else [f"{path}: {seen!r}, not {expected!r}"]
    return [text for where, one, other in pairs for text in differences(one, other, tolerance, where)]
