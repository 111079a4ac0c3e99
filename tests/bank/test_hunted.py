"""A mutant as a candidate's file: the same wrong program, whose wrong lines are known, and nothing that tells them."""

from __future__ import annotations

import ast
import io
import tokenize
from functools import cache

import pytest

from kit.bank.hunted import Hunted, as_candidate, hunted, without_comments
from kit.bank.layout import find_bank
from kit.bank.mutants import load_mutants, read_reference, replaced
from kit.bank.schema import Edit, Mutant, Text
from kit.errors import KitError

BANK = find_bank()
HUNTABLE = [name for name in BANK.ids() if BANK.mutants(name).is_file()]

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

REFERENCE = '''\
"""Adds.

It explains the answer. # no comment
"""

# A comment of its own.
import torch


def add(tensor, other):
    """Adds `other`.  # kept"""
    # Where a mistake could be.
    tensor.add_(
        other,
        alpha=1,  # once
    )
    name = "# no comment"
    for part in tensor:  # each
        part.mul_(2)
        part.add_(1)
    return tensor, name
'''


def made(
    *edits: tuple[str, str],
    reference: str = REFERENCE,
    asides: tuple[tuple[str, str], ...] = (),
    also_at: tuple[str, ...] = (),
) -> Hunted:
    accompanying = (Edit(find=find, replace=replace, aside=True) for find, replace in asides)
    mutant = Mutant(
        name="wrong",
        what=Text(en="It is wrong.", zh="错了。"),
        edits=(*(Edit(find=find, replace=replace) for find, replace in edits), *accompanying),
        also_at=also_at,
        caught_by=("test_it_adds",),
    )
    return as_candidate("sums/add", mutant, reference)


@cache
def of_bank(question_id: str) -> list[Hunted]:
    reference = read_reference(BANK, question_id)
    return [as_candidate(question_id, mutant, reference) for mutant in load_mutants(BANK, question_id)]


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def program(text: str) -> str:
    """What it does, docstrings left out."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def docstrings(text: str) -> set[str]:
    tree = ast.parse(text)
    return {ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, DOCUMENTED)}


def put_right(shown: Hunted) -> str:
    lines = shown.text.splitlines()
    for change in reversed(shown.changes):
        lines[change.start - 1 : change.start - 1 + len(change.shown)] = change.right
    return "\n".join(lines)


# -- every mutant of the bank -----------------------------------------------------------------------------------------


def test_there_is_something_to_hunt() -> None:
    assert len(HUNTABLE) >= 6


@pytest.mark.parametrize("question_id", HUNTABLE)
def test_it_is_the_mutant_s_own_program(question_id: str) -> None:
    reference = read_reference(BANK, question_id)
    for shown in of_bank(question_id):
        compile(shown.text, "candidate", "exec")
        assert program(shown.text) == program(replaced(shown.mutant, reference)), shown.mutant.name
        assert program(shown.text) != program(reference), shown.mutant.name


@pytest.mark.parametrize("question_id", HUNTABLE)
def test_no_comment_and_no_docstring_tells(question_id: str) -> None:
    first = read_reference(BANK, question_id)
    allowed = docstrings(first) | {(ast.get_docstring(ast.parse(first)) or "").partition("\n")[0]}
    for shown in of_bank(question_id):
        assert comments(shown.text) == [f"# shardkit: {question_id}"], shown.mutant.name
        assert docstrings(shown.text) <= allowed, shown.mutant.name
        assert shown.mutant.name not in shown.text


@pytest.mark.parametrize("question_id", HUNTABLE)
def test_the_changes_lead_back_to_the_reference_and_their_lines_are_wrong(question_id: str) -> None:
    right = ast.dump(ast.parse(f"# shardkit: {question_id}\n{without_comments(read_reference(BANK, question_id))}"))
    for shown in of_bank(question_id):
        assert ast.dump(ast.parse(put_right(shown))) == right, shown.mutant.name
        lines = shown.text.splitlines()
        changed = [
            number
            for change in shown.changes
            for number in range(change.start, change.start + len(change.shown))
            if lines[number - 1].strip()
        ]
        has_asides = any(edit.aside for edit in shown.mutant.edits)
        assert (set(changed) <= shown.lines or has_asides) and shown.first in shown.lines, shown.mutant.name
        assert all(lines[number - 1].strip() for number in shown.lines), shown.mutant.name
        assert len(shown.lines) < len(lines) / 2, shown.mutant.name


# -- one by one -------------------------------------------------------------------------------------------------------


def test_comments_go_and_docstrings_stay_but_the_module_s_explanation() -> None:
    text = without_comments(REFERENCE)
    assert text.splitlines()[:6] == ['"""Adds."""', "", "import torch", "", "", "def add(tensor, other):"]
    assert '"""Adds `other`.  # kept"""' in text and 'name = "# no comment"' in text
    assert "once" not in text and "each" not in text and "Where" not in text
    assert not any(line.endswith(" ") for line in text.splitlines())


