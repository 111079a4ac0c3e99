"""In which order new questions come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kit.bank.layout import Bank
from kit.bank.load import Header, headers
from kit.practice.study import study_order
from tests.cli.conftest import ROOT


def header(question_id: str, level: int = 1, *requires: str, kind: str = "choice") -> Header:
    return Header(question_id, kind, level, {"en": "t", "zh": "t"}, (), requires)


def test_what_is_required_comes_first_and_else_the_easier() -> None:
    chain = [
        header("a/easy_but_late", 1, "a/hard"),
        header("a/hard", 4, "a/middle", "gone/away"),
        header("a/middle", 3),
        header("b/plain", 2),
        header("b/simple", 1),
    ]
    for seed in range(10):
        order = study_order(chain, seed)
        assert order == ("b/simple", "b/plain", "a/middle", "a/hard", "a/easy_but_late")


def test_the_seed_decides_among_equals_and_the_order_given_does_not() -> None:
    equals = [header(f"a/{number}") for number in range(6)]
    orders = {study_order(equals, seed) for seed in range(20)}
    assert len(orders) > 10 and all(sorted(order) == [one.id for one in equals] for order in orders)
    assert study_order(equals, 3) == study_order(list(reversed(equals)), 3)


def test_a_circle_ends() -> None:
    circle = [header("a/a", 1, "a/b"), header("a/b", 1, "a/a"), header("a/c", 1, "a/b"), header("a/d", 1, "a/d")]
    assert sorted(study_order(circle, 1)) == ["a/a", "a/b", "a/c", "a/d"]
    assert study_order(circle, 1).index("a/b") < study_order(circle, 1).index("a/c")


@given(st.lists(st.tuples(st.integers(1, 4), st.sets(st.integers(0, 11))), max_size=12), st.integers(0, 9))
def test_no_question_comes_before_one_that_it_requires(shape: list[tuple[int, set[int]]], seed: int) -> None:
    """Edges lead to lower numbers only, so there is no circle."""
    made = [
        header(f"t/{place:02}", level, *(f"t/{other:02}" for other in others if other < place))
        for place, (level, others) in enumerate(shape)
    ]
    order = study_order(made, seed)
    assert sorted(order) == [one.id for one in made]
    assert all(order.index(other) < order.index(one.id) for one in made for other in one.requires)


def test_the_bank_says_what_it_requires() -> None:
    found = {one.id: one for one in headers(Bank(ROOT))}
    assert found["dp/bucketed"].requires == ("dp/overlap",)
    order = study_order(list(found.values()), 5)
    assert order.index("dp/overlap") < order.index("dp/bucketed")
