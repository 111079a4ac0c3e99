"""Which mistake explains a wrong tree: N times, 1/N, a suspect's values, a float32 scratch buffer, ...

A mistake is named only where it explains every wrong tensor, to the tolerance of the comparison itself, and
where no other one does as well. Right tensors are left out of it: "2 of 6 are N times the expected" counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

_SHARPEST = 1e-9
_NARROW = {
    "float32": (torch.float32, 2.0**-17),
    "bfloat16": (torch.bfloat16, 2.0**-5),
    "float16": (torch.float16, 2.0**-8),
}
_MIN_NOISY_ELEMENTS = 8
_ENOUGH = 3  # numbers with one factor that are no accident


@dataclass(frozen=True, slots=True)
class Wrong:
    """One tensor that does not hold, as float64, with what the suspects hold at the same place."""

    got: torch.Tensor
    expected: torch.Tensor
    eps: float
    suspects: Mapping[str, torch.Tensor]

    @property
    def magnitude(self) -> float:
        return _largest(self.expected)


@dataclass(frozen=True, slots=True)
class Signature:
    """name is short ("N x"); relation completes "every gradient ..."."""

    name: str
    relation: str


def explain(wrong: Sequence[Wrong], world_size: int | None, rtol: float) -> tuple[Signature, ...]:
    """The mistakes that explain all of these tensors: none, one, or several that cannot be told apart."""
    if not wrong:
        return ()
    fact = _fact(wrong)
    if fact is not None:
        return (fact,)
    if any(not _finite(leaf) for leaf in wrong):
        return ()
    named = [*_scalings(wrong, world_size, rtol), *_suspects(wrong, rtol)]
    if named:
        return tuple(named)
    for look in (_constant_ratio, _reordered, _rounded):
        found = look(wrong, rtol)
        if found is not None:
            return (found,)
    return ()


def _fact(wrong: Sequence[Wrong]) -> Signature | None:
    """What can be seen in what came, whatever caused it."""
    if all(leaf.got.numel() and bool(leaf.got.isnan().all()) for leaf in wrong):
        return Signature("NaN", "is NaN everywhere")
    if all(leaf.got.numel() and not bool(leaf.got.any()) for leaf in wrong):
        return Signature("zero", "is zero")
    return None


def _finite(leaf: Wrong) -> bool:
    return bool(leaf.got.isfinite().all()) and bool(leaf.expected.isfinite().all())


def _largest(tensor: torch.Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0


def _sharpness(leaf: Wrong, rtol: float) -> float:
    """How closely a candidate must match: as closely as a right answer must, never below rounding."""
    return max(rtol, _SHARPEST, 64 * leaf.eps) if leaf.eps else max(rtol, _SHARPEST)


def _matches(leaf: Wrong, candidate: torch.Tensor, rtol: float) -> bool:
    size = _largest(candidate)
    return size > 0 and _largest(leaf.got - candidate) <= _sharpness(leaf, rtol) * size


def _scalings(wrong: Sequence[Wrong], world_size: int | None, rtol: float) -> list[Signature]:
    factors = {"-1 x": (-1.0, "has the wrong sign")}
    if world_size is not None and world_size > 1:
        n, root = float(world_size), math.sqrt(world_size)
        factors |= {
            "N x": (n, f"{_times(n)}: summed over ranks, not averaged"),
            "1/N x": (1 / n, f"{_times(1 / n)}: averaged twice (divided by the world size once too often)"),
            "sqrt(N) x": (root, f"{_times(root)}: sqrt(world_size) times too large"),
            "1/sqrt(N) x": (1 / root, f"{_times(1 / root)}: sqrt(world_size) times too small"),
        }
    return [
        Signature(name, relation)
        for name, (factor, relation) in factors.items()
        if all(leaf.magnitude > 0 and _matches(leaf, factor * leaf.expected, rtol) for leaf in wrong)
    ]


def _times(factor: float) -> str:
    return f"is {factor:.3f}x the expected one"


def _suspects(wrong: Sequence[Wrong], rtol: float) -> list[Signature]:
    return [
        Signature(label, f"equals {label}")
        for label in wrong[0].suspects
        if all(label in leaf.suspects and _equals_suspect(leaf, leaf.suspects[label], rtol) for leaf in wrong)
        and any(_stands_apart(leaf, leaf.suspects[label], rtol) for leaf in wrong)
    ]


def _equals_suspect(leaf: Wrong, suspect: torch.Tensor, rtol: float) -> bool:
    if suspect.shape != leaf.got.shape or not bool(suspect.isfinite().all()):
        return False
    size = max(_largest(suspect), leaf.magnitude)
    return _largest(leaf.got - suspect) <= _sharpness(leaf, rtol) * size


def _stands_apart(leaf: Wrong, suspect: torch.Tensor, rtol: float) -> bool:
    size = max(_largest(suspect), leaf.magnitude)
    return _largest(suspect - leaf.expected) > 10 * _sharpness(leaf, rtol) * size


def measured_ratio(wrong: Sequence[Wrong], rtol: float) -> float | None:
    """got / expected where that is one factor for all elements of all tensors, whatever mistake explains it.

    One or two numbers have such a factor by accident; there it has to be a whole number or one over it.
    """
    if not wrong or any(leaf.magnitude == 0 or not _finite(leaf) for leaf in wrong):
        return None
    if not any(bool(leaf.got.any()) for leaf in wrong):
        return 0.0
    ratio = _one_ratio(wrong, rtol)
    if ratio is None or _num_telling(wrong) >= _ENOUGH:
        return ratio
    larger = max(abs(ratio), 1 / abs(ratio))
    apart = max(_sharpness(leaf, rtol) for leaf in wrong)
    return ratio if abs(larger - round(larger)) <= 4 * apart * larger else None


def _constant_ratio(wrong: Sequence[Wrong], rtol: float) -> Signature | None:
    """One factor for all elements of all tensors, where there are enough of them to rule out an accident."""
    if _num_telling(wrong) < _ENOUGH or any(leaf.magnitude == 0 for leaf in wrong):
        return None
    ratio = _one_ratio(wrong, rtol)
    return Signature("constant ratio", f"is {ratio:.4g}x the expected one") if ratio is not None else None


def _num_telling(wrong: Sequence[Wrong]) -> int:
    return sum(int(leaf.expected.count_nonzero()) for leaf in wrong)


def _one_ratio(wrong: Sequence[Wrong], rtol: float) -> float | None:
    largest = max(wrong, key=lambda leaf: leaf.magnitude)
    place = int(largest.expected.abs().argmax())
    ratio = float(largest.got.flatten()[place]) / float(largest.expected.flatten()[place])
    apart = 10 * max(_sharpness(leaf, rtol) for leaf in wrong)
    if not math.isfinite(ratio) or abs(ratio) < 1e-6 or abs(ratio - 1) < max(apart, 1e-4):
        return None
    return ratio if all(_matches(leaf, ratio * leaf.expected, rtol) for leaf in wrong) else None


def _reordered(wrong: Sequence[Wrong], rtol: float) -> Signature | None:
    """The same values at other places, where each tensor holds enough different ones to be no accident."""
    for leaf in wrong:
        expected, got = leaf.expected.flatten().sort().values, leaf.got.flatten().sort().values
        if len(expected) < 3 or leaf.magnitude == 0:
            return None
        if _largest(got - expected) > _sharpness(leaf, rtol) * leaf.magnitude:
            return None
        if int((expected.diff() > 10 * _sharpness(leaf, rtol) * leaf.magnitude).sum()) < 2:
            return None
    return Signature("reordered", "holds the right values in another order")


def _rounded(wrong: Sequence[Wrong], _rtol: float) -> Signature | None:
    """Values that went through a narrower dtype than the one they came in."""
    if any(leaf.magnitude == 0 for leaf in wrong):
        return None
    error = max(_largest(leaf.got - leaf.expected) / leaf.magnitude for leaf in wrong)
    for name, (dtype, most) in _NARROW.items():
        eps = torch.finfo(dtype).eps
        if error > most or any(leaf.eps >= eps for leaf in wrong):
            continue
        if all(_fits(leaf, dtype) for leaf in wrong) or (name == "float32" and _is_float32_noise(wrong)):
            return Signature(
                f"{name} scratch", f"is off by {name} rounding ({error:.1e}): it went through a {name} buffer"
            )
    return None


def _fits(leaf: Wrong, dtype: torch.dtype) -> bool:
    """Every value that came is one of the narrow dtype, and the expected ones are not."""
    return _is_narrow(leaf.got, dtype) and not _is_narrow(leaf.expected, dtype)


def _is_narrow(values: torch.Tensor, dtype: torch.dtype) -> bool:
    return bool((values.to(dtype).double() == values).all())


def _is_float32_noise(wrong: Sequence[Wrong]) -> bool:
    """Errors of float32's size on both sides of the right values: rounding, not a systematic deviation."""
    deviations = []
    for leaf in wrong:
        error = leaf.got - leaf.expected
        if _largest(error) < 2.0**-34 * leaf.magnitude:
            return False
        away = (error * leaf.expected.sign())[error.abs() > 2.0**-40 * leaf.magnitude]
        deviations.append(away.flatten())
    pooled = torch.cat(deviations)
    if len(pooled) < _MIN_NOISY_ELEMENTS:
        return False
    larger = float((pooled > 0).double().mean())
    return 0.15 <= larger <= 0.85