@pytest.mark.parametrize(
    ("edit", "wrong"),
    [
        (("part.mul_(2)", "part.mul_(3)"), ["        part.mul_(3)"]),
        (("        part.mul_(2)\n", ""), ["    for part in tensor:", "        part.add_(1)"]),
        (("    return tensor, name\n", ""), ["        part.add_(1)"]),
        (
            ("        part.add_(1)\n", "        part.add_(1)\n        part.neg_()\n"),
            ["        part.neg_()"],
        ),
        # Any line of a statement that goes over several.
        (("alpha=1,  # once", "alpha=2,"), ["    tensor.add_(", "        other,", "        alpha=2,", "    )"]),
        (("        part.mul_(2)\n        part.add_(1)\n", "        part.add_(1)\n        part.mul_(2)\n"), None),
    ],
)
def test_which_lines_are_wrong(edit: tuple[str, str], wrong: list[str] | None) -> None:
    shown = made(edit)
    lines = shown.text.splitlines()
    got = [lines[number - 1] for number in sorted(shown.lines)]
    if wrong is None:  # exchanged: whichever of the two has moved, both are named
        assert {"        part.add_(1)", "        part.mul_(2)"} <= set(got)
    else:
        assert got == wrong


def test_a_comment_that_an_edit_takes_along_is_no_wrong_line() -> None:
    shown = made(("    # Where a mistake could be.\n", ""), ("part.mul_(2)", "part.mul_(3)"))
    assert [change.shown for change in shown.changes] == [("        part.mul_(3)",)]


def test_a_docstring_of_the_mutant_s_own_goes() -> None:
    again = 'class Again:\n    """The sum, added twice."""\n\n\n'
    own = f'{again}class Once:\n    """Added twice.\n\n    Yes.\n    """\n\n    n = 2\n\n\n'
    shown = made(("def add(", f"{own}def add("))
    assert "wice" not in shown.text and "Yes" not in shown.text
    assert "class Again:\n    pass\n" in shown.text and '"""Adds `other`' in shown.text
    compile(shown.text, "candidate", "exec")


@pytest.mark.parametrize("docstring", ['    """Adds it twice."""\n', "    # Adds it twice.\n", ""])
def test_a_docstring_that_an_edit_changes_or_drops_is_the_reference_s(docstring: str) -> None:
    shown = made(('    """Adds `other`.  # kept"""\n', docstring), ("part.mul_(2)", "part.mul_(3)"))
    assert '    """Adds `other`.  # kept"""\n' in shown.text and "twice" not in shown.text
    assert [change.shown for change in shown.changes] == [("        part.mul_(3)",)]
    assert shown.lines == {shown.first}


def test_what_goes_along_with_the_mistake_is_shown_and_is_no_wrong_line() -> None:
    shown = made(("part.mul_(2)", "part.mul_(3)"), asides=(("import torch\n", "import torch\n\nTHREE = 3\n"),))
    assert [change.shown for change in shown.changes] == [("", "THREE = 3"), ("        part.mul_(3)",)]
    assert [shown.text.splitlines()[number - 1] for number in shown.lines] == ["        part.mul_(3)"]


def test_another_place_that_is_at_fault_is_a_right_answer_and_no_hint_leads_there() -> None:
    shown = made(("        part.mul_(2)\n", ""), also_at=("alpha=1,\n    )",))
    lines = shown.text.splitlines()
    got = [lines[number - 1].strip() for number in sorted(shown.lines)]
    assert got == ["tensor.add_(", "other,", "alpha=1,", ")", "for part in tensor:", "part.add_(1)"]
    assert lines[shown.first - 1].strip() == "for part in tensor:"


