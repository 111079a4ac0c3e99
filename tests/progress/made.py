"""Reviews made by hand, and code that runs in a process of its own."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from kit.progress.records import Review

START = datetime(2026, 3, 2, 9, 30, 0, 123456, tzinfo=timezone.utc)


def review(number: int = 0, question_id: str = "sums/which", **changes: Any) -> Review:
    """The n-th, asked n days after START, right and good unless told otherwise."""
    values: dict[str, Any] = {
        "id": f"review-{number:04}",
        "question_id": question_id,
        "kind": "choice",
        "topic": question_id.split("/")[0],
        "level": 2,
        "asked_at": START + timedelta(days=number),
        "verdict": "right",
        "score": 1.0,
        "rating": "good",
        "num_hints": 0,
        "seconds": 12.5,
        "confidence": None,
        "seed": 7,
        "mode": "quiz",
    }
    return Review(**{**values, **changes})


def forked(run: Callable[[Callable[[str], None]], None]) -> tuple[int, list[str]]:
    """Runs `run(say)` in a forked process. Returns (status of waitpid, lines that it said before it ended or died)."""
    return ended(start_forked(run))


def start_forked(run: Callable[[Callable[[str], None]], None]) -> tuple[int, int]:
    """(process id, file descriptor of what it says)"""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    code = 1
    try:
        os.close(reading)
        run(lambda line: void(os.write(writing, f"{line}\n".encode())))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def void(_: object) -> None:
    pass


def ended(started: tuple[int, int]) -> tuple[int, list[str]]:
    process, reading = started
    with open(reading, encoding="utf-8") as said:
        lines = said.read().splitlines()
    return os.waitpid(process, 0)[1], lines
