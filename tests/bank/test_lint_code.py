"""Rules of code questions: interfaces that agree, checks that are needed, imports that a rank has."""

from __future__ import annotations

import ast
import re

import pytest

from kit.bank.lint import lint
from kit.bank.lint.signatures import find, imported, read_interface

STARTER = "questions/topic/code.py"
CHECKS = "questions/topic/test_code.py"
REFERENCE = "reference/topic/code.py"
MUTANTS = "reference/topic/code.mutants.yaml"
VARIANT = "reference/topic/code.variants/two.py"


def found(build) -> list[str]:
    return [str(finding) for finding in lint(build.bank)]


def line_of(build, path: str, begins: str) -> int:
    lines = (build.root / path).read_text(encoding="utf-8").split("\n")
    numbers = [number for number, line in enumerate(lines, 1) if line.startswith(begins)]
    assert len(numbers) == 1, begins
    return numbers[0]


# --- signatures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name", "arguments"),
    [
        ("def f(tensor, group=None)", "f", "tensor, group=None"),
        ("def f(x: int, *, k: float = 1.0, **kw)", "f", "x, *, k=1.0, **kw"),
        ("class C(module)", "C", "module"),
        ("class C()", "C", ""),
        ("C.finish()", "C.finish", ""),
        ("C.step(closure=None, **kwargs)", "C.step", "closure=None, **kwargs"),
    ],
)
def test_an_interface_line_is_read(line: str, name: str, arguments: str) -> None:
    asked = read_interface(line)
    assert (asked.name, asked.arguments) == (name, arguments)


@pytest.mark.parametrize("line", ["f(x)", "def f", "def f(x", "def f(x):", "class C.d(x)", "a.b.c(x)", "def f(1)", ""])
def test_a_line_that_is_no_interface_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        read_interface(line)


@pytest.mark.parametrize(
    ("source", "line", "arguments"),
    [
        ("def f(x: int, y: int = 2) -> int: ...", "def f(x, y=2)", "x, y=2"),
        ("def f(a): ...\ndef f(b): ...", "def f(b)", "b"),
        ("try:\n    def f(a): ...\nexcept ImportError:\n    pass", "def f(a)", "a"),
        ("from functools import partial\nf = partial(print, 1)", "def f(a)", None),
        ("from torch.optim import SGD as C", "class C(a)", None),
        ("class C:\n    def __init__(self, a, *, b): ...", "class C(a, *, b)", "a, *, b"),
        ("class C:\n    def __init__(self): ...", "class C()", ""),
        ("class C: ...", "class C()", ""),
        ("class B:\n    def __init__(self, a): ...\nclass C(B): ...", "class C(a)", "a"),
        ("class B:\n    def go(self, a): ...\nclass C(B):\n    def __init__(self): ...", "C.go(a)", "a"),
        ("class C(Other): ...", "class C(a)", None),
        ("class C(Other): ...", "C.go(a)", None),
        ("class C(torch.nn.Module): ...", "C.zero_grad()", None),
        ("class C:\n    def go(self, a): ...\n    run = go", "C.run(a)", None),
        ("class C:\n    @staticmethod\n    def go(a): ...", "C.go(a)", None),
        ("@dataclass\nclass C:\n    a: int", "class C(a)", None),
    ],
)
def test_a_definition_is_found(source: str, line: str, arguments: str | None) -> None:
    defined = find(ast.parse(source), read_interface(line))
    assert defined is not None
    assert defined.arguments == arguments


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def g(): ...", "def f()"),
        ("def g():\n    def f(): ...", "def f()"),
        ("class C:\n    def other(self): ...", "C.go()"),
        ("class B: ...\nclass C(B): ...", "C.go()"),
        ("from torch import nn\nclass C(nn.Module): ...", "C.go()"),
    ],
)
def test_what_is_not_there_is_not_found(source: str, line: str) -> None:
    assert find(ast.parse(source), read_interface(line)) is None


def test_imports_are_found_wherever_they_stand() -> None:
    source = "import os.path, torch\nfrom torch import nn\ndef f():\n    from kit.world import x\n    from . import y\n"
    assert sorted(imported(ast.parse(source))) == [(1, "os"), (1, "torch"), (2, "torch"), (4, "kit"), (5, ".")]


