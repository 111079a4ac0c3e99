"""Which line of the program issued an operation. Advisory: it is the rank that says it."""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType

import torch

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_KIT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_BANK = _KIT + "_bank" + os.sep  # an installed bank: references live there, and they are programs
# The doors of torch.distributed: a caller of these is who used a collective.
_DOORS = tuple(
    _TORCH + os.path.join("distributed", name)
    for name in ("distributed_c10d.py", "c10d_logger.py", "_functional_collectives.py")
)
_STDLIB = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_WRAPPERS = os.sep + "typing_extensions.py"  # torch deprecates through it
_PASSED_OVER = ("<frozen", "<string>", "<@beartype", "<eval_with_key")


@functools.lru_cache(maxsize=512)  # asked for every frame of every operation
def is_program(filename: str) -> bool:
    """Whether a frame of that file belongs to the program that runs, not to torch, Python or this kit."""
    if filename.startswith((_TORCH, *_PASSED_OVER)) or os.sep not in filename or filename.endswith(_WRAPPERS):
        return False
    if filename.startswith(_KIT):
        return filename.startswith(_BANK)
    return not filename.startswith(_STDLIB) or "site-packages" in filename


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
