"""Which function a rank runs: by reference (file, module, name), never as pickled code."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from kit.errors import KitError


def reference(function: Callable[..., Any]) -> dict[str, str]:
    """How another process finds a top-level function; KitError for anything else."""
    qualname = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", "")
    code = getattr(function, "__code__", None)
    if not callable(function) or not qualname or code is None:
        raise KitError(f"{function!r} is not a Python function", "pass a function defined with def")
    if "<locals>" in qualname or "<lambda>" in qualname:
        raise KitError(
            f"{qualname} is defined inside another function; every rank must be able to import it",
            "move it to the top level of its file and pass what it needs through `inputs`",
        )
    if "." in qualname:
        raise KitError(f"{qualname} belongs to a class", "pass a top-level function")
    file = getattr(sys.modules.get(module), "__file__", None) or code.co_filename
    if not os.path.isfile(file):
        raise KitError(f"{qualname} was not defined in a file ({file})", "put it into a file")
    return {"file": os.path.abspath(file), "module": module, "name": qualname}


def resolve(where: dict[str, str]) -> Callable[..., Any]:
    """The function in this process."""
    module = _module(where["module"], where["file"])
    function = module
    for part in where["name"].split("."):
        function = getattr(function, part)
    assert callable(function)
    return function


def _module(name: str, file: str) -> ModuleType:
    known = sys.modules.get(name)
    if known is not None and name != "__main__" and _same(getattr(known, "__file__", None), file):
        return known
    if name != "__main__":
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            spec = None
        if spec is not None and _same(spec.origin, file):
            return importlib.import_module(name)
    return load_file(file, "__kit_main__" if name == "__main__" else name)


def _same(one: str | None, other: str) -> bool:
    return one is not None and os.path.abspath(one) == os.path.abspath(other)


def load_file(file: str, name: str) -> ModuleType:
    """Run a file as the module `name`, from its path alone; sys.path is not touched."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
