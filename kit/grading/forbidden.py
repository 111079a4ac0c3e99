"""What a question forbids: names of torch that refuse when the graded file itself calls or subclasses them.

torch goes on using them inside, and so do the checks. It is a rank that says so, hence advice: who wants to can go
around it, and the proof that is scored is what went over the network.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import SourceFileLoader
from types import FrameType, FunctionType, ModuleType
from typing import Any

from kit.bank.closest import closest

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: attributes of such a class can be set
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_PACKAGES = ("torch.distributed.", "torch.nn.", "torch.optim.")  # where a question's answers are to be found
# A decorator of torch's that only passes a call on.
_WRAPPER = os.path.join("torch", "utils", "_contextlib.py")


# By the id of a function: the namespaces of these packages that hold it, and under which name.
_holders: dict[int, list[tuple[dict[str, Any], str]]] = {}
_known: set[str] = set()


def look_around() -> None:
    """Note which module holds which function, for modules that are new.

    Done by the process that ranks are forked from: a rank that looked through all of torch would copy the memory that
    it shares with it.
    """
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith(_PACKAGES) and name not in _known and type(module) is ModuleType:
            _known.add(name)
            for key, value in list(vars(module).items()):
                if type(value) is FunctionType:
                    _holders.setdefault(id(value), []).append((vars(module), key))


class Refused(BaseException):
    """The graded file used what its question forbids.

    Not an Exception, so that a fallback under `except Exception` is none.
    """

    kit_kind = "refused"


def find(name: str) -> Any:
    """What a dotted name means. Raises LookupError, with the closest names, where it means nothing."""
    first, *rest = name.split(".")
    try:
        found: Any = importlib.import_module(first)
    except ImportError:
        raise LookupError(f"there is no module {first!r}") from None
    for index, part in enumerate(rest, 1):
        above = ".".join([first, *rest[: index - 1]])
        if not hasattr(found, part) and isinstance(found, ModuleType):
            with contextlib.suppress(ImportError):
                importlib.import_module(f"{above}.{part}")
        if not hasattr(found, part):
            below = [module.name for module in pkgutil.iter_modules(getattr(found, "__path__", ()))]
            near = closest(part, [*dir(found), *below], limit=1)
            raise LookupError(f"{above} has no {part!r}" + (f"; closest: {near[0]!r}" if near else ""))
        found = getattr(found, part)
    return found


def members(name: str) -> Iterator[tuple[str, Any, str]]:
    """(full name, owner, key) of what a dotted name forbids: itself, or everything public that a module offers."""
    found = find(name)
    if not isinstance(found, ModuleType):
        above, _, key = name.rpartition(".")
        yield name, find(above), key
        return
    for key, value in sorted(vars(found).items()):
        if not key.startswith("_") and _can_refuse(value) and _comes_from(value, found):
            yield f"{name}.{key}", found, key


def problem_of(name: str) -> str:
    """Why a question cannot forbid this name; empty where it can."""
    try:
        found = list(members(name))
    except LookupError as error:
        return str(error)
    if not found:
        return f"the module {name} offers nothing that could refuse"
    value = getattr(found[0][1], found[0][2])
    return "" if _can_refuse(value) else f"{name} is a {type(value).__name__} that cannot be made to refuse"


def _can_refuse(value: Any) -> bool:
    """A function, or a class that is not written in C."""
    return callable(value) and (not isinstance(value, type) or bool(value.__flags__ & _HEAP_TYPE))


def _comes_from(value: Any, module: ModuleType) -> bool:
    return f"{getattr(value, '__module__', '')}.".startswith(f"{module.__name__}.")


class Refusals:
    """The refusing of one rank, and what it has refused so far."""

    def __init__(self, solution: str, answers: str = "") -> None:
        """solution: path of the file to which it is forbidden. answers: a folder that it may not import from."""
        self._solution = solution
        self._answers = os.path.realpath(answers) if answers else ""
        self._first: Refused | None = None
        self._guarded: list[Any] = []  # kept, so that no id is given twice
        self._homes: dict[str, list[tuple[str, tuple[str, ...]]]] = {}

    def forbid(self, names: Sequence[str]) -> None:
        """From now on these refuse, in every module that holds them, and in those that are loaded again.

        What this torch does not have is left out: nobody can use it.
        """
        for name in names:
            try:
                found = list(members(name))
            except LookupError:
                continue
            for full_name, owner, key in found:
                if not _can_refuse(getattr(owner, key)):
                    continue
                self._remember_home(full_name, getattr(owner, key))
                self._guard(full_name, owner, key)
        if self._homes or self._answers:
            self._watch_imports()

    def tell(self) -> None:
        """Raise the first refusal, also where the solution swallowed it or went on in another thread."""
        if self._first is not None:
            raise self._first

    # -- guards -------------------------------------------------------------------------------------------

    def _guard(self, name: str, owner: Any, key: str) -> None:
        """Make `owner.key` refuse, and a function also wherever else it can be found."""
        value = inspect.getattr_static(owner, key, None) or getattr(owner, key)
        kind = type(value) if isinstance(value, (staticmethod, classmethod)) else None
        target = value.__func__ if kind is not None else value
        if any(target is known for known in self._guarded):
            return
        self._guarded.append(target)
        if isinstance(target, type):
            self._guard_class(name, target)
            return
        gate = self._gate(name, target)
        self._guarded.append(gate)
        setattr(owner, key, kind(gate) if kind is not None else gate)
        if isinstance(owner, ModuleType) and type(target) is FunctionType and id(target) not in _holders:
            look_around()  # torch was imported after the last look
        for namespace, other_key in _holders.get(id(target), ()):
            if namespace.get(other_key) is target:
                namespace[other_key] = gate

    def _gate(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def gate(*args: Any, **kwargs: Any) -> Any:
            self._refuse(name, sys._getframe(1))
            return function(*args, **kwargs)

        return gate

    def _guard_class(self, name: str, cls: Any) -> None:
        """In place, so that whoever has the class has the refusing one, and isinstance goes on working."""
        begin = cls.__init__
        inherits = "__init_subclass__" not in vars(cls)
        begin_subclass = None if inherits else vars(cls)["__init_subclass__"].__func__

        @functools.wraps(begin)
        def on_creation(instance: Any, /, *args: Any, **kwargs: Any) -> None:
            self._refuse(name, sys._getframe(1))
            if begin is not object.__init__:
                begin(instance, *args, **kwargs)

        def on_subclass(subclass: Any, /, **kwargs: Any) -> None:
            self._refuse(name, sys._getframe(1))
            if begin_subclass is None:
                super(cls, subclass).__init_subclass__(**kwargs)
            else:
                begin_subclass(subclass, **kwargs)

        cls.__init__ = on_creation
        cls.__init_subclass__ = classmethod(on_subclass)

    def _refuse(self, name: str, frame: FrameType | None) -> None:
        self._refuse_what(f"uses {name}, which this question asks you to write yourself", frame)

    def _refuse_answer(self, path: str, frame: FrameType | None) -> None:
        real = os.path.realpath(path)
        if self._answers and real.startswith(self._answers + os.sep) and real != os.path.realpath(self._solution):
            self._refuse_what(f"imports {os.path.relpath(real, os.path.dirname(self._answers))}, an answer", frame)

    def _refuse_what(self, what: str, frame: FrameType | None) -> None:
        while frame is not None and _passes_on(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None or not self._is_solution(frame):
            return
        is_of_file = frame.f_code.co_filename == self._solution
        site = os.path.basename(self._solution) + (f":{frame.f_lineno}" if is_of_file else "")
        refused = Refused(f"{site} {what}")
        self._first = self._first or refused
        raise refused

    def _is_solution(self, frame: FrameType) -> bool:
        """Code of the file, or code that it made from a text."""
        return self._solution in (frame.f_code.co_filename, frame.f_globals.get("__file__"))

    # -- modules that are loaded again ----------------------------------------------------------------------

    def _remember_home(self, name: str, value: Any) -> None:
        home = sys.modules.get(getattr(value, "__module__", None) or "")
        file = getattr(home, "__file__", None)
        if file:
            path = tuple(getattr(value, "__qualname__", "").split("."))
            self._homes.setdefault(file, []).append((name, path))

    def _watch_imports(self) -> None:
        loading: Any = SourceFileLoader
        load = loading.exec_module

        def exec_module(loader: SourceFileLoader, module: ModuleType) -> None:
            self._refuse_answer(loader.path, sys._getframe(1))
            load(loader, module)
            for name, path in self._homes.get(loader.path, ()):
                owner: Any = module
                for part in path[:-1]:
                    owner = getattr(owner, part, None)
                if hasattr(owner, path[-1]):
                    self._guard(name, owner, path[-1])

        loading.exec_module = exec_module


def _passes_on(filename: str) -> bool:
    """Whether a frame of that file only hands a call on: Python's own library, and a wrapper of torch's."""
    is_library = filename.startswith(_LIBRARY) and "site-packages" not in filename
    return is_library or filename.startswith("<frozen") or filename.endswith(_WRAPPER)