# --- starter, reference, variants ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", [STARTER, REFERENCE, VARIANT])
def test_every_answer_offers_the_interface(build, path: str) -> None:
    build.question("code")
    build.edit(path, "def finish(self, times)", "def finish(self, count, times)")
    line = line_of(build, path, "    def finish(")
    assert found(build) == [
        f"{path}:{line}: Adder.finish takes (count, times), and the interface says (times); "
        "make them equal; annotations may differ"
    ]
    build.edit(path, "def finish(self, count, times)", "def end(self, times)")
    assert found(build) == [f"{path}: does not define Adder.finish; the interface says 'Adder.finish(times)'"]


@pytest.mark.parametrize(
    ("old", "new"), [("scale=1", "scale=2"), ("*, scale=1", "scale=1"), (", group=None", ", group")]
)
def test_defaults_and_kinds_count(build, old: str, new: str) -> None:
    build.question("code")
    build.edit(STARTER, old, new)
    assert len(found(build)) == 1
    assert "and the interface says" in found(build)[0]


@pytest.mark.parametrize("path", [STARTER, REFERENCE, VARIANT])
def test_answers_import_only_what_a_rank_has(build, path: str) -> None:
    build.question("code")
    build.edit(path, "import torch\n", "import torch\nimport numpy\n")
    line = line_of(build, path, "import numpy")
    assert found(build) == [f"{path}:{line}: imports 'numpy'; import torch and the standard library only"]


def test_a_starter_leaves_the_work_to_the_learner(build) -> None:
    build.question("code")
    build.write(STARTER, (build.root / REFERENCE).read_text())
    assert found(build) == [f"{STARTER}: the starter raises no NotImplementedError; leave the work to the learner"]


def test_two_variants_at_least(build) -> None:
    build.question("code")
    (build.root / VARIANT).unlink()
    assert found(build) == [
        "reference/topic/code.variants: 1 variants, at least 2 are needed; write a right answer in another style"
    ]


@pytest.mark.parametrize("path", [STARTER, REFERENCE, VARIANT, CHECKS])
def test_a_file_that_is_not_python_is_a_finding(build, path: str) -> None:
    build.question("code")
    with (build.root / path).open("a") as file:
        file.write("def broken(:\n")
    assert any(line.startswith(f"{path}:") and "not Python: " in line for line in found(build))


def test_an_interface_line_is_one_of_three_forms(build) -> None:
    build.question("code", change=lambda values: values["interface"].append("add(tensor)"))
    path = "questions/topic/code.yaml"
    assert found(build) == [
        f"{path}:{line_of(build, path, '- add(tensor)')}: 'add(tensor)' is no interface; "
        "write 'def f(x)', 'class C(x)' or 'C.method(x)'"
    ]


# --- checks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "begins", "finding"),
    [
        (
            '    """The sum is right."""\n',
            "",
            "def test_it_adds",
            "test_it_adds has no docstring; write the line that a learner reads",
        ),
        (
            '@ADD.check("values")\n',
            "",
            "def test_it_adds",
            "test_it_adds belongs to no scenario; "
            'decorate it with @SCENARIO.check("values") or @SCENARIO.completes',
        ),
        (
            "from kit.grading",
            "import pytest\nfrom kit.grading",
            "import pytest",
            "imports 'pytest'; ranks import this file and have torch and kit only",
        ),
        (
            "    compare(",
            "    assert run\n    compare(",
            "    assert run",
            "a bare assert in a check; say it with compare or fail",
        ),
        ("@ADD.completes\n", '@ADD.check("discipline")\n', "", "0 checks are decorated with @ADD.completes; "
         "exactly one says that every rank finishes"),
    ],
)  # fmt: skip
def test_a_check_is_decorated_and_says_its_claim(build, old: str, new: str, begins: str, finding: str) -> None:
    build.question("code")
    build.edit(CHECKS, old, new)
    where = f"{CHECKS}:{line_of(build, CHECKS, begins)}" if begins else CHECKS
    wanted = [f"{where}: {finding}"]
    if "belongs to no scenario" in finding:
        path = "questions/topic/code.yaml"
        advice = "no check proves 'values'; write one, or drop its points"
        wanted.insert(0, f"{path}:{line_of(build, path, '  values: 4')}: {advice}")
    assert found(build) == wanted


