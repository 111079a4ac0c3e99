"""Numbers as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.bank.refusal import Refused
from kit.bank.typed_number import read_number
from kit.costmodel import units
from kit.errors import KitError
from kit.screen.quiz_words import REASONS_ZH


@pytest.mark.parametrize(
    ("typed", "unit", "value"),
    [
        ("0.375", "fraction", 0.375),
        (".375", "fraction", 0.375),
        ("37.5%", "fraction", 0.375),
        (" 37.5 % ", "fraction", 0.375),
        ("37.5 percent", "fraction", 0.375),
        ("3/8", "fraction", 0.375),
        ("3 / 8", "fraction", 0.375),
        ("7/(16+7)", "fraction", 7 / 23),
        ("=3/8", "fraction", 0.375),
        ("~0.4", "fraction", 0.4),
        ("375%", "fraction", 3.75),
        ("３７．５％", "fraction", 0.375),
        ("48.9 GiB", "B", 48.9 * 2**30),
        ("52.5GB", "B", 52.5e9),
        ("52.5 gb", "B", 52.5e9),
        ("52.5e9", "B", 52.5e9),
        ("52,500,000,000", "B", 52.5e9),
        ("1,536 KB", "B", 1_536_000),
        ("1.5 x 10^9 B", "B", 1.5e9),
        ("1.5x10^9 B", "B", 1.5e9),
        ("1.5×10^9", "B", 1.5e9),
        ("1.5·10^9", "B", 1.5e9),
        ("2^30", "B", 2**30),
        ("2**30", "B", 2**30),
        ("2³⁰", "B", 2**30),
        ("1.5×10⁻³ s", "s", 0.0015),
        ("16 bytes", "B", 16),
        ("16 字节", "B", 16),
        ("0", "B", 0),
        ("12 ms", "s", 0.012),
        ("12 µs", "s", 12e-6),
        ("1/4 s", "s", 0.25),
        ("3 PFLOPs", "FLOP", 3e15),
        ("1_000", "count", 1000),
        ("-3", "count", -3),
        ("−3", "count", -3),
        ("175 billion", "count", 175e9),
        ("1750 亿", "count", 175e9),
        ("0x10", "count", 16),
        ("1,000/8", "count", 125),
        ("3", "GiB", 3 * 2**30),
        ("3 GB", "GiB", 3e9),
        ("2.315 GB (2.156 GiB)", "B", 2.315e9),
        ("2.5 GBytes", "B", 2.5e9),
        ("682.5亿字节", "B", 68.25e9),
        ("682.5亿 B", "B", 68.25e9),
        ("3 万亿 字节", "B", 3e12),
        ("3亿", "count", 3e8),
        ("12.5 per cent", "fraction", 0.125),
        ("12 GB.", "B", 12e9),
        ("12 GB。", "B", 12e9),
        ("1536.", "count", 1536),
        ("约12 GB", "B", 12e9),
        ("大约 12 GB 左右", "B", 12e9),
        ("about 12 GB", "B", 12e9),
        ("approx. 3/8", "fraction", 0.375),
        ("12 gigabytes", "B", 12e9),
        ("1 Gibibyte", "B", 2**30),
        ("12 milliseconds", "s", 0.012),
        ("3 microseconds", "s", 3e-6),
        ("37.5 pct", "fraction", 0.375),
        ("12 billion", "B", 12e9),
        ("12 billion bytes", "B", 12e9),
        ("1.5 million", "count", 1.5e6),
        ("3亿", "B", 3e8),
        ("2 petaflops", "FLOP", 2e15),
        ("1536个", "count", 1536),
        ("3 万个", "count", 30000),
        ("1.92 TB (1.746 TiB)", "B", 1.92e12),
        ("0.375 (37.5%)", "fraction", 0.375),
        ("12 GB (on each rank)", "B", 12e9),
    ],
)
def test_spellings(typed: str, unit: str, value: float) -> None:
    assert read_number(typed, unit).value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("typed", "unit", "message", "hint"),
    [
        ("", "B", "no answer", "a number, as 52.5 GB, 48.9 GiB or 5.25e10 B"),
        ("  ", "s", "no answer", "a number, as 12 ms or 0.012 s"),
        ("abc", "count", "'abc' is not a number", "write it as 1536, 1.5e3 or 3/2"),
        ("GB", "B", "'GB' is not a number", "write it as 52.5 GB, 48.9 GiB or 5.25e10 B"),
        ("nan", "count", "'nan' is not a number", "write it as 1536, 1.5e3 or 3/2"),
        ("inf", "count", "'inf' is not a number", "write it as 1536, 1.5e3 or 3/2"),
        ("½", "fraction", "'½' is not a number", "write it as 37.5%, 0.375 or 3/8"),
        ("1 000", "count", "'1 000' is not a number", "write it as 1536, 1.5e3 or 3/2"),
        (
            "37,5%",
            "fraction",
            "'37,5%' is not a number",
            "a comma separates thousands, as 1,536; write fractions with a point",
        ),
        (
            "1,23",
            "count",
            "'1,23' is not a number",
            "a comma separates thousands, as 1,536; write fractions with a point",
        ),
        ("5%%", "fraction", "'5%%' is not a number", "write it as 37.5%, 0.375 or 3/8"),
        ("__import__('os')", "count", "\"__import__('os')\" is not a number", "write it as 1536, 1.5e3 or 3/2"),
        ("1" * 300, "count", f"'{'1' * 40}'... is not a number", "write it as 1536, 1.5e3 or 3/2"),
        ("1e400", "count", "'1e400' is too large a number", None),
        ("9**9**9", "count", "'9**9**9' is too large a number", None),
        ("1/0", "count", "'1/0' divides by zero", None),
        (
            "5 apples",
            "count",
            "unknown unit 'apples' in '5 apples'",
            "known here: count, thousand, million, billion, trillion, 万, 亿",
        ),
        ("12 ms", "B", "'12 ms' is in ms, and the question asks for B", None),
        ("2 GB", "fraction", "'2 GB' is in GB, and the question asks for a fraction or a percentage", None),
        ("3 TFLOP/s", "FLOP", "'3 TFLOP/s' is in TFLOP/s, and the question asks for FLOP", None),
        (
            "96 Gbit",
            "B",
            "'96 Gbit' is in bits, and the question asks for bytes; 8 bits are 1 byte",
            None,
        ),
        (
            "12 GB/s",
            "bit/s",
            "'12 GB/s' is in bytes, and the question asks for bits; 8 bits are 1 byte",
            None,
        ),
        ("1.92 TB (5 GiB)", "B", "'1.92 TB (5 GiB)' names two amounts, which are not the same", None),
        ("--12 GB", "B", "'--12 GB' is not a number", "write it as 52.5 GB, 48.9 GiB or 5.25e10 B"),
        ("−-12", "count", "'−-12' is not a number", "write it as 1536, 1.5e3 or 3/2"),
        ("1e", "count", "'1e' ends before its exponent; write it as 1e9", None),
        ("约12", "B", "约12 of what? Write the unit, as 52.5 GB, 48.9 GiB or 5.25e10 B", None),
        ("1.5 K", "count", "'1.5 K' could count in 1000s or 1024s: write 1.5e3 if you mean 1000s", None),
        ("1.5k", "count", "'1.5k' could count in 1000s or 1024s: write 1.5e3 if you mean 1000s", None),
        (
            "12 k",
            "B",
            "'K' could count in 1000s or 1024s: write the whole unit, KB or KiB for bytes",
            None,
        ),
        ("175B", "count", "'175B' is in B, and the question asks for a plain number", None),
        ("5 Gb", "B", "'Gb' could be bits or bytes: write Gbit, GB (1000s) or GiB (1024s)", None),
        (
            "37.5",
            "fraction",
            "37.5 as a fraction is 3750%: write 3750%, or 37.5% if you mean a percentage",
            None,
        ),
        ("52.5", "B", "52.5 of what? Write the unit, as 52.5 GB, 48.9 GiB or 5.25e10 B", None),
    ],
)
def test_nonsense_is_refused_with_its_reason(typed: str, unit: str, message: str, hint: str | None) -> None:
    with pytest.raises(KitError) as refused:
        read_number(typed, unit)
    assert (refused.value.message, refused.value.hint) == (message, hint)


@given(st.floats(-1e15, 1e15), st.sampled_from(sorted(units.UNITS)))
def test_any_number_in_any_unit_reads_back(value: float, unit: str) -> None:
    base = units.UNITS[unit].dimension
    got = read_number(f"{value!r} {unit}", base)
    assert got.value == pytest.approx(units.convert(value, unit, base), rel=1e-12)
    assert (got.figure, got.unit) == (value, unit)


@given(st.integers(-(10**15), 10**15))
def test_thousands_separators_change_nothing(value: int) -> None:
    assert read_number(f"{value:,}", "count").value == value
    assert read_number(f"{value:_}", "count").value == value


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_fractions_and_percentages_agree(numerator: int, extra: int) -> None:
    denominator = numerator + extra
    got = read_number(f"{numerator}/{denominator}", "fraction").value
    assert got == pytest.approx(numerator / denominator)
    assert read_number(f"{100 * numerator / denominator:.12f}%", "fraction").value == pytest.approx(got, abs=1e-12)


@given(st.text(max_size=60), st.sampled_from(["B", "s", "fraction", "count", "FLOP"]))
def test_any_text_is_a_number_or_a_reason(typed: str, unit: str) -> None:
    try:
        got = read_number(typed, unit)
    except KitError as error:
        assert error.message
    else:
        assert abs(got.value) < float("inf")


@given(st.text(max_size=40), st.sampled_from(["B", "s", "fraction", "count", "FLOP", "bit/s", "GiB"]))
def test_every_refusal_of_a_number_has_its_code(typed: str, unit: str) -> None:
    try:
        read_number(typed, unit)
    except KitError as error:
        assert isinstance(error, Refused)
        assert REASONS_ZH[error.reason.code].format(wanted="", **dict(error.reason.values))
