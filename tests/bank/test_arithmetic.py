"""Small arithmetic: what Python would compute, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.bank.arithmetic import evaluate, names_in
from kit.errors import KitError

LEAVES = st.one_of(st.integers(0, 50).map(str), st.sampled_from(["p", "m"]))
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: "({} {} {})".format(*parts)),
        inner.map(lambda text: f"-{text}"),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS, st.integers(1, 20), st.integers(1, 20))
def test_values_are_those_of_python(text: str, p: int, m: int) -> None:
    try:
        wanted = eval(text, {"p": p, "m": m})
    except ZeroDivisionError:
        with pytest.raises(KitError, match="divides by zero"):
            evaluate(text, {"p": p, "m": m})
    else:
        assert evaluate(text, {"p": p, "m": m}) == pytest.approx(wanted, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 * (n - 1)", 14),
        ("psi * 10**9", 7.5e9),
        ("h / 2", 4),
        ("h / 3", 8 / 3),
        ("2**-1", 0.5),
        ("-2**2", -4),
        ("+n", 8),
        ("1.5e3", 1500.0),
        (" n ", 8),
    ],
)
def test_expressions(text: str, value: float) -> None:
    got = evaluate(text, {"n": 8, "h": 8, "psi": 7.5})
    assert got == value
    assert type(got) is type(value) or isinstance(value, float)


def test_whole_quotients_stay_whole() -> None:
    assert isinstance(evaluate("12 / 4", {}), int)
    assert evaluate("(2**100 + 2**100) / 2", {}) == 2**100
    assert isinstance(evaluate("13 / 4", {}), float)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "n.bit_length()",
        "n if n else 1",
        "n // 2",
        "n % 2",
        "n; n",
        "lambda: 1",
        "[1][0]",
        "'a'",
        "True",
        "None",
        "1j",
        "n < 2",
        "",
        "(",
        "1 +",
        "~n",
        "(" * 150 + "1" + ")" * 150,
        "n := 2",
        "\x00",
    ],
)
def test_anything_but_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(KitError) as refused:
        evaluate(text, {"n": 8})
    if len(text) <= 200:
        assert refused.value.message == f"{text!r} is not arithmetic: numbers, names, brackets and + - * / ** only"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q + 1", "'q + 1' uses 'q'; known here: n, s"),
        ("s + 1", "'s + 1' calculates with s, which is the text 'gpipe'"),
        ("1 / 0", "'1 / 0' divides by zero"),
        ("0 ** -1", "'0 ** -1' divides by zero"),
        ("9**9**9**9", "'9**9**9**9' is too large a number"),
        ("10.0**400", "'10.0**400' is too large a number"),
        ("1e308 * 10", "'1e308 * 10' is too large a number"),
        ("2**1023 * 2**1023", "'2**1023 * 2**1023' is too large a number"),
        ("(-8)**0.5", "'(-8)**0.5' is not a real number"),
        ("1" + "+1" * 100, "an expression of 201 characters; 200 at most"),
    ],
)
def test_a_value_that_does_not_exist_is_refused(text: str, message: str) -> None:
    with pytest.raises(KitError) as refused:
        evaluate(text, {"n": 8, "s": "gpipe"})
    assert refused.value.message == message


def test_names_are_collected() -> None:
    assert names_in("2 * (n - 1) / m**n") == {"n", "m"}
    assert names_in("7") == set()
    with pytest.raises(KitError, match="is not arithmetic"):
        names_in("print(n)")
