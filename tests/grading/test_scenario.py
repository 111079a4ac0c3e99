"""What a checks file declares, and the interface that a question asks for."""

from __future__ import annotations

import ast
import types
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kit.grading import Run, Scenario
from kit.grading.interface import InterfaceError, misfit, parse_interface, problem_in_text, require_interface
from kit.grading.scenario import check_of, derived_seed, draw_problem


def program(solution: Any, inputs: Any) -> Any:
    return None


def problem(rng: torch.Generator, world_size: int) -> Any:
    # A global draw and a global setting, as a careless author makes them.
    torch.set_default_dtype(torch.float64)
    return {"own": torch.randn(3, generator=rng), "global": torch.randn(3), "world_size": world_size}


def scenario(**more: Any) -> Scenario:
    fields = {"problem": problem, "rank_inputs": lambda problem, rank: None, "expected": lambda problem: torch.randn(2)}
    return Scenario(program, **{**fields, **more})


def test_decorators_mark_and_return_the_function() -> None:
    made = scenario()

    @made.check("values")
    def test_it(run: Run) -> None:
        """The line that a learner reads.

        And no more.
        """

    @made.completes
    def test_all_finish(run: Run) -> None:
        """No rank hangs."""

    first, second = check_of(test_it), check_of(test_all_finish)
    assert first is not None and second is not None
    assert (first.name, first.title, first.proof, first.is_completes) == (
        "test_it", "The line that a learner reads.", "values", False,
    )  # fmt: skip
    assert (second.proof, second.is_completes) == ("discipline", True)
    assert made.checks == [first, second]
    assert test_it(None) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "more", [{"world_sizes": ()}, {"world_sizes": (0, 1)}, {"world_sizes": (1, 2), "gloo": (4,)}, {"gloo": ("2",)}]
)
def test_sizes_that_make_no_sense_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        scenario(**more)


def test_what_ranks_could_not_find_or_learners_not_read_is_refused() -> None:
    with pytest.raises(ValueError, match="top-level"):
        Scenario(lambda s, i: None, problem=problem, rank_inputs=max, expected=max)
    made = scenario()
    with pytest.raises(ValueError, match="no proof 'value'"):
        made.check("value")
    with pytest.raises(ValueError, match="has no docstring"):
        made.check("values")(lambda run: None)

    def first(run: Run) -> None:
        """One."""

    made.completes(first)
    with pytest.raises(ValueError, match="a scenario has one `completes`"):
        made.completes(first)


def test_only_values_and_completes_run_on_gloo() -> None:
    made = scenario(world_sizes=(1, 2, 3), gloo=(2,))

    def claim(run: Run) -> None:
        """A claim."""

    values = check_of(made.check("values")(claim))
    assert values is not None
    switchboard = [(1, "switchboard"), (2, "switchboard"), (3, "switchboard")]
    assert made.runs(values) == [*switchboard, (2, "gloo")]
    assert made.runs(values, "gloo") == [(2, "gloo")]
    traffic = check_of(made.check("traffic")(claim))
    assert traffic is not None and made.runs(traffic) == switchboard and made.runs(traffic, "gloo") == []


def test_a_problem_follows_from_its_seed_and_leaves_no_trace() -> None:
    made = scenario()
    state, dtype = torch.get_rng_state(), torch.get_default_dtype()
    one, same, other = draw_problem(made, 1, 2), draw_problem(made, 1, 2), draw_problem(made, 2, 2)
    assert torch.equal(torch.get_rng_state(), state) and torch.get_default_dtype() is dtype
    for name in ("own", "global"):
        assert torch.equal(one[name], same[name]) and not torch.equal(one[name], other[name])
    assert not torch.equal(one["own"], draw_problem(made, 1, 3)["own"])


def test_seeds_do_not_give_one_another_away() -> None:
    made = scenario()
    seeds = {derived_seed(1, made, 2, purpose) for purpose in ("problem", "expected", "ranks")}
    assert len(seeds) == 3 and 1 not in seeds


def test_expected_values_are_computed_once_and_late() -> None:
    calls = []

    def expected(problem: Any) -> Any:
        calls.append(problem)
        return {"x": 1}

    run = Run(scenario(expected=expected), {"p": 1}, None, 0)  # type: ignore[arg-type]
    run.result = types.SimpleNamespace(world_size=2)  # type: ignore[assignment]
    assert calls == []
    assert run.expected is run.expected
    assert calls == [{"p": 1}]


# -- the interface ----------------------------------------------------------------------------------------------------


def test_three_kinds_of_lines() -> None:
    function, kind, method = parse_interface(
        ["def f(a, b=None, *rest, c, **more) -> int", "class C(a, *, b=1)", "C.go(x, y=2)"]
    )
    assert (function.kind, function.name, [p.kind for p in function.parameters]) == (
        "function", "f", ["positional", "positional", "args", "keyword", "kwargs"],
    )  # fmt: skip
    assert (kind.kind, kind.name, method.kind, method.owner, method.name) == ("class", "C", "method", "C", "go")


@pytest.mark.parametrize("line", ["f(x)", "def f", "class C", "C.go", "def f(x", "def C.go(x)", "", "def (x)", "x y"])
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is not an interface"):
        parse_interface([line])


