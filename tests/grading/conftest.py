"""The toy bank, and one zygote for all grades of the session."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.bank.layout import Bank
from kit.grading.result import GradeResult
from kit.world import Zygote

collect_ignore = ["bank"]

TOY = Bank(Path(__file__).parent / "bank")
RIGHT = TOY.reference("toy/mean").read_text(encoding="utf-8")


@pytest.fixture
def toy() -> Bank:
    return TOY


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    with Zygote.execute(("kit.grading.entry",)) as running:
        yield running


@pytest.fixture
def grade_text(zygote: Zygote, tmp_path: Path) -> Callable[..., GradeResult]:
    """Grade a solution that is given as text, against toy/mean."""
    from kit.grading import grade

    def grade_it(text: str, **more: Any) -> GradeResult:
        file = tmp_path / "answer.py"
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return grade("toy/mean", file, bank=TOY, zygote=zygote, **{"seed": 7, **more})

    return grade_it
