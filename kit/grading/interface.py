"""What a question asks a file to define, and whether it does: read from its text, or from the loaded module."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

_DEFERRED_CALLS = {"exec", "eval", "globals", "setattr", "vars"}


class InterfaceError(Exception):
    """A solution lacks what the question asks for, or takes other arguments."""

    kit_kind = "interface"


@dataclass(frozen=True, slots=True)
class Parameter:
    """kind: "positional", "keyword", "args" (*args) or "kwargs" (**kwargs)."""

    name: str
    kind: str
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """One line of a question's interface. `owner` is the class of a method, else empty."""

    text: str
    kind: str  # "function" | "class" | "method"
    name: str
    owner: str
    parameters: tuple[Parameter, ...]


def parse_interface(lines: Sequence[str]) -> tuple[Asked, ...]:
    """`def f(tensor, group=None)`, `class C(module, *, bias=True)`, `C.method(x)`. ValueError for anything else."""
    return tuple(_parse(line) for line in lines)


def _parse(line: str) -> Asked:
    text = line.strip()
    kind, _, rest = text.partition(" ")
    if kind not in ("def", "class"):
        kind, rest = "method", text
    owner, dot, tail = rest.partition("(")[0].rpartition(".")
    try:
        statement = ast.parse(f"def {rest[len(owner) + len(dot) :].rstrip(':')}: pass").body[0]
    except SyntaxError:
        statement = ast.Pass()
    if not isinstance(statement, ast.FunctionDef) or (kind == "method") != bool(owner):
        raise ValueError(
            f"{line!r} is not an interface; write 'def f(x)', 'class C(x)' or 'C.method(x)', arguments included"
        )
    name = {"def": "function"}.get(kind, kind)
    return Asked(text, name, tail.strip(), owner.strip(), tuple(_of_arguments(statement.args)))


def _of_arguments(arguments: ast.arguments) -> Iterator[Parameter]:
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    for index, argument in enumerate(positional):
        yield Parameter(argument.arg, "positional", index >= first_default)
    if arguments.vararg:
        yield Parameter(arguments.vararg.arg, "args")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield Parameter(argument.arg, "keyword", default is not None)
    if arguments.kwarg:
        yield Parameter(arguments.kwarg.arg, "kwargs")


# -- whether arguments fit ----------------------------------------------------------------------------------


def misfit(asked: Sequence[Parameter], given: Sequence[Parameter]) -> str:
    """What keeps a caller of `asked` from calling `given`; empty when nothing does."""
    takes = {parameter.kind for parameter in given}
    named = {parameter.name: parameter for parameter in given if parameter.kind in ("positional", "keyword")}
    places = [parameter for parameter in given if parameter.kind == "positional"]
    wanted = [parameter for parameter in asked if parameter.kind == "positional"]
    for index, parameter in enumerate(wanted):
        if index >= len(places):
            if "args" not in takes or ("kwargs" not in takes and parameter.has_default):
                return f"it lacks the parameter {parameter.name!r}"
            continue
        there = places[index]
        if there.name != parameter.name:
            return f"its parameter {index + 1} is {there.name!r}, not {parameter.name!r}"
        if parameter.has_default and not there.has_default:
            return f"its parameter {parameter.name!r} needs a default"
    for parameter in asked:
        if parameter.kind == "keyword":
            found = named.get(parameter.name)
            if found is None and "kwargs" not in takes:
                return f"it lacks the parameter {parameter.name!r}"
            if found is not None and parameter.has_default and not found.has_default:
                return f"its parameter {parameter.name!r} needs a default"
        if parameter.kind == "kwargs" and "kwargs" not in takes:
            return f"it must take further keyword arguments (**{parameter.name})"
        if parameter.kind == "args" and "args" not in takes:
            return f"it must take further arguments (*{parameter.name})"
    known = {parameter.name for parameter in asked}
    for parameter in given:
        if parameter.kind in ("positional", "keyword") and not parameter.has_default and parameter.name not in known:
            return f"it asks for {parameter.name!r}, which nobody passes"
    return ""


def _sentence(where: str, asked: Asked, problem: str) -> str:
    called = f"{asked.owner}.{asked.name}" if asked.owner else asked.name
    return f"{where}: {called} does not fit `{asked.text}`: {problem}"


# -- read from the text -------------------------------------------------------------------------------------


