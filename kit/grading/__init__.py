"""Grading: the vocabulary of checks, the pytest plugin, and the commands `grade` and `lint`.

Importing this package imports neither torch nor pytest; each name brings what it needs when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit.grading.comparison import compare as compare
    from kit.grading.diagnosis import CheckFailed as CheckFailed
    from kit.grading.diagnosis import Diagnosis as Diagnosis
    from kit.grading.diagnosis import fail as fail
    from kit.grading.grader import grade as grade
    from kit.grading.lint import lint_bank as lint_bank
    from kit.grading.scenario import Run as Run
    from kit.grading.scenario import Scenario as Scenario

_HOMES = {
    "CheckFailed": "diagnosis",
    "Diagnosis": "diagnosis",
    "Run": "scenario",
    "Scenario": "scenario",
    "compare": "comparison",
    "fail": "diagnosis",
    "grade": "grader",
    "lint_bank": "lint",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kit.grading' has no attribute {name!r}")
    value = getattr(import_module(f"kit.grading.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
