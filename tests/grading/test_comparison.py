"""compare: what passes, what does not, and which mistake it names."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.grading import CheckFailed, Diagnosis, compare, fail

SHAPES = st.lists(st.lists(st.integers(1, 5), max_size=3), min_size=1, max_size=4)


def tree(seed: int, shapes: list[list[int]], scale: float = 1.0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        f"layers.{index}.weight": scale * torch.randn(shape, generator=generator, dtype=torch.float64)
        for index, shape in enumerate(shapes)
    }


def scaled(values: dict[str, torch.Tensor], factor: float) -> dict[str, torch.Tensor]:
    return {name: factor * value for name, value in values.items()}


def diagnose(got: Any, expected: Any, **more: Any) -> Diagnosis:
    with pytest.raises(CheckFailed) as caught:
        compare(got, expected, **{"what": "gradient", "rank": 1, "world_size": 2, **more})
    assert str(caught.value) == caught.value.diagnosis.text()
    return caught.value.diagnosis


# -- right answers -------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**31), SHAPES, st.integers(1, 8), st.sampled_from([1e-12, 1e-6, 1.0, 1e9]), st.booleans())
def test_sums_in_another_order_pass(
    seed: int, shapes: list[list[int]], num_terms: int, scale: float, zero: bool
) -> None:
    """However sharding reorders a sum, a right answer passes; small gradients and zero ones too."""
    terms = [tree(seed + step, shapes, scale) for step in range(num_terms)]
    forwards = {name: sum(term[name] for term in terms) / num_terms for name in terms[0]}
    backwards = {name: sum(term[name] / num_terms for term in reversed(terms)) for name in terms[0]}
    if zero:  # exactly zero in one order, rounding noise in the other
        forwards["bias"] = torch.zeros(3, dtype=torch.float64)
        backwards["bias"] = torch.full((3,), 1e-16 * max(float(v.abs().max()) for v in forwards.values()))
        backwards["bias"] = backwards["bias"].double()
    compare(backwards, forwards, what="gradient", rank=0, world_size=num_terms)


def test_trees_of_every_kind_pass() -> None:
    value = {
        "none": None,
        "list": [1, 2.5, True, "adam", b"x", torch.float64],
        "tuple": (torch.arange(3), torch.tensor([True, False]), torch.zeros(0, 3)),
        "complex": torch.tensor([1 + 2j, 3 - 1j]),
        ("a", 1): torch.tensor(math.nan),
    }
    compare(value, value, what="state", rank=0)


def test_nan_and_infinity_pass_only_where_they_are_expected() -> None:
    expected = torch.tensor([1.0, math.nan, math.inf, -math.inf])
    compare(expected.clone(), expected, what="output", rank=0)
    for place, value in ((0, math.nan), (1, 0.0), (2, -math.inf), (2, 1e38), (0, math.inf)):
        got = expected.clone()
        got[place] = value
        assert "output is wrong" in diagnose(got, expected, what="output").headline


def test_float32_is_held_to_the_tolerance_that_is_asked_for() -> None:
    expected = torch.linspace(1, 2, 7)
    got = expected * (1 + 1e-6)
    compare(got, expected, what="output", rank=0, rtol=1e-5)
    diagnose(got, expected)


# -- structure -----------------------------------------------------------------------------------------------


def test_missing_and_extra_names_are_said() -> None:
    expected = {"w": torch.ones(2), "b": torch.ones(1)}
    found = diagnose({"w": torch.ones(2), "bias": torch.ones(1)}, expected, world_size=3)
    assert found.text() == "world_size=3, rank 1: gradient lacks b and has bias, which was not asked for"
    assert "lacks w, b" in diagnose({}, expected).headline


def test_order_of_names_does_not_matter() -> None:
    compare({"b": 1, "a": 2}, {"a": 2, "b": 1}, what="state", rank=0)


@pytest.mark.parametrize(
    ("got", "expected", "text"),
    [
        (torch.ones(3), torch.ones(4), "world_size=2, rank 1: gradient has shape [3], expected [4]"),
        (torch.ones(3).float(), torch.ones(3).double(), "gradient has dtype float32, expected float64"),
        (None, torch.ones(3), "gradient is None, expected float32 [3]"),
        (torch.ones(3), None, "gradient is float32 [3], expected None"),
        ([torch.ones(3)], [torch.ones(3)] * 2, "gradient has 1 elements, expected 2"),
        ({"w": [1, 2]}, {"w": [1, 3]}, "gradient w[1] is 2, expected 3"),
        (True, 1, "gradient is True, expected the number 1"),
        (1, True, "gradient is 1, expected True"),
        ("sgd", "adam", "gradient is 'sgd', expected 'adam'"),
        (7, {"w": 1}, "gradient is 7, expected a dict of 1"),
        (torch.arange(4), torch.arange(4).flip(0), "holds the right values in another order"),
    ],
)
def test_what_does_not_fit_is_said_with_both_values(got: Any, expected: Any, text: str) -> None:
    assert text in diagnose(got, expected).text()


class LyingTensor(torch.Tensor):
    """Equal to everything (a cheat: comparison operators of the learner's own)."""

    def __eq__(self, other: object) -> Any:
        return torch.ones(self.shape, dtype=torch.bool)

    __hash__ = torch.Tensor.__hash__


def test_tensor_subclasses_are_not_compared() -> None:
    got = torch.zeros(3, dtype=torch.float64).as_subclass(LyingTensor)
    found = diagnose(got, torch.ones(3, dtype=torch.float64))
    assert found.problem == "type" and "LyingTensor" in found.headline


def test_the_worst_tensor_is_shown_at_its_worst_place() -> None:
    expected = tree(1, [[2, 5], [3]])
    got = {name: value.clone() for name, value in expected.items()}
    got["layers.1.weight"][0] += 1e-3
    got["layers.0.weight"][1, 3] += 5
    found = diagnose(got, expected, where="after step 2")
    assert found.path == "layers.0.weight"
    assert found.index == (1, 2)  # three values from [1, 2] on, so that [1, 3] is among them
    assert found.got[1] == pytest.approx(float(expected["layers.0.weight"][1, 3]) + 5)
    assert found.num_wrong == found.num_compared == 2
    assert found.text().startswith("world_size=2, rank 1, after step 2: every gradient is wrong\n")
    assert "at [1, 2:5]" in found.text()


def test_digits_go_on_until_the_values_differ() -> None:
    found = diagnose(torch.tensor(1.0 + 1e-8).double() + 1e-8, torch.tensor(1.0).double())
    lines = found.text().splitlines()
    assert lines[-2].split()[1] != lines[-1].split()[1]


def test_integers_are_exact() -> None:
    big = torch.tensor([2**60, 5])
    assert diagnose(big + torch.tensor([1, 0]), big).problem == "values"
    assert diagnose(torch.tensor([True]), torch.tensor([False])).problem == "values"


def test_small_gradients_cannot_be_answered_with_zeros() -> None:
    """C47: no absolute tolerance swallows a small tensor beside a large one."""
    expected = {"large": torch.ones(3).double() * 1e3, "small": torch.ones(3).double() * 1e-6}
    found = diagnose({"large": expected["large"], "small": torch.zeros(3).double()}, expected)
    assert found.signature == "zero"
    assert found.headline == "gradient small is zero; the other 1 holds"


# -- signatures ----------------------------------------------------------------------------------------------


FACTORS = {
    "N x": lambda n: n,
    "1/N x": lambda n: 1 / n,
    "sqrt(N) x": math.sqrt,
    "1/sqrt(N) x": lambda n: 1 / math.sqrt(n),
    "-1 x": lambda n: -1.0,
}


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**31), SHAPES, st.integers(2, 9), st.sampled_from(sorted(FACTORS)), st.booleans())
def test_a_factor_is_named(seed: int, shapes: list[list[int]], n: int, name: str, with_zero: bool) -> None:
    expected = tree(seed, shapes)
    got = scaled(expected, FACTORS[name](n))
    if with_zero:
        expected["zero"] = got["zero"] = torch.zeros(2, dtype=torch.float64)
    found = diagnose(got, expected, world_size=n)
    assert found.signature == name
    assert found.headline.startswith("gradient " if len(shapes) == 1 else "every gradient ")


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**31), SHAPES, st.integers(2, 9), st.sampled_from(sorted(FACTORS)), st.floats(1e-6, 0.5))
def test_a_factor_is_not_named_when_one_element_disagrees(
    seed: int, shapes: list[list[int]], n: int, name: str, off: float
) -> None:
    expected = tree(seed, [*shapes, [2, 3]])
    got = scaled(expected, FACTORS[name](n))
    last = got[f"layers.{len(shapes)}.weight"]
    last[0, 0] += off * last.abs().max()
    assert diagnose(got, expected, world_size=n).signature == ""


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**31), SHAPES, st.integers(1, 9))
def test_wrong_values_carry_no_signature(seed: int, shapes: list[list[int]], n: int) -> None:
    expected, got = tree(seed, [*shapes, [4]]), tree(seed + 1, [*shapes, [4]])
    found = diagnose(got, expected, world_size=n, suspects={"another tree": tree(seed + 2, [*shapes, [4]])})
    assert found.signature == "" and found.candidates == ()
    assert "every gradient is wrong" in found.headline


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**31), SHAPES, st.integers(1, 9))
def test_a_suspect_is_named(seed: int, shapes: list[list[int]], n: int) -> None:
    expected, local = tree(seed, shapes), tree(seed + 1, shapes)
    suspects = {"this rank's local gradient": local, "one microbatch": tree(seed + 2, shapes)}
    found = diagnose(scaled(local, 1 + 1e-15), expected, world_size=n, suspects=suspects)
    assert found.signature == "this rank's local gradient"
    assert "equals this rank's local gradient" in found.headline


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), SHAPES, st.integers(2, 9))
def test_two_mistakes_that_look_alike_are_both_said_and_neither_claimed(
    seed: int, shapes: list[list[int]], n: int
) -> None:
    expected = tree(seed, shapes)
    total = scaled(expected, n)
    found = diagnose(total, expected, world_size=n, suspects={"the sum of all microbatches": total})
    assert found.signature == ""
    assert len(found.candidates) == 2
    assert "fits more than one mistake: is " in found.text()


