"""Build hook: ship the bank inside the wheel."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BankInWheel(BuildHookInterface):  # type: ignore[type-arg]
    """Copy questions/ and reference/ to kit/_bank/ in a wheel; an editable install needs no copy."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        for folder in ("questions", "reference"):
            build_data["force_include"][folder] = f"kit/_bank/{folder}"
