"""Hold what a rank returned against what it should be, tensor by tensor.

The oracle works unsharded in float64; sharding reorders sums, so a right answer is off by a few units of
float64 rounding relative to the largest element of its tensor: about 1e-15. rtol = 1e-9 leaves room for
long sums and none for mistakes. A tensor that should be zero has no magnitude of its own: it is held
against rtol/1000 (1e-12) of the largest magnitude in the tree, so that small gradients cannot be answered
with zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from kit.grading.diagnosis import CheckFailed, Diagnosis, Number, named
from kit.grading.signatures import Signature, Wrong, explain, measured_ratio

_FLOOR = 1e-3  # of rtol, relative to the tree: what counts as zero
_EXCERPT = 3
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_MISSING = object()


@dataclass(frozen=True)
class _Leaf:
    """A numeric place of the tree: both values as tensors of one dtype and shape."""

    steps: tuple[Any, ...]
    got: torch.Tensor
    expected: torch.Tensor
    is_exact: bool
    kind: str
    eps: float

    @cached_property
    def magnitude(self) -> float:
        return _largest(self.expected)


@dataclass(frozen=True, slots=True)
class _Error:
    """How far a leaf is off, relative to its magnitude (infinite for NaN and beside a zero), and where."""

    leaf: _Leaf
    relative: float
    flat_index: int


class _Mismatch(Exception):
    """The trees cannot be held against each other: problem, place, sentence, both kinds."""

    def __init__(self, problem: str, steps: tuple[Any, ...], sentence: str, expected: str = "", got: str = "") -> None:
        super().__init__(sentence)
        self.problem, self.steps, self.sentence, self.expected, self.got = (
            problem, steps, sentence, expected, got,
        )  # fmt: skip


def compare(
    got: Any,
    expected: Any,
    *,
    what: str,
    rank: int | None,
    world_size: int | None = None,
    rtol: float = 1e-9,
    suspects: Mapping[str, Any] | None = None,
    where: str = "",
) -> None:
    """Raise CheckFailed unless `got` is `expected`: same names, dtypes, shapes, and values to rtol.

    Trees of dicts, lists, tuples, tensors, numbers, strings and None. The error of a tensor is relative to
    its largest expected magnitude; integers and booleans are exact; rtol=0 is exact everywhere. NaN and
    infinity pass only where they are expected. `suspects` maps what a wrong tree may be to that tree ("this
    rank's local gradient": ...); `where` says when ("after step 2").
    """
    __tracebackhide__ = True
    known = Diagnosis("", what=what, where=where, rank=rank, world_size=world_size)
    try:
        leaves = list(_pairs(got, expected, ()))
    except _Mismatch as mismatch:
        path = path_text(mismatch.steps)
        raise CheckFailed(
            replace(
                known,
                headline=f"{named(what, path)} {mismatch.sentence}",
                problem=mismatch.problem,
                path=path,
                expected_kind=mismatch.expected,
                got_kind=mismatch.got,
            )
        ) from None
    scale = max((leaf.magnitude for leaf in leaves if not leaf.is_exact), default=0.0)
    errors = [error for leaf in leaves if (error := _error(leaf, rtol, scale)) is not None]
    if errors:
        raise CheckFailed(_diagnose(errors, leaves, scale, rtol, suspects or {}, known))


# -- the two trees, side by side -----------------------------------------------------------------------------


def _pairs(got: Any, expected: Any, steps: tuple[Any, ...]) -> Iterator[_Leaf]:
    if isinstance(expected, Mapping):
        yield from _mapping_pairs(got, expected, steps)
    elif isinstance(expected, (list, tuple)):
        if type(got) not in (list, tuple):
            raise _Mismatch("type", steps, f"is {_kind(got)}, expected a {type(expected).__name__}")
        if len(got) != len(expected):
            raise _Mismatch("names", steps, f"has {len(got)} elements, expected {len(expected)}")
        for index, item in enumerate(expected):
            yield from _pairs(got[index], item, (*steps, index))
    elif isinstance(expected, torch.Tensor):
        yield _tensor_pair(got, expected.detach(), steps)
    elif isinstance(expected, (int, float)) and not isinstance(expected, bool):
        yield _number_pair(got, expected, steps)
    elif type(got) is not type(expected) or got != expected:
        raise _Mismatch("type", steps, f"is {_kind(got)}, expected {_kind(expected)}")


def _mapping_pairs(got: Any, expected: Mapping[Any, Any], steps: tuple[Any, ...]) -> Iterator[_Leaf]:
    if not isinstance(got, dict):
        raise _Mismatch("type", steps, f"is {_kind(got)}, expected a dict of {len(expected)}")
    missing = [key for key in expected if key not in got]
    extra = [key for key in got if key not in expected]
    if missing or extra:
        said = [f"lacks {_names(missing)}"] if missing else []
        said += [f"has {_names(extra)}, which was not asked for"] if extra else []
        raise _Mismatch("names", steps, " and ".join(said))
    for key, item in expected.items():
        yield from _pairs(got[key], item, (*steps, key))


def _tensor_pair(got: Any, expected: torch.Tensor, steps: tuple[Any, ...]) -> _Leaf:
    kind = _kind(expected)
    if type(got) not in _PLAIN or got.layout is not torch.strided or got.device.type != "cpu":
        raise _Mismatch("type", steps, f"is {_kind(got)}, expected {kind}", kind, _kind(got))
    got = got.detach()
    if got.shape != expected.shape:
        sentence = f"has shape {list(got.shape)}, expected {list(expected.shape)}"
        raise _Mismatch("shape", steps, sentence, kind, _kind(got))
    if got.dtype is not expected.dtype:
        sentence = f"has dtype {_dtype(got)}, expected {_dtype(expected)}: work in the dtype that is given"
        raise _Mismatch("dtype", steps, sentence, kind, _kind(got))
    is_inexact = expected.is_floating_point() or expected.is_complex()
    eps = torch.finfo(expected.dtype).eps if is_inexact else 0.0
    return _Leaf(steps, got, expected, not is_inexact, kind, eps)


def _number_pair(got: Any, expected: float, steps: tuple[Any, ...]) -> _Leaf:
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        raise _Mismatch("type", steps, f"is {_kind(got)}, expected the number {expected}")
    is_exact = isinstance(expected, int)
    if is_exact and got != expected:
        raise _Mismatch("values", steps, f"is {got}, expected {expected}")
    pair = (torch.tensor(float(value), dtype=torch.float64) for value in (got, expected))
    return _Leaf(steps, next(pair), next(pair), False, "", torch.finfo(torch.float64).eps)


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        name = "" if type(value) in _PLAIN else f"{type(value).__name__} of "
        return f"{name}{_dtype(value)} {list(value.shape)}"
    if value is None:
        return "None"
    if isinstance(value, (str, bytes, bool, int, float)):
        text = repr(value)
        return text if len(text) <= 40 else text[:37] + "..."
    return f"a {type(value).__name__}"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _names(keys: list[Any]) -> str:
    shown = ", ".join(str(key) for key in keys[:4])
    return shown if len(keys) <= 4 else f"{shown} and {len(keys) - 4} more"


def path_text(steps: tuple[Any, ...]) -> str:
    """("layers", "0.weight", 2) -> `layers.0.weight[2]`."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else str(step)
    return text


# -- values --------------------------------------------------------------------------------------------------


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers as float64, complex ones as pairs."""
    plain = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return plain.to(torch.float64)


def _largest(tensor: torch.Tensor) -> float:
    values = _real(tensor)
    if not values.numel():
        return 0.0
    largest = float(torch.linalg.vector_norm(values, math.inf))
    if math.isfinite(largest):
        return largest
    finite = values[values.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _error(leaf: _Leaf, rtol: float, scale: float) -> _Error | None:
    """None where the leaf holds."""
    if leaf.expected.numel() == 0:
        return None
    if leaf.is_exact:
        off = leaf.got != leaf.expected
        if not bool(off.any()):
            return None
        distance = (_real(leaf.got) - _real(leaf.expected)).abs().clamp_min(1e-9)
        return _worst(leaf, torch.where(off, distance, 0.0))
    got, expected = _real(leaf.got), _real(leaf.expected)
    allowed = max(rtol * leaf.magnitude, rtol * _FLOOR * scale)
    if float(torch.linalg.vector_norm(got - expected, math.inf)) <= allowed:  # not where a NaN or infinity is in it
        return None
    is_same = (got == expected) | (got.isnan() & expected.isnan())
    distance = torch.where(is_same, 0.0, (got - expected).abs()).nan_to_num(math.inf, math.inf)
    if not bool((distance > allowed).any()):
        return None
    if leaf.expected.is_complex():
        distance = distance.amax(-1)
    return _worst(leaf, distance)


def _worst(leaf: _Leaf, distance: torch.Tensor) -> _Error:
    place = int(distance.argmax())
    largest, magnitude = float(distance.flatten()[place]), leaf.magnitude
    return _Error(leaf, largest / magnitude if magnitude else math.inf, place)


def _diagnose(
    errors: list[_Error],
    leaves: list[_Leaf],
    scale: float,
    rtol: float,
    suspects: Mapping[str, Any],
    known: Diagnosis,
) -> Diagnosis:
    worst = max(errors, key=lambda error: error.relative)
    wrong = [_wrong(error.leaf, suspects) for error in errors]
    found = explain(wrong, known.world_size, rtol)
    is_wrong = {id(error.leaf) for error in errors}
    # A tensor that is zero and should be says nothing for or against "every".
    telling = [leaf for leaf in leaves if id(leaf) in is_wrong or leaf.magnitude > rtol * _FLOOR * scale]
    index, expected, got = _excerpt(worst)
    path = path_text(worst.leaf.steps)
    return replace(
        known,
        headline=_headline(known.what, path, len(errors), len(telling), found),
        problem="values",
        path=path,
        expected_kind=worst.leaf.kind,
        got_kind=worst.leaf.kind,
        index=index,
        expected=expected,
        got=got,
        max_relative_error=worst.relative,
        num_wrong=len(errors),
        num_compared=len(leaves),
        signature=found[0].name if len(found) == 1 else "",
        candidates=tuple(signature.relation for signature in found) if len(found) > 1 else (),
        ratio=measured_ratio(wrong, rtol),
    )


def _headline(what: str, path: str, num_wrong: int, num_telling: int, found: tuple[Signature, ...]) -> str:
    relation = found[0].relation if len(found) == 1 else "is wrong"
    if num_telling == 1:
        return f"{named(what, path)} {relation}"
    if num_wrong == num_telling:
        return f"every {what} {relation}"
    rest = num_telling - num_wrong
    if num_wrong == 1:
        return f"{named(what, path)} {relation}; the other {rest} hold{'s' * (rest == 1)}"
    return f"{num_wrong} of {num_telling} ({what}): each {relation}; the other {rest} hold{'s' * (rest == 1)}"


def _wrong(leaf: _Leaf, suspects: Mapping[str, Any]) -> Wrong:
    at_place = {label: _look_up(tree, leaf) for label, tree in suspects.items()}
    return Wrong(
        _real(leaf.got),
        _real(leaf.expected),
        leaf.eps,
        {label: value for label, value in at_place.items() if value is not None},
    )


def _look_up(tree: Any, leaf: _Leaf) -> torch.Tensor | None:
    """What a suspect holds at the leaf's place, if it has one of that shape."""
    for step in leaf.steps:
        if isinstance(tree, Mapping):
            tree = tree.get(step, _MISSING)
        elif isinstance(tree, (list, tuple)) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return None
    if isinstance(tree, (int, float)):
        tree = torch.tensor(float(tree), dtype=torch.float64)
    if not isinstance(tree, torch.Tensor) or tree.shape != leaf.expected.shape:
        return None
    return _real(tree.detach())


def _excerpt(error: _Error) -> tuple[tuple[int, ...], tuple[Number, ...], tuple[Number, ...]]:
    """(index of the first shown, expected, got): the worst element and neighbours along the last dim."""
    expected, got = error.leaf.expected, error.leaf.got
    if expected.dim() == 0:
        return (), (expected.item(),), (got.item(),)
    index = [int(i) for i in torch.unravel_index(torch.tensor(error.flat_index), expected.shape)]
    length = expected.shape[-1]
    start = max(0, min(index[-1], length - _EXCERPT))
    for step in index[:-1]:
        expected, got = expected[step], got[step]
    shown = slice(start, start + _EXCERPT)
    return (*index[:-1], start), tuple(expected[shown].tolist()), tuple(got[shown].tolist())
