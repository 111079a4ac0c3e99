"""Which line of the program issued an operation. Advisory: it is the rank that says it."""

from __future__ import annotations

import os
import sys
from types import FrameType

import torch

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_KIT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The doors of torch.distributed: a caller of these is who used a collective.
_DOORS = tuple(
    _TORCH + os.path.join("distributed", name)
    for name in ("distributed_c10d.py", "c10d_logger.py", "_functional_collectives.py")
)
_PASSED_OVER = ("<frozen", "<string>", "<@beartype", "<eval_with_key")


def is_program(filename: str) -> bool:
    """Whether a frame of that file belongs to the program that runs, not to torch, Python or this kit."""
    return not filename.startswith((_TORCH, _KIT, *_PASSED_OVER)) and os.sep in filename


def call_site() -> tuple[str, bool]:
    """("solution.py:41", whether the program itself called torch.distributed rather than torch on its behalf)."""
    frame: FrameType | None = sys._getframe(1)
    by_program: bool | None = None
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_program(filename):
            return f"{os.path.basename(filename)}:{frame.f_lineno}", by_program is not False
        if by_program is None and filename.startswith(_TORCH) and filename not in _DOORS:
            by_program = False
        frame = frame.f_back
    return "", False
