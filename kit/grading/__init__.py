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
    from kit.grading.memory import claim_baseline as claim_baseline
    from kit.grading.memory import claim_persistent as claim_persistent
    from kit.grading.memory import mib as mib
    from kit.grading.on_rank import call as call
    from kit.grading.on_rank import compute as compute
    from kit.grading.on_rank import hold as hold
    from kit.grading.on_rank import mark as mark
    from kit.grading.scenario import Phase as Phase
    from kit.grading.scenario import Run as Run
    from kit.grading.scenario import Scenario as Scenario
    from kit.hardware import Tier as Tier
    from kit.hardware import profile as profile
    from kit.world import Charged as Charged

_HOMES = {
    "Charged": "kit.world.services",
    "CheckFailed": "diagnosis",
    "Diagnosis": "diagnosis",
    "Phase": "scenario",
    "Run": "scenario",
    "Scenario": "scenario",
    "Tier": "kit.hardware.profile",
    "call": "on_rank",
    "claim_baseline": "memory",
    "claim_persistent": "memory",
    "compare": "comparison",
    "compute": "on_rank",
    "fail": "diagnosis",
    "grade": "grader",
    "hold": "on_rank",
    "lint_bank": "lint",
    "mark": "on_rank",
    "mib": "memory",
    "profile": "kit.hardware.load",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kit.grading' has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(home if "." in home else f"kit.grading.{home}"), name)
    globals()[name] = value
    return value