def test_a_name_is_defined_once(build) -> None:
    build.question("code")
    source = (build.root / CHECKS).read_text()
    build.write(CHECKS, source + '\n\n@ADD.check("values")\ndef test_it_adds(run):\n    """Again."""\n')
    first = source.split("\n").index("def test_it_adds(run):") + 1
    assert [finding.message for finding in lint(build.bank)] == [
        f"test_it_adds is defined again, first on line {first}"
    ]


def test_three_scenarios_at_most(build) -> None:
    build.question("code")
    more = "".join(
        f"\n\n@S{n}.completes\ndef test_s{n}(run):\n    \"\"\"Ends.\"\"\"\n" for n in (1, 2, 3)
    )  # fmt: skip
    build.write(CHECKS, (build.root / CHECKS).read_text() + more)
    names = ["test_every_rank_finishes", "test_it_adds", "test_s1", "test_s2", "test_s3"]
    build.mutants("topic/code", lambda values: values["mutants"][5].update(caught_by=names))
    assert found(build) == [f"{CHECKS}: 4 scenarios: ADD, S1, S2, S3; 3 at most: each costs its launches"]


def test_points_and_checks_speak_of_the_same_proofs(build) -> None:
    build.question("code", change=lambda values: values.update(points={"values": 4, "traffic": 1}))
    path = "questions/topic/code.yaml"
    assert found(build) == [
        f"{path}:{line_of(build, path, 'points:')}: no points for 'discipline', which a check proves; give it points",
        f"{path}:{line_of(build, path, '  traffic: 1')}: no check proves 'traffic'; write one, or drop its points",
    ]


# --- mutants ------------------------------------------------------------------------------------------------


def test_every_check_is_needed_by_a_mutant(build) -> None:
    build.question("code")
    build.mutants("topic/code", lambda values: values["mutants"][5].update(caught_by=["test_it_adds"]))
    line = line_of(build, CHECKS, "def test_every_rank_finishes")
    assert found(build) == [
        f"{CHECKS}:{line}: no mutant needs test_every_rank_finishes; add a mutant that it catches, or remove the check"
    ]


def test_a_mutant_is_caught_by_checks_that_exist(build) -> None:
    build.question("code")
    build.mutants(
        "topic/code",
        lambda values: values["mutants"][0].update(caught_by=["test_it_add", "test_it_adds", "test_it_adds"]),
    )
    lines = (build.root / MUTANTS).read_text(encoding="utf-8").split("\n")
    caught_by = lines.index("  - test_it_add") + 1
    assert found(build) == [
        f"{MUTANTS}:{caught_by}: wrong-1 is caught by test_it_add, which is no check; did you mean test_it_adds?",
        f"{MUTANTS}:{caught_by + 2}: wrong-1 names test_it_adds twice; once is enough",
    ]


def test_six_different_mutants_at_least(build) -> None:
    build.question("code")
    build.mutants("topic/code", lambda values: values["mutants"].pop(0))
    assert found(build) == [f"{MUTANTS}: 5 mutants, at least 6 are needed; write more wrong answers that people give"]
    build.mutants("topic/code", lambda values: values["mutants"][1].update(edits=values["mutants"][0]["edits"]))
    assert found(build) == [
        f"{MUTANTS}:{line_of(build, MUTANTS, '- name: wrong-2')}: wrong-2 is the same file as wrong-1; remove one"
    ]


def test_what_is_also_at_fault_stands_in_the_file_once(build) -> None:
    build.question("code")
    build.mutants("topic/code", lambda values: values["mutants"][1].update(also_at=["tensor.divide_(9)"]))
    assert found(build) == [
        f"{MUTANTS}:{line_of(build, MUTANTS, '- name: wrong-2')}: mutant 'wrong-2': also_at[0] does not occur in the "
        "file that `hunt` shows: 'tensor.divide_(9)'; give a piece of it, without comments, that stands in it once"
    ]


def test_mutants_follow_their_reference(build) -> None:
    build.question("code")
    build.edit(REFERENCE, "tensor.sub_(3)", "tensor.sub_(5)")
    assert found(build) == [
        f"{MUTANTS}:{line_of(build, MUTANTS, '- name: wrong-3')}: "
        "mutant 'wrong-3': edits[0]: find does not occur in the reference: 'tensor.sub_(3)'"
    ]
