"""A mutant as a candidate's file: nothing in it says where it is wrong but the code itself."""

from __future__ import annotations

import ast
import difflib
import io
import random
import re
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from kit.bank.layout import Bank
from kit.bank.mutants import apply, find_mutant, read_mutants, read_reference

if TYPE_CHECKING:
    from kit.bank.schema import Mutant

Symptom = Literal["hang", "crash", "race", "refused", "values", "traffic", "memory", "time", "discipline"]
SYMPTOMS: tuple[Symptom, ...] = get_args(Symptom)

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

GONE = "\0"  # a line that goes altogether
BLANK_LINES = re.compile(r"\n{4,}")
NEAR = 6  # lines around a wrong one that the last hint names
CODE_TOKENS = frozenset({tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING})


@dataclass(frozen=True, slots=True)
class Change:
    """Lines of the candidate's file, and what stands in the reference instead; either may be empty.

    start: the first of `shown`, from 1; where nothing is shown, the line before which `right` is missing.
    """

    start: int
    shown: tuple[str, ...]
    right: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hunted:
    """A wrong answer to `question_id`. `text` is the whole file, its first line names the question.

    lines: every line of it that is a right answer to "which line is wrong?".
    function: the innermost one that holds the first of them that stands in any; else empty.
    """

    question_id: str
    mutant: Mutant
    text: str
    changes: tuple[Change, ...]
    lines: frozenset[int]
    function: str

    @property
    def num_lines(self) -> int:
        return self.text.count("\n")

    @property
    def surroundings(self) -> tuple[int, int]:
        """First and last of a few lines that hold the first wrong one, which may stand anywhere among them."""
        first = min(self.lines)
        shift = random.Random(self.mutant.name).randrange(NEAR + 1)
        return max(first - shift, 1), min(first - shift + 2 * NEAR, self.num_lines)


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a wrong answer when it was run; of its first failure but for `symptoms`, which has all.

    ranks: those that the diagnosis names first; none where it speaks of no rank in particular.
    ratios: got / expected, where that is one number; several where they cannot be told apart.
    """

    symptom: Symptom
    symptoms: frozenset[Symptom]
    world_size: int
    ranks: tuple[int, ...] = ()
    ratios: tuple[float, ...] = ()


def hunted(bank: Bank, question_id: str, name: str | None, seed: int) -> Hunted:
    """The mutant of that name, or one that the seed draws. Raises KitError where there is none."""
    mutants = read_mutants(bank, question_id)  # that the others apply too is for `lint` to say
    mutant = random.Random(f"hunt {seed}").choice(mutants) if name is None else find_mutant(mutants, name)
    return as_candidate(question_id, mutant, read_reference(bank, question_id))


def as_candidate(question_id: str, mutant: Mutant, reference: str) -> Hunted:
    head = f"# shardkit: {question_id}\n"
    known = frozenset(map(docstring_of, documented(ast.parse(reference))))
    right, text = (head + without_comments(each, known) for each in (reference, apply(mutant, reference)))
    changes = tuple(changes_between(text, right))
    lines = wrong_lines(text, changes)
    functions = (function_at(text, line) for line in sorted(lines))
    return Hunted(question_id, mutant, text, changes, lines, next(filter(None, functions), ""))


# -- what is left out -------------------------------------------------------------------------------------------------


def without_comments(source: str, known: frozenset[str] | None = None) -> str:
    """The same program without comments; of the module's docstring, which explains the answer, the first line stays.

    known: docstrings that say nothing of a mistake; others go, and None lets all stay.
    """
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() or GONE
    tree = ast.parse(source)
    for node in documented(tree):
        first, rows = node.body[0], slice(node.body[0].lineno - 1, node.body[0].end_lineno)
        others = [GONE] * (len(lines[rows]) - 1)
        if isinstance(node, ast.Module):
            lines[rows] = [short_docstring(node), *others]
        elif known is not None and docstring_of(node) not in known:
            lines[rows] = [GONE if node.body[1:] else " " * first.col_offset + "pass", *others]
    text = "\n".join(line.rstrip() for line in lines if line != GONE) + "\n"
    return BLANK_LINES.sub("\n\n\n", text.lstrip("\n"))


def documented(tree: ast.Module) -> list[Documented]:
    """What has a docstring in `tree`."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(tree) if isinstance(node, kinds) and node.body and is_docstring(node.body[0])]


def docstring_of(node: Documented) -> str:
    return ast.get_docstring(node) or ""


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def short_docstring(module: Documented) -> str:
    """Its first line as a literal."""
    line = docstring_of(module).partition("\n")[0]
    return f'"""{line}"""' if '"' not in line and "\\" not in line else repr(line)


# -- what is wrong ----------------------------------------------------------------------------------------------------


def changes_between(text: str, right: str) -> list[Change]:
    """Where `text` departs from `right`, as few lines as can be; blank lines say nothing."""
    got, expected = text.splitlines(), right.splitlines()
    changes = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, got, expected, autojunk=False).get_opcodes():
        if tag != "equal" and any(line.strip() for line in (*got[a:b], *expected[c:d])):
            changes.append(Change(a + 1, tuple(got[a:b]), tuple(expected[c:d])))
    return changes


def wrong_lines(text: str, changes: tuple[Change, ...]) -> frozenset[int]:
    """Changed lines with the rest of their statements, and both neighbours of what is missing."""
    lines = text.splitlines()
    solid = code_lines(text)
    found: set[int] = set()
    for change in changes:
        here = range(change.start, change.start + len(change.shown))
        touched = {number for number in here if lines[number - 1].strip()}
        if len(change.shown) < len(change.right):  # something is missing after what is shown, if not in its place
            before = [number for number in solid if number < change.start + len(change.shown)]
            after = [number for number in solid if number >= change.start + len(change.shown)]
            touched |= {*before[-1:], *after[:1]}
        found |= touched
    whole = [span for span in statement_lines(text) if found & set(span)]
    return frozenset(number for number in found.union(*whole) if lines[number - 1].strip())


def code_lines(text: str) -> list[int]:
    """Numbers of lines that hold code, in order; of a text over several lines its first and its last."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    rows = {row for token in tokens if token.type in CODE_TOKENS for row in (token.start[0], token.end[0])}
    return sorted(rows)


def statement_lines(text: str) -> list[range]:
    """The lines of each statement, of one with a body those of its head; docstrings are none."""
    spans = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and not is_docstring(node):
            body = getattr(node, "body", None)
            end = node.end_lineno or node.lineno
            if body:
                end = max(node.lineno, min(end, first_line_of(body[0]) - 1))
            spans.append(range(node.lineno, end + 1))
    return spans


def first_line_of(node: ast.stmt) -> int:
    """Decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def function_at(text: str, line: int) -> str:
    """`DDPBucketed.forward`: the innermost function or class around that line."""
    names = []
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    for node in sorted(nodes, key=lambda node: node.lineno):
        if first_line_of(node) <= line <= (node.end_lineno or node.lineno):
            names.append(node.name)
    return ".".join(names)
