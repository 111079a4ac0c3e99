"""GB is 1e9 bytes, GiB is 2^30, and what could be either is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costmodel import units
from kit.errors import KitError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 GB", 10**9),
        ("1 GiB", 2**30),
        ("1.5GiB", 1610612736),
        ("2e9 B", 2 * 10**9),
        ("-3 kB", -3000),
        ("12 bytes", 12),
        ("16 gib", 16 * 2**30),
        ("3 TFLOPs", 3 * 10**12),
        ("989 TFLOPS", 989 * 10**12),
        ("100 Gbps", 100 * 10**9),
        ("250 us", 0.00025),
        ("2 h", 7200),
        ("37.5 %", 0.375),
        ("175 billion", 175 * 10**9),
        ("16 字节", 16),
        (".5 s", 0.5),
    ],
)
def test_quantities_are_read(text: str, value: float) -> None:
    assert units.parse(text) == pytest.approx(value, rel=1e-15)


def test_whole_quantities_stay_exact() -> None:
    assert units.parse(f"{2**60 + 1} B") == 2**60 + 1
    assert isinstance(units.parse("1.5 GiB"), int)


def test_a_bare_number_takes_the_unit_that_is_given() -> None:
    assert units.parse("2", "GiB") == 2**31


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "'5' has no unit"),
        ("GB", "'GB' is not a number and a unit, as in '1.5 GiB'"),
        ("nan B", "'nan B' is not a number and a unit, as in '1.5 GiB'"),
        ("1/3 s", "'1/3 s' is not a number and a unit, as in '1.5 GiB'"),
        ("1e999999999 B", "'1e999999999 B' is not a number and a unit, as in '1.5 GiB'"),
        ("5 GBs", "unknown unit 'GBs'"),
        ("5 Gb", "'Gb' could be bits or bytes: write Gbit, GB (1000s) or GiB (1024s)"),
        ("5 G", "'G' could count in 1000s or 1024s: write the whole unit, GB or GiB for bytes"),
        ("1.5e999 ms", "the number is too large"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(KitError) as refused:
        units.parse(text)
    assert refused.value.message == message


def test_gib_and_gb_differ_by_seven_percent() -> None:
    assert units.convert(1, "GiB", "GB") == pytest.approx(1.073741824)
    with pytest.raises(KitError, match=r"^GiB is a unit of B, ms is one of s$"):
        units.convert(1, "GiB", "ms")


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (52.5e9, "B", "52.5 GB (48.89 GiB)"),
        (2**30, "B", "1.074 GB (1 GiB)"),
        (999_999, "B", "1 MB (976.6 KiB)"),
        (16, "B", "16 B"),
        (0, "B", "0 B"),
        (3 / 8, "fraction", "0.375 (37.5%)"),
        (0, "fraction", "0 (0%)"),
        (12_345, "count", "12,345"),
        (3.4028234663852886e38, "count", "3.403e+38"),
        (5.96e-08, "count", "5.96e-08"),
        (3.14e23, "FLOP", "314 ZFLOP"),
        (0.0123, "s", "12.3 ms"),
        (2_937_600, "s", "34 day"),
        (0, "s", "0 s"),
        (1.5, "GiB", "1.5 GiB"),
        (-2e9, "B", "-2 GB (-1.863 GiB)"),
    ],
)
def test_quantities_are_shown_with_their_convention(value: float, unit: str, shown: str) -> None:
    assert units.show(value, unit) == shown


@given(st.floats(1e3, 1e18), st.sampled_from(["B", "s", "FLOP", "FLOP/s", "bit"]))
def test_what_is_shown_reads_back_within_its_four_digits(value: float, unit: str) -> None:
    text = units.show(value, unit).split(" (")[0].replace(",", "")
    assert units.parse(text) == pytest.approx(value, rel=6e-4)


@given(st.sampled_from(sorted(units.UNITS)), st.integers(-(10**12), 10**12))
def test_every_unit_converts_there_and_back(name: str, value: int) -> None:
    base = units.UNITS[name].dimension
    assert units.convert(units.convert(value, name, base), base, name) == pytest.approx(value)


def test_every_dimension_has_its_base_unit() -> None:
    for unit in units.UNITS.values():
        assert units.UNITS[unit.dimension].factor == 1
    for alias, name in units.ALIASES.items():
        assert alias not in units.UNITS, alias
        assert units.unit_named(alias) is units.UNITS[name] or alias in units.AMBIGUOUS