def test_one_rank_has_no_factor() -> None:
    """At N = 1 the N-fold is the value itself, and nothing is claimed for what is wrong by chance."""
    expected = tree(0, [[3], [2, 2]])
    compare(scaled(expected, 1), expected, what="gradient", rank=0, world_size=1)
    assert diagnose(tree(5, [[3], [2, 2]]), expected, world_size=1).signature == ""


def test_zero_tensors_give_no_ratio() -> None:
    zero = {"w": torch.zeros(3).double()}
    assert diagnose({"w": torch.ones(3).double()}, zero).signature == ""
    mixed = {"v": torch.ones(3).double(), **zero}
    assert diagnose({"v": 2 * torch.ones(3).double(), "w": torch.ones(3).double()}, mixed).signature == ""


def test_a_suspect_as_good_as_right_is_not_named() -> None:
    expected = tree(0, [[3], [2, 2]])
    near = scaled(expected, 1 + 3e-9)
    assert diagnose(near, expected, suspects={"the previous step": near}).signature == ""


def test_a_suspect_with_other_names_or_shapes_is_no_suspect() -> None:
    expected, got = tree(0, [[3]]), tree(1, [[3]])
    for suspect in ({}, {"layers.0.weight": torch.ones(4)}, [1], None, {"layers.0.weight": "x"}):
        assert diagnose(got, expected, suspects={"odd": suspect}).signature == ""