def fits(asked: str, given: str) -> str:
    return misfit(
        parse_interface([f"def f({asked})"])[0].parameters, parse_interface([f"def f({given})"])[0].parameters
    )


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("tensor, group=None", "tensor, group=None"),
        ("tensor, group=None", "tensor: int, group: object = 3, *, extra=1"),
        ("tensor, group=None", "tensor, group=None, tag=0"),
        ("tensor, group=None", "*args, **kwargs"),
        ("tensor, group=None", "tensor, *args, **kwargs"),
        ("a, *, b=1", "a, b=1"),
        ("a, *, b=1", "a, *, b=2"),
        ("a, *, b=1", "a, **more"),
        ("a, **more", "a, **other"),
    ],
)
def test_arguments_that_fit(asked: str, given: str) -> None:
    assert fits(asked, given) == ""


@pytest.mark.parametrize(
    ("asked", "given", "says"),
    [
        ("tensor, group=None", "tensor", "lacks the parameter 'group'"),
        ("tensor, group=None", "group=None, tensor=None", "its parameter 1 is 'group', not 'tensor'"),
        ("tensor, group=None", "tensor, group", "'group' needs a default"),
        ("tensor, group=None", "tensor, *, group=None", "lacks the parameter 'group'"),
        ("tensor, group=None", "tensor, *args", "lacks the parameter 'group'"),
        ("tensor", "tensor, op", "asks for 'op', which nobody passes"),
        ("tensor", "tensor, *, op", "asks for 'op', which nobody passes"),
        ("a, *, b=1", "a", "lacks the parameter 'b'"),
        ("a, *, b=1", "a, *, b", "'b' needs a default"),
        ("a, **more", "a", "must take further keyword arguments (**more)"),
        ("a, *more", "a", "must take further arguments (*more)"),
    ],
)
def test_arguments_that_do_not_fit(asked: str, given: str, says: str) -> None:
    assert says in fits(asked, given)


NAMES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)


@given(NAMES, st.integers(0, 4), NAMES, st.integers(0, 4), st.booleans())
def test_what_fits_can_be_called(
    asked: list[str], defaults: int, given_names: list[str], given_defaults: int, variadic: bool
) -> None:
    """A caller who keeps to the interface never meets a TypeError in a function that fits it."""

    def parameters(names: list[str], count: int) -> str:
        required = max(len(names) - count, 0)
        return ", ".join(name if index < required else f"{name}=0" for index, name in enumerate(names))

    text = parameters(given_names, given_defaults) + (", *args, **more" if variadic and given_names else "")
    wanted = parameters(asked, defaults)
    if fits(wanted, text):
        return
    scope: dict[str, Any] = {}
    exec(f"def f({text}): pass", scope)
    required = max(len(asked) - defaults, 0)
    for count in range(required, len(asked) + 1):
        scope["f"](*range(count))
        scope["f"](*range(required), **dict.fromkeys(asked[required:count], 0))


CLASS = ["class C(a, b=1)", "C.go(x)"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("class C:\n    def __init__(self, a, b=1): pass\n    def go(self, x): pass", ""),
        ("class C(Base):\n    pass", ""),  # only running it can tell
        ("from other import C", ""),
        ("from other import *", ""),
        ("@wrapped\nclass C:\n    pass", ""),
        ("if True:\n    class C:\n        def go(self, x): pass", ""),
        ("try:\n    pass\nexcept E:\n    class C:\n        def go(self, x): pass", ""),
        ("def __getattr__(name): return 1", ""),
        ("class C:\n    @traced\n    def go(self): pass", ""),
        ("class D: pass", "mine.py has no class 'C'"),
        ("def C(a, b=1): pass", "mine.py:1: 'C' is a function; the question asks for a class"),
        ("class C:\n    def __init__(self, a): pass\n    def go(self, x): pass", "mine.py:2: C does not fit"),
        ("class C:\n    def __init__(self, a, b=1): pass", "mine.py:1: class 'C' has no method 'go'"),
        (
            "class C(Base):\n    def go(self): pass",
            "mine.py:2: C.go does not fit `C.go(x)`: it lacks the parameter 'x'",
        ),
    ],
)
def test_the_text_says_what_is_certain(text: str, says: str) -> None:
    found = problem_in_text(parse_interface(CLASS), ast.parse(text), "mine.py")
    assert found.startswith(says) if says else found == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("class C:\n    def __init__(self, a, b=1): pass\n    def go(self, x): pass", ""),
        ("class Base:\n    def __init__(self, a, b=1): pass\n    def go(self, x): pass\nclass C(Base): pass", ""),
        ("class C:\n    def __init__(self, *args, **more): pass\n    @staticmethod\n    def go(x): pass", ""),
        ("C = 3", "is not a class"),
        ("class C:\n    def __init__(self, a, b=1): pass\n    go = 3", "class 'C' has no method 'go'"),
        ("class C:\n    def __init__(self, a): pass\n    def go(self, x): pass", "it lacks the parameter 'b'"),
    ],
)
def test_the_module_says_the_rest(text: str, says: str) -> None:
    module = types.ModuleType("mine")
    exec(text, vars(module))
    if not says:
        require_interface(parse_interface(CLASS), module, "mine.py")
        return
    with pytest.raises(InterfaceError, match=says):
        require_interface(parse_interface(CLASS), module, "mine.py")


def test_forward_of_a_module_that_has_none_is_missed() -> None:
    module = types.ModuleType("mine")
    exec("from torch import nn\nclass C(nn.Module):\n    def __init__(self): super().__init__()", vars(module))
    with pytest.raises(InterfaceError, match="class 'C' has no method 'forward'"):
        require_interface(parse_interface(["C.forward(x)"]), module, "mine.py")
