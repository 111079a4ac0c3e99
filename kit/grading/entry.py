"""What a rank runs: load the checks and the solution by path, hold the interface, run the scenario's program.

What the question forbids refuses from before the solution is loaded.
"""

from __future__ import annotations

import marshal
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

# Brought in here so that they are loaded before sys.path is narrowed.
from kit.grading import comparison as _comparison
from kit.grading import diagnosis as _diagnosis
from kit.grading import memory as _memory
from kit.grading import on_rank as _on_rank
from kit.grading import scenario as _scenario
from kit.grading.forbidden import Refusals, look_around
from kit.grading.interface import parse_interface, require_interface
from kit.world import services as _services

SOLUTION_NAME = "_shardkit_solution"
CHECKS_NAME = "_shardkit_checks"
PROGRAM_NAME = "_shardkit_program"
_PRELOADED = (_comparison, _diagnosis, _memory, _on_rank, _scenario, _services)
look_around()


class _SourceLoader(SourceFileLoader):
    """Runs the file's text and never a cached .pyc beside it; or `code`, which is what that text compiles to."""

    code: CodeType | None = None

    def get_code(self, fullname: str) -> CodeType:
        return self.code or self.source_to_code(self.get_data(self.path), self.path)


def on_rank(job: dict[str, Any]) -> Any:
    """Entry of every rank.

    job: solution, checks (paths), checks_code (what the checks compile to), interface (lines), forbidden (names),
    program (name), inputs (tree).
    """
    narrow_path(job["solution"])
    checks = load_by_path(job["checks"], CHECKS_NAME, marshal.loads(job["checks_code"]))
    refusals = Refusals(job["solution"], answers=str(Path(job["checks"]).parent.parent.parent / "reference"))
    refusals.forbid(job["forbidden"])
    try:
        solution = load_by_path(job["solution"], SOLUTION_NAME)
        require_interface(parse_interface(job["interface"]), solution, os.path.basename(job["solution"]))
        return getattr(checks, job["program"])(solution, job["inputs"])
    finally:
        refusals.tell()  # also one that the solution swallowed, and before what came of it


def program_on_rank(path: str) -> None:
    """Entry of a rank that runs a program of the bank: the file from its first line to its last."""
    narrow_path(path)
    load_by_path(path, PROGRAM_NAME)


def compiled(path: Path) -> bytes:
    """What a file compiles to, for ranks, so that each need not do it."""
    return marshal.dumps(compile(path.read_bytes(), str(path), "exec", dont_inherit=True))


def load_by_path(path: str, name: str, code: CodeType | None = None) -> ModuleType:
    """A file as a module of that private name; sys.path has no part in it. code: what it compiles to, where known."""
    loader = _SourceLoader(name, path)
    loader.code = code
    spec = ModuleSpec(name, loader, origin=path)
    spec.has_location = True
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def narrow_path(solution: str) -> None:
    """Take the solution's folder and the one that the command ran in off sys.path: no `torch.py` beside it counts.

    The kit's own root stays, as the last entry.
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    hidden = {os.path.realpath(place) for place in (os.path.dirname(solution), os.getcwd(), root)}
    sys.path[:] = [place for place in sys.path if place and os.path.realpath(place) not in hidden]
    sys.path.append(root)
