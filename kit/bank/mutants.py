"""Wrong answers: small edits of a reference, applied as text."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from kit.bank.document import ContentError, Document, parse, read_text
from kit.bank.layout import Bank
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.bank.schema import Mutant


def load_mutants(bank: Bank, question_id: str) -> tuple[Mutant, ...]:
    """The question's mutants, each with edits that apply. Raises ContentError where one of them is wrong."""
    problems = mutant_problems(bank, question_id)
    if problems:
        raise problems[0]
    return read_mutants(bank, question_id)


def read_mutants(bank: Bank, question_id: str) -> tuple[Mutant, ...]:
    """The question's mutants, whether their edits apply or not. Raises ContentError where the file is wrong."""
    from kit.bank.schema import MutantFile
    from kit.bank.validation import validate

    document = load_mutant_document(bank, question_id)
    return validate(MutantFile, document, document.values).mutants


def mutant_problems(bank: Bank, question_id: str) -> list[ContentError]:
    """Everything that `load_mutants` might complain about, in the order of lines.

    Raises KitError where a file is missing.
    """
    from kit.bank.schema import MutantFile
    from kit.bank.validation import problems

    try:
        document = load_mutant_document(bank, question_id)
        found = problems(MutantFile, document, document.values)
        reference = read_reference(bank, question_id)
    except ContentError as error:
        return [error]
    if isinstance(found, list):
        return found
    wrong = []
    for index, mutant in enumerate(found.mutants):
        try:
            apply(mutant, reference)
        except KitError as error:
            wrong.append(document.error(["mutants", index], error.message))
    return wrong


def load_mutant_document(bank: Bank, question_id: str) -> Document:
    path = bank.mutants(question_id)
    shown = bank.shown(path)
    return parse(read_text(path, shown), shown)


def read_reference(bank: Bank, question_id: str) -> str:
    path = bank.reference(question_id)
    return read_text(path, bank.shown(path))


def find_mutant(mutants: tuple[Mutant, ...], name: str) -> Mutant:
    """The mutant of that name. Raises KitError with the closest names."""
    from kit.bank.closest import closest

    for mutant in mutants:
        if mutant.name == name:
            return mutant
    names = [mutant.name for mutant in mutants]
    near = closest(name, names) or closest(name, names, least=0.0)
    raise KitError(f"no mutant {name!r}; closest: {', '.join(near)}")


def apply(mutant: Mutant, reference: str) -> str:
    """The mutant's whole text: every `find` is replaced where it stands in the reference.

    Raises KitError where an edit does not apply, the result does not compile, or it is the same program.
    """
    mutated = replaced(mutant, reference)
    require_other_program(mutant.name, reference, mutated)
    return mutated


def replaced(mutant: Mutant, reference: str) -> str:
    """The mutant's text, whatever it is. All edits are looked up in the reference, so their order does not matter.

    Raises KitError where a `find` does not occur exactly once, or two edits overlap.
    """
    spans = []
    for index, edit in enumerate(mutant.edits):
        count = reference.count(edit.find)
        if count != 1:
            where = "does not occur in the reference" if count == 0 else f"occurs {count} times in the reference"
            raise KitError(f"mutant {mutant.name!r}: edits[{index}]: find {where}: {first_line(edit.find)}")
        start = reference.index(edit.find)
        spans.append((start, start + len(edit.find), edit.replace))
    spans.sort()
    for (_, end, _), (start, _, _) in pairwise(spans):
        if start < end:
            raise KitError(f"mutant {mutant.name!r}: two edits overlap: {first_line(reference[start:end])}")
    mutated = reference
    for start, end, replacement in reversed(spans):
        mutated = mutated[:start] + replacement + mutated[end:]
    return mutated


def require_other_program(name: str, reference: str, mutated: str) -> None:
    try:
        tree = compiled(mutated)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line} of the mutated file)" if line else ""
        raise KitError(f"mutant {name!r} does not compile: {getattr(error, 'msg', None) or error}{where}") from error
    try:
        is_same = ast.dump(tree) == dumped(reference)
    except SyntaxError as error:
        raise KitError(f"the reference does not compile: {error.msg} (line {error.lineno})") from error
    if is_same:
        raise KitError(f"mutant {name!r} is the reference's own program: its edits change nothing that runs")


@lru_cache(maxsize=4)
def dumped(reference: str) -> str:
    return ast.dump(ast.parse(reference))


def compiled(text: str) -> ast.Module:
    """The tree of a text that also passes the compiler's own checks, as `return` outside a function."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(text, "<mutant>", "exec", dont_inherit=True)
        return ast.parse(text)


def first_line(text: str) -> str:
    """The first line that says something, as it can be searched for."""
    line = next((line for line in text.splitlines() if line.strip()), text)
    return repr(line.strip())