def test_only_some_wrong_is_counted() -> None:
    expected, local = tree(0, [[3], [2], [4]]), tree(1, [[3], [2], [4]])
    got = {
        **expected,
        "layers.1.weight": local["layers.1.weight"],
        "layers.2.weight": local["layers.2.weight"],
    }
    found = diagnose(got, expected, suspects={"this rank's local gradient": local})
    assert found.headline == ("2 of 3 (gradient): each equals this rank's local gradient; the other 1 holds")


@pytest.mark.parametrize(("value", "name"), [(0.0, "zero"), (math.nan, "NaN")])
def test_zero_and_nan_everywhere_are_named(value: float, name: str) -> None:
    expected = tree(0, [[3], [2, 2]])
    found = diagnose({key: torch.full_like(v, value) for key, v in expected.items()}, expected)
    assert found.signature == name
    assert found.headline == f"every gradient is {name}{' everywhere' if name == 'NaN' else ''}"


def test_another_factor_is_said_without_a_cause() -> None:
    expected = tree(0, [[3], [2, 2]])
    found = diagnose(scaled(expected, 3.0), expected, world_size=2)
    assert (found.signature, found.headline) == ("constant ratio", "every gradient is 3x the expected one")
    assert found.ratio == pytest.approx(3)


@pytest.mark.parametrize("factor", [4.0, 0.25, 0.2, -1.0, 0.0, 2.0**0.5, 0.37])
def test_the_ratio_is_measured_whatever_is_named(factor: float) -> None:
    right = tree(4, [[3, 4], [5]])
    wrong = scaled(right, factor)
    named = diagnose(wrong, right, suspects={"something else": wrong})
    assert named.ratio == pytest.approx(factor)
    one_off = {**wrong, "layers.1.weight": right["layers.1.weight"] * (factor + 3)}
    assert diagnose(one_off, right).ratio is None


