"""Edits apply where they are unambiguous, and what is no other program is refused."""

from __future__ import annotations

import pytest

from kit.bank.layout import find_bank
from kit.bank.mutants import apply, find_mutant, load_mutants, mutant_problems
from kit.bank.schema import Edit, Mutant, Text
from kit.errors import KitError

REFERENCE = '''"""Adds."""


def add(tensor):
    tensor.add_(1)  # once
    tensor.mul_(2)
    return tensor
'''


def mutant(*edits: tuple[str, str]) -> Mutant:
    return Mutant(
        name="wrong",
        what=Text(en="It is wrong.", zh="错了。"),
        edits=tuple(Edit(find=find, replace=replace) for find, replace in edits),
        caught_by=("test_it_adds",),
    )


def test_an_edit_replaces_its_text() -> None:
    assert apply(mutant(("add_(1)", "add_(7)")), REFERENCE) == REFERENCE.replace("add_(1)", "add_(7)")


def test_the_order_of_edits_does_not_matter() -> None:
    edits = [("add_(1)", "mul_(2)"), ("mul_(2)", "add_(1)"), ("return tensor", "return None")]
    wanted = REFERENCE.replace("add_(1)", "@").replace("mul_(2)", "add_(1)").replace("@", "mul_(2)")
    wanted = wanted.replace("return tensor", "return None")
    assert apply(mutant(*edits), REFERENCE) == wanted
    assert apply(mutant(*reversed(edits)), REFERENCE) == wanted


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (
            [("add_(3)", "add_(7)")],
            "mutant 'wrong': edits[0]: find does not occur in the reference: 'add_(3)'",
        ),
        (
            [("mul_(2)", "mul_(3)"), ("    tensor", "x")],
            "mutant 'wrong': edits[1]: find occurs 2 times in the reference: 'tensor'",
        ),
        (
            [("tensor.add_(1)", "pass"), ("add_(1)  # once", "sub_(1)")],
            "mutant 'wrong': two edits overlap: 'add_(1)'",
        ),
        ([("add_(1)", "add_(1")], "mutant 'wrong' does not compile: '(' was never closed (line 5 of the mutated file)"),
        (
            [("def add(tensor):\n", "if True:\n")],
            "mutant 'wrong' does not compile: 'return' outside function (line 7 of the mutated file)",
        ),
        (
            [("# once", "# twice")],
            "mutant 'wrong' is the reference's own program: its edits change nothing that runs",
        ),
    ],
)
def test_an_edit_that_makes_no_wrong_answer_is_refused(edits: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(KitError) as refused:
        apply(mutant(*edits), REFERENCE)
    assert refused.value.message == message


def test_a_reference_that_does_not_compile_is_blamed_itself() -> None:
    with pytest.raises(KitError) as refused:
        apply(mutant(("(1", "(1)")), "tensor.add_(1\n")
    assert refused.value.message == "the reference does not compile: '(' was never closed (line 1)"


def test_mutants_load_with_what_they_say(build) -> None:
    question_id = build.question("code")
    mutants = load_mutants(build.bank, question_id)
    assert [each.name for each in mutants] == [f"wrong-{number}" for number in range(1, 7)]
    assert mutants[5].caught_by == ("test_every_rank_finishes", "test_it_adds")
    assert mutant_problems(build.bank, question_id) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("name: wrong-2", "nmae: wrong-2", "- nmae: wrong-2", "unknown key 'nmae' (did you mean 'name'?)"),
        ("name: wrong-2", "name: wrong-1", "mutants:", "mutants: two mutants are called 'wrong-1'"),
        (
            "name: wrong-2",
            "name: Wrong_2",
            "- name: Wrong_2",
            "mutants[1].name: expected small letters, digits and hyphens, as summed-not-averaged, got 'Wrong_2'",
        ),
        (
            "replace: tensor.mul_(3)",
            "replace: tensor.mul_(2)",
            "- name: wrong-2",
            "mutant 'wrong-2' is the reference's own program: its edits change nothing that runs",
        ),
    ],
)
def test_a_mistake_is_said_with_its_line(build, old: str, new: str, line: str, what: str) -> None:
    question_id = build.question("code")
    path = "reference/topic/code.mutants.yaml"
    build.edit(path, old, new)
    number = (build.root / path).read_text(encoding="utf-8").split("\n").index(line) + 1
    with pytest.raises(KitError) as refused:
        load_mutants(build.bank, question_id)
    assert refused.value.message == f"{path}:{number}: {what}"
    assert [problem.message for problem in mutant_problems(build.bank, question_id)] == [refused.value.message]


def test_one_edit_is_the_mistake_itself(build) -> None:
    question_id = build.question("code")
    build.mutants(question_id, lambda values: values["mutants"][1]["edits"][0].update(aside=True))
    (problem,) = mutant_problems(build.bank, question_id)
    assert problem.message.endswith("mutants[1].edits: all edits are aside; one has to be the mistake")


def test_every_mutant_that_does_not_apply_is_known(build) -> None:
    question_id = build.question("code")
    build.write("reference/topic/code.py", "def add(tensor, group=None):\n    tensor.add_(1)\n")
    problems = [problem.what for problem in mutant_problems(build.bank, question_id)]
    lost = "edits[0]: find does not occur in the reference"
    assert problems == [
        f"mutant 'wrong-2': {lost}: 'tensor.mul_(2)'",
        f"mutant 'wrong-3': {lost}: 'tensor.sub_(3)'",
        "mutant 'wrong-4' does not compile: "
        "expected an indented block after function definition on line 1 (line 1 of the mutated file)",
        f"mutant 'wrong-5': {lost}: 'self.scale = scale'",
        f"mutant 'wrong-6': {lost}: 'tensor.mul_(2)'",
    ]


def test_a_mutant_is_found_by_name(build) -> None:
    mutants = load_mutants(build.bank, build.question("code"))
    assert find_mutant(mutants, "wrong-3") is mutants[2]
    with pytest.raises(KitError, match=r"^no mutant 'wrnog-3'; closest: wrong-3"):
        find_mutant(mutants, "wrnog-3")


def test_every_mutant_of_the_repository_applies() -> None:
    bank = find_bank()
    with_mutants = [question_id for question_id in bank.ids() if bank.mutants(question_id).is_file()]
    assert with_mutants
    assert [str(problem) for each in with_mutants for problem in mutant_problems(bank, each)] == []


def test_a_name_that_is_none_is_answered_with_few() -> None:
    names = [f"a-mistake-{number}" for number in range(30)]
    several = tuple(mutant(("once", "twice")).model_copy(update={"name": name}) for name in names)
    with pytest.raises(KitError) as refused:
        find_mutant(several, "nosuch")
    assert refused.value.message.count("a-mistake-") == 3
