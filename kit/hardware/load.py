"""Profiles by name, or from a user's own YAML file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from kit.errors import KitError
from kit.hardware.profile import DTYPES, Profile, Tier

FOLDER = Path(__file__).resolve().parent / "profiles"
KEYS = (
    "note", "inside", "between", "ranks_per_node", "flops_per_s", "memory_bytes_per_s", "memory_bytes", "sources",
)  # fmt: skip
TIER_KEYS = ("latency_s", "bytes_per_s")


def names() -> tuple[str, ...]:
    """The profiles that come with the kit."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def profile(name_or_path: str | PathLike[str] | Profile) -> Profile:
    """A profile by its name, from a YAML file by its path, or as it is.

    What ends in .yaml or .yml, or holds a slash, is a path; the file's stem is then the profile's name.
    Raises KitError that says what is wrong, and where.
    """
    if isinstance(name_or_path, Profile):
        return name_or_path
    text = os.fspath(name_or_path)
    if isinstance(name_or_path, PathLike) or "/" in text or text.endswith((".yaml", ".yml")):
        return _read(Path(text), text)
    if text not in names():
        near = _closest(text, names())
        raise KitError(
            f"no hardware profile {text!r}{near}",
            f"profiles: {', '.join(names())}; a path to a YAML file of your own works too",
        )
    return _named(text)


@cache
def _named(name: str) -> Profile:
    path = FOLDER / f"{name}.yaml"
    return _read(path, path.name)


def _read(path: Path, shown: str) -> Profile:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KitError(f"{shown}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KitError(f"{shown}: not UTF-8 text") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise KitError(f"{shown}{line}: malformed YAML: {getattr(error, 'problem', None) or error}") from None
    return from_values(path.stem, values, shown)


def from_values(name: str, values: object, shown: str) -> Profile:
    """A profile from what its YAML file holds. Raises KitError; `shown` is how it names the file."""
    top = _mapping(values, shown, KEYS, optional=("note", "sources"))
    note, sources = top.get("note", ""), top.get("sources", {})
    if not isinstance(note, str):
        raise KitError(f"{shown}: note: expected a text, got {note!r}")
    known = {*KEYS, *(f"{tier}.{key}" for tier in ("inside", "between") for key in TIER_KEYS)}
    known |= {f"flops_per_s.{dtype}" for dtype in DTYPES}
    for key, text in _mapping(sources, f"{shown}: sources", sorted(known), optional=sorted(known)).items():
        if not isinstance(text, str):
            raise KitError(f"{shown}: sources.{key}: expected a text, got {text!r}")
    per_node = top["ranks_per_node"]
    if per_node is not None and (type(per_node) is not int or per_node < 1):
        raise KitError(
            f"{shown}: ranks_per_node: expected a whole number from 1, or null for one node of all ranks, "
            f"got {per_node!r}"
        )
    where = f"{shown}: flops_per_s"
    figures = _mapping(top["flops_per_s"], where, DTYPES, optional=[d for d in DTYPES if d != "float32"])
    flops = tuple((d, _number(figures[d], f"{where}.{d}", finite=True)) for d in DTYPES if d in figures)
    return Profile(
        name, note.strip(), _tier(top["inside"], f"{shown}: inside"), _tier(top["between"], f"{shown}: between"),
        per_node, flops,
        _number(top["memory_bytes_per_s"], f"{shown}: memory_bytes_per_s"),
        _number(top["memory_bytes"], f"{shown}: memory_bytes"),
        tuple((str(key), str(text).strip()) for key, text in sources.items()),
    )  # fmt: skip


def _tier(values: object, where: str) -> Tier:
    figures = _mapping(values, where, TIER_KEYS)
    return Tier(
        _number(figures["latency_s"], f"{where}.latency_s", zero=True, finite=True),
        _number(figures["bytes_per_s"], f"{where}.bytes_per_s"),
    )


def _mapping(values: object, where: str, keys: Any, optional: Any = ()) -> Mapping[str, Any]:
    if not isinstance(values, dict):
        raise KitError(f"{where}: expected a mapping of keys, got {values!r}"[:300])
    for key in values:
        if key not in keys:
            raise KitError(f"{where}: unknown key {key!r}{_closest(str(key), keys)}", f"keys: {', '.join(keys)}")
    for key in keys:
        if key not in values and key not in optional:
            raise KitError(f"{where}: the key {key!r} is missing")
    return values


def _number(value: object, where: str, *, zero: bool = False, finite: bool = False) -> float:
    """A float. `1e9` without a point is a text to YAML 1.1, and a number to everyone else."""
    number: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    elif isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = None
    if number is None or math.isnan(number) or number < 0 or (number == 0 and not zero):
        raise KitError(f"{where}: expected a number {'from 0' if zero else 'above 0'}, got {value!r}")
    if finite and math.isinf(number):
        raise KitError(f"{where}: expected a finite number, got {value!r}")
    return number


def _closest(word: str, known: Any) -> str:
    found = get_close_matches(word, list(known), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""