def problem_in_text(asked: Sequence[Asked], tree: ast.Module, file: str) -> str:
    """The first thing that a file certainly lacks; empty where it fits or only running it can tell."""
    found = dict(_definitions(tree.body))
    if _is_unreadable(tree):
        return ""
    for one in asked:
        problem = _problem(one, found, file)
        if problem:
            return problem
    return ""


def _problem(asked: Asked, found: dict[str, ast.AST], file: str) -> str:
    top = asked.owner or asked.name
    node = found.get(top)
    if node is None:
        what = "class" if asked.kind in ("class", "method") else "function"
        near = difflib.get_close_matches(top, found, n=1)
        return f"{file} has no {what} {top!r}" + (f"; closest: {near[0]!r}" if near else "")
    if asked.kind == "function":
        if isinstance(node, ast.ClassDef):
            return f"{file}:{node.lineno}: {top!r} is a class; the question asks for a function"
        return _function_problem(asked, node, file, 0)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return f"{file}:{node.lineno}: {top!r} is a function; the question asks for a class"
    if not isinstance(node, ast.ClassDef) or node.decorator_list:
        return ""
    members = dict(_definitions(node.body))
    member = members.get("__init__" if asked.kind == "class" else asked.name)
    if member is None:
        if asked.kind == "method" and not node.bases and not node.keywords:
            return f"{file}:{node.lineno}: class {top!r} has no method {asked.name!r}"
        return ""
    return _function_problem(asked, member, file, 1)


def _function_problem(asked: Asked, node: ast.AST, file: str, num_bound: int) -> str:
    if isinstance(node, ast.AsyncFunctionDef):
        return f"{file}:{node.lineno}: {asked.name!r} is async; write a plain function"
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return ""
    given = list(_of_arguments(node.args))
    if num_bound and given and given[0].kind == "positional":
        given = given[num_bound:]
    problem = misfit(asked.parameters, given)
    return _sentence(f"{file}:{node.lineno}", asked, problem) if problem else ""


def _definitions(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Names that statements bind, also inside if, try and with; later ones win in a dict."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield (alias.asname or alias.name.split(".")[0]), node
        else:
            for child in ast.walk(node):
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                    yield child.id, node
            for name in ("body", "orelse", "finalbody"):
                yield from _definitions(getattr(node, name, []))
            for handler in getattr(node, "handlers", []):
                yield from _definitions(handler.body)


def _is_unreadable(tree: ast.Module) -> bool:
    """Whether names may come from where a reader cannot see them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _DEFERRED_CALLS:
            return True
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__" and node in tree.body:
            return True
    return False


# -- asked of the loaded module -----------------------------------------------------------------------------


def require_interface(asked: Sequence[Asked], module: ModuleType, file: str) -> None:
    """Raise InterfaceError for the first thing that the module lacks."""
    for one in asked:
        top = getattr(module, one.owner or one.name, None)
        if top is None:
            what = "class" if one.kind in ("class", "method") else "function"
            raise InterfaceError(f"{file} has no {what} {one.owner or one.name!r}")
        if one.kind in ("class", "method") and not isinstance(top, type):
            raise InterfaceError(f"{file}: {one.owner or one.name!r} is not a class")
        target = getattr(top, one.name, None) if one.kind == "method" else top
        if not callable(target) or getattr(target, "__name__", "") == "_forward_unimplemented":
            what = f"class {one.owner!r} has no method" if one.kind == "method" else "nothing to call under"
            raise InterfaceError(f"{file}: {what} {one.name!r}")
        is_bound = one.kind == "method" and not _is_static(top, one.name)
        given = _of_callable(target, drops_self=is_bound)
        problem = misfit(one.parameters, given) if given is not None else ""
        if problem:
            raise InterfaceError(_sentence(file, one, problem))


def _is_static(owner: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(owner, name), (staticmethod, classmethod))


def _of_callable(target: Callable[..., Any], *, drops_self: bool) -> list[Parameter] | None:
    """Its parameters, without self; None where Python cannot tell."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return None
    kinds: dict[Any, str] = {
        inspect.Parameter.VAR_POSITIONAL: "args",
        inspect.Parameter.VAR_KEYWORD: "kwargs",
        inspect.Parameter.KEYWORD_ONLY: "keyword",
    }
    given = [
        Parameter(one.name, kinds.get(one.kind, "positional"), one.default is not one.empty)
        for one in signature.parameters.values()
    ]
    return given[1:] if drops_self and given and given[0].kind == "positional" else given
