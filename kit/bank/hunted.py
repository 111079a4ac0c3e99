"""A mutant as a candidate's file: nothing in it says where it is wrong but the code itself."""

from __future__ import annotations

import ast
import difflib
import io
import random
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from kit.bank.layout import Bank
from kit.bank.mutants import apply, find_mutant, first_line, read_mutants, read_reference, replaced
from kit.errors import KitError

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
    first: of those that an edit touches, to which the hints lead.
    function: the innermost one that holds one of these, the first that stands in any; else empty.
    """

    question_id: str
    mutant: Mutant
    text: str
    changes: tuple[Change, ...]
    lines: frozenset[int]
    first: int
    function: str

    @property
    def num_lines(self) -> int:
        return self.text.count("\n")

    @property
    def surroundings(self) -> tuple[int, int]:
        """First and last of a few lines that hold the first wrong one, which may stand anywhere among them."""
        start = self.first - random.Random(self.mutant.name).randrange(NEAR + 1)
        return max(start, 1), min(start + 2 * NEAR, self.num_lines)


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a wrong answer when it was run; of its first failure but for `symptoms`, which has all.

    ranks: those that the diagnosis names first; none where it speaks of no rank in particular.
    ratio: got / expected, where that is one number.
    """

    symptom: Symptom
    symptoms: frozenset[Symptom]
    world_size: int
    ranks: tuple[int, ...] = ()
    ratio: float | None = None


def hunted(bank: Bank, question_id: str, name: str | None, seed: int) -> Hunted:
    """The mutant of that name, or one that the seed draws. Raises KitError where there is none."""
    mutants = read_mutants(bank, question_id)  # that the others apply too is for `lint` to say
    mutant = random.Random(f"hunt {seed}").choice(mutants) if name is None else find_mutant(mutants, name)
    return as_candidate(question_id, mutant, read_reference(bank, question_id))


def as_candidate(question_id: str, mutant: Mutant, reference: str) -> Hunted:
    """Raises KitError where an edit does not apply, or what is `also_at` fault is no one line of the file."""
    head = f"# shardkit: {question_id}\n"
    docstrings = docstrings_in(reference)
    asides = mutant.model_copy(update={"edits": tuple(edit for edit in mutant.edits if edit.aside)})
    sources = apply(mutant, reference), reference, replaced(asides, reference)
    text, right, beside = (head + without_comments(each, docstrings) for each in sources)
    where = f"mutant {mutant.name!r}: also_at"
    also = (lines_with(what, text, f"{where}[{index}]") for index, what in enumerate(mutant.also_at))
    edited = whole_statements(text, wrong_lines(text, changes_between(text, beside)))
    lines = edited | whole_statements(text, set[int]().union(*also))
    functions = (function_at(text, line) for line in sorted(edited))
    function = next(filter(None, functions), "")
    return Hunted(question_id, mutant, text, tuple(changes_between(text, right)), lines, min(edited), function)


# -- what is left out -------------------------------------------------------------------------------------------------


def without_comments(source: str, docstrings: Mapping[str, str] | None = None) -> str:
    """The same program without comments; of the module's docstring, which explains the answer, the first line stays.

    docstrings: of the reference, by qualified name; they stand where they stand there, whatever the source says or
    leaves out, and there are no others. None lets all stay.
    """
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() or GONE
    tree = ast.parse(source)
    own = docstrings_in(source)
    for name, node in named_parts(tree):
        if not node.body or (not isinstance(node, ast.Module) and node.body[0].lineno == node.lineno):
            continue
        first = node.body[0]
        shown = (own if docstrings is None else docstrings).get(name)
        if not is_docstring(first):
            if shown is not None:
                row = first_line_of(first) - 1
                lines[row] = f"{' ' * first.col_offset}{shown}\n{lines[row]}"
            continue
        rows = slice(first.lineno - 1, first.end_lineno)
        if shown is None:
            shown = GONE if node.body[1:] else "pass"
        lines[rows] = [shown if shown == GONE else " " * first.col_offset + shown, *[GONE] * (len(lines[rows]) - 1)]
    text = "\n".join(line.rstrip() for line in lines if line != GONE) + "\n"
    return BLANK_LINES.sub("\n\n\n", text.lstrip("\n"))


def docstrings_in(source: str) -> dict[str, str]:
    """Qualified name -> the literal as it stands there; of the module's the first line alone."""
    tree = ast.parse(source)
    found = {}
    for name, node in named_parts(tree):
        if node.body and is_docstring(node.body[0]):
            literal = ast.get_source_segment(source, node.body[0]) or ""
            found[name] = short_docstring(node) if isinstance(node, ast.Module) else literal
    return found


def named_parts(tree: ast.Module) -> Iterator[tuple[str, Documented]]:
    """The module under an empty name, then every class and function: `CopyToRanks.forward`."""
    open_nodes: list[tuple[str, ast.AST]] = [("", tree)]
    while open_nodes:
        name, node = open_nodes.pop()
        if isinstance(node, Documented):
            yield name, node
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                open_nodes.append((f"{name}.{child.name}".lstrip("."), child))
            else:
                open_nodes.append((name, child))


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def short_docstring(module: Documented) -> str:
    """Its first line as a literal."""
    line = (ast.get_docstring(module) or "").partition("\n")[0]
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


def wrong_lines(text: str, changes: list[Change]) -> set[int]:
    """Changed lines, and both neighbours of what is missing."""
    lines = text.splitlines()
    solid = code_lines(text)
    found: set[int] = set()
    for change in changes:
        here = range(change.start, change.start + len(change.shown))
        touched = {number for number in here if lines[number - 1].strip()}
        if not touched:  # something is missing here
            before = [number for number in solid if number < change.start]
            after = [number for number in solid if number >= change.start]
            touched |= {*before[-1:], *after[:1]}
        found |= touched
    return found


def lines_with(what: str, text: str, where: str) -> range:
    """The lines that it stands in. Raises KitError unless it occurs exactly once."""
    count = text.count(what)
    if count != 1:
        times = f"occurs {count} times" if count else "does not occur"
        raise KitError(f"{where} {times} in the file that `hunt` shows: {first_line(what)}")
    start = text[: text.index(what)].count("\n") + 1
    return range(start, start + what.rstrip("\n").count("\n") + 1)


def whole_statements(text: str, numbers: set[int]) -> frozenset[int]:
    """These lines with the rest of their statements."""
    lines = text.splitlines()
    whole = [span for span in statement_lines(text) if numbers & set(span)]
    return frozenset(number for number in numbers.union(*whole) if lines[number - 1].strip())


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