@pytest.mark.parametrize(("text", "how"), [("# once", "does not occur in the file"), ("part", "occurs 3 times")])
def test_another_place_stands_in_the_file_once(text: str, how: str) -> None:
    with pytest.raises(KitError, match=rf"mutant 'wrong': also_at\[0\] {how}"):
        made(("part.mul_(2)", "part.mul_(3)"), also_at=(text,))


@pytest.mark.parametrize(
    ("name", "right", "not_right"),
    [
        ("dp/bucketed averaged-twice", ["op=dist.ReduceOp.AVG", "bucket.flat.div_(self.world_size)"], []),
        ("dp/overlap averaged-twice", ["op=dist.ReduceOp.AVG", "param.grad.div_(self.world_size)"], []),
        ("dp/bucketed summed-not-averaged", ["dist.all_reduce(", "bucket.handle.wait()"], []),
        ("dp/overlap summed-not-averaged", ["dist.all_reduce(", "handle.wait()"], []),
        ("dp/overlap frozen-parameter-holds-a-turn", ["self.params = "], ["requires_grad else None", "handle"]),
        ("tp/mlp upstream-gradient-reduced-again", ["dist.all_reduce(grad"], ["@staticmethod", "ctx.group = "]),
        ("tp/mlp reduced-copy-dropped", ["grad.contiguous()", "return grad, None"], []),
        ("pp/gpipe handles-collected-and-forgotten", ["IN_FLIGHT.append("], ["IN_FLIGHT = []"]),
        ("zero/sharded_optimizer empty-groups-dropped", ["if owned:"], ["zip("]),
    ],
)
def test_which_lines_of_the_bank_s_own_are_right_answers(name: str, right: list[str], not_right: list[str]) -> None:
    question_id, mutant = name.split(" ")
    shown = next(each for each in of_bank(question_id) if each.mutant.name == mutant)
    lines = shown.text.splitlines()
    got = [lines[number - 1] for number in sorted(shown.lines)]
    assert all(any(piece in line for line in got) for piece in right), got
    assert not any(piece in line for line in got for piece in not_right), got


@pytest.mark.parametrize("question_id", HUNTABLE)
def test_no_code_is_written_as_nobody_would_write_it(question_id: str) -> None:
    """A mistake that shows by its looks need not be read: fillers, dead code, two statements a line, long lines."""
    for shown in of_bank(question_id):
        assert max(map(len, shown.text.splitlines())) <= 120, shown.mutant.name
        nodes = list(ast.walk(ast.parse(shown.text)))
        simple = [node.lineno for node in nodes if isinstance(node, ast.stmt) and not hasattr(node, "body")]
        assert len(simple) == len(set(simple)), shown.mutant.name
        assert not any(isinstance(node, ast.Pass | ast.Delete) for node in nodes), shown.mutant.name
        blocks = [getattr(node, name, None) for node in nodes for name in ("body", "orelse")]
        before = [each for block in blocks if isinstance(block, list) for each in block[:-1]]
        ends = ast.Return | ast.Continue | ast.Break | ast.Raise
        assert not any(isinstance(each, ends) for each in before), shown.mutant.name


def test_the_function_is_the_innermost_and_the_surroundings_hold_the_line() -> None:
    reference = "import os\n\n\nclass A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"
    shown = made(("return 2", "return 3"), reference=reference)
    assert shown.function == "A.g"
    first, last = shown.surroundings
    assert first <= min(shown.lines) <= last <= shown.num_lines
    assert made(("import os", "import sys"), reference=reference).function == ""


def test_the_seed_draws_and_a_name_names() -> None:
    name = HUNTABLE[0]
    drawn = {hunted(BANK, name, None, seed).mutant.name for seed in range(40)}
    assert len(drawn) > 5
    assert hunted(BANK, name, None, 3).text == hunted(BANK, name, None, 3).text
    wanted = sorted(drawn)[0]
    assert hunted(BANK, name, wanted, 0).mutant.name == wanted
    with pytest.raises(KitError, match="no mutant 'nothing-like-it'"):
        hunted(BANK, name, "nothing-like-it", 0)
