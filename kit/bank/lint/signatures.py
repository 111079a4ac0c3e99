"""What a Python file defines, read from its text: names and arguments, annotations aside."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """One line of an interface: `class Owner(arguments)`, `def name(arguments)` or `Owner.name(arguments)`.

    `path` is ("Owner", "__init__"), ("name",) or ("Owner", "name").
    """

    line: str
    path: tuple[str, ...]
    arguments: str

    @property
    def name(self) -> str:
        return ".".join(part for part in self.path if part != "__init__")


def read_interface(line: str) -> Asked:
    """Raises ValueError where the line is none of the three forms."""
    form, _, rest = line.strip().partition(" ")
    if form not in ("def", "class"):
        form, rest = "method", line.strip()
    name, bracket, arguments = rest.partition("(")
    parts = tuple(name.split("."))
    if not bracket or not all(part.isidentifier() for part in parts) or len(parts) != (2 if form == "method" else 1):
        raise ValueError(line)
    try:
        statement = ast.parse(f"def f({arguments}: pass").body[0]
    except SyntaxError:
        raise ValueError(line) from None
    if not isinstance(statement, ast.FunctionDef):
        raise ValueError(line)
    return Asked(line, (*parts, "__init__") if form == "class" else parts, bare(statement.args))


def bare(arguments: ast.arguments, *, is_bound: bool = False) -> str:
    """`self, module: nn.Module, k: int=2` -> `module, k=2`, the first argument left out with `is_bound`."""
    copy = ast.parse(f"def f({ast.unparse(arguments)}): pass").body[0]
    assert isinstance(copy, ast.FunctionDef)
    for argument in ast.walk(copy.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    text = ast.unparse(copy.args)
    return text.partition(",")[2].strip() if is_bound else text


@dataclass(frozen=True, slots=True)
class Defined:
    """`arguments` is None where only running the file could tell them."""

    line: int
    arguments: str | None


def find(tree: ast.Module, asked: Asked) -> Defined | None:
    """Where the file defines what is asked for; None where it does not, as far as reading can tell."""
    node = last_binding(tree.body, asked.path[0])
    if node is None:
        return None
    if len(asked.path) == 1:
        return Defined(node.lineno, bare(node.args) if isinstance(node, ast.FunctionDef) else None)
    return find_member(tree, node, asked.path[1])


def find_member(tree: ast.Module, node: ast.stmt, name: str, seen: Sequence[str] = ()) -> Defined | None:
    """A method of a class, its own or of a base class in the same file."""
    if not isinstance(node, ast.ClassDef):
        return Defined(node.lineno, None)
    member = last_binding(node.body, name)
    if isinstance(member, ast.FunctionDef) and not is_static(member):
        return Defined(member.lineno, bare(member.args, is_bound=True))
    if member is not None:
        return Defined(member.lineno, None)
    is_from_elsewhere = False
    for base in node.bases:
        own = last_binding(tree.body, base.id) if isinstance(base, ast.Name) else None
        if not isinstance(own, ast.ClassDef) or own.name in seen:
            is_from_elsewhere = True
        elif found := find_member(tree, own, name, [*seen, node.name]):
            return found
    if is_from_elsewhere and is_module(node) and name not in METHODS_OF_MODULE:
        return None
    if is_from_elsewhere or node.decorator_list or (name == "__init__" and not node.bases):
        return Defined(node.lineno, None if is_from_elsewhere or node.decorator_list else "")
    return None


METHODS_OF_MODULE = {
    "__init__",
    "eval",
    "load_state_dict",
    "named_parameters",
    "parameters",
    "state_dict",
    "to",
    "train",
    "zero_grad",
}


def is_module(node: ast.ClassDef) -> bool:
    """Whether torch.nn.Module is the only base that is not read here, so that its methods are known."""
    return all(ast.unparse(base).split(".")[-1] == "Module" for base in node.bases)


def is_static(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(each) in ("staticmethod", "classmethod") for each in function.decorator_list)


def last_binding(body: Sequence[ast.stmt], name: str) -> ast.stmt | None:
    """The last statement that gives `name` its value, also inside if and try."""
    return next((node for node in reversed(list(statements(body))) if name in names_bound(node)), None)


def names_bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return set()


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for part in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, part, []))


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, top-level package) of every import, wherever it stands; relative ones as "."."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, (node.module or ".").split(".")[0] if not node.level else "."
