"""Where a calculation goes: to the screen, into a file, to standard output."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kit.costmodel.breakdown import Calculation

SCHEMA = 1


def tell(it: Calculation, target: Path | None, lang: str | None) -> None:
    """To the screen, into a file, or as JSON alone to standard output."""
    from kit.cli.language import chosen_language
    from kit.screen.calc import show_calculation
    from kit.screen.page import Page

    language = chosen_language(lang)
    if target is not None:
        text = json.dumps({"schema": SCHEMA, **it.to_json()}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if str(target) == "-":
            sys.stdout.write(text)
            return
        from kit.grading.report import require_writable, write

        require_writable(target)
        write(target, text)
    show_calculation(Page(language), it)
