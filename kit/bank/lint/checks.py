"""The checks of a code question, read from their file without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPLETES = "completes"


@dataclass(frozen=True, slots=True)
class Check:
    """`proof` is what its decorator says: a proof, "completes", or empty where it has no such decorator."""

    name: str
    line: int
    title: str
    proof: str
    scenario: str


def read_checks(tree: ast.Module) -> list[Check]:
    """Every `test_*` function at the top level, in order."""
    return [
        read_check(node) for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def read_check(function: ast.FunctionDef) -> Check:
    title = (ast.get_docstring(function) or "").strip()
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if not isinstance(called, ast.Attribute):
            continue
        scenario = ast.unparse(called.value)
        if called.attr == COMPLETES:
            return Check(function.name, function.lineno, title, COMPLETES, scenario)
        if called.attr == "check" and isinstance(decorator, ast.Call) and decorator.args:
            proof = decorator.args[0]
            if isinstance(proof, ast.Constant) and isinstance(proof.value, str):
                return Check(function.name, function.lineno, title, proof.value, scenario)
    return Check(function.name, function.lineno, title, "", "")


def bare_asserts(tree: ast.Module) -> Iterator[int]:
    """Lines of asserts inside checks, whose message would not be a sentence for the learner."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield from (inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.Assert))