def test_two_numbers_have_a_ratio_where_it_is_a_whole_number_or_one_over_it() -> None:
    for got, ratio in ((6.5, 5.0), (0.26, 0.2), (-1.3, -1.0), (0.0, 0.0), (2.9, None), (math.nan, None)):
        found = diagnose(torch.tensor(got, dtype=torch.float64), torch.tensor(1.3, dtype=torch.float64))
        assert found.ratio == (pytest.approx(ratio) if ratio is not None else None), got
    assert diagnose(torch.ones(3), torch.zeros(3)).ratio is None
    one = torch.tensor(2.0).double()
    assert diagnose(3 * one, one).signature == ""  # one number always has a ratio


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), st.integers(2, 6), st.sampled_from(["float32", "bfloat16", "float16"]))
def test_a_scratch_buffer_of_a_narrower_dtype_is_named(seed: int, n: int, dtype: str) -> None:
    narrow = getattr(torch, dtype)
    locals_ = [tree(seed + rank, [[4, 3], [8]]) for rank in range(n)]
    expected = {name: sum(t[name] for t in locals_) / n for name in locals_[0]}
    got = {}
    for name in expected:
        total = locals_[0][name].to(narrow)
        for other in locals_[1:]:
            total = total + other[name].to(narrow)
        got[name] = (total / n).double()
    assert diagnose(got, expected, world_size=n).signature == f"{dtype} scratch"


def test_float32_noise_is_named_even_after_float64_arithmetic() -> None:
    expected = tree(3, [[40], [7, 7]])
    got = {name: (value * 3).float().double() / 3 * (1 + 1e-16) for name, value in expected.items()}
    assert diagnose(got, expected, world_size=3).signature == "float32 scratch"


def test_a_systematic_small_error_is_not_called_rounding() -> None:
    """An eps at the wrong place of Adam is off by 1e-8 too, always towards zero."""
    expected = tree(3, [[40], [7, 7]])
    got = {name: value / (1 + 3e-8 / (value.abs() + 0.1)) for name, value in expected.items()}
    assert diagnose(got, expected, world_size=3).signature == ""


def test_permuted_values_are_named() -> None:
    expected = tree(2, [[4, 3], [6]])
    got = {name: value.flatten().roll(1).view(value.shape) for name, value in expected.items()}
    assert diagnose(got, expected, world_size=2).signature == "reordered"


def test_fail_says_the_learner_s_sentence() -> None:
    with pytest.raises(CheckFailed, match=r"^world_size=2, rank 1: sent nothing$"):
        fail("sent nothing", rank=1, world_size=2)
    assert issubclass(CheckFailed, AssertionError)
