"""Quantities as Kubernetes writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpool.wire.quantity import NANO, ZERO, Quantity, parse_quantity

SCALES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0", 0),
        ("1", NANO),
        ("100m", NANO // 10),
        ("1.5Gi", 3 * 2**29 * NANO),
        (".5", NANO // 2),
        ("5.", 5 * NANO),
        ("12e6", 12 * 10**15),
        ("12E6", 12 * 10**15),
        ("1E", 10**27),
        ("1e-3", 10**6),
        ("+3", 3 * NANO),
        ("-2", -2 * NANO),
        ("0.1n", 1),
        ("9223372036854775807", (2**63 - 1) * NANO),
        (2, 2 * NANO),
        (1.5, 3 * NANO // 2),
        (1e15, 10**24),
    ],
)
def test_a_quantity_is_read_exactly(text: str | float, nano: int) -> None:
    assert parse_quantity(text).nano == nano


@pytest.mark.parametrize(
    "text",
    ["", "1.5.2", "abc", "1KB", "1 Gi", "1ki", "--1", "1e", "e3", ".", "Gi", "1mm", "0x10", "٣", "1\n", "9" * 5000],
)
def test_what_is_no_quantity_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a quantity; write a number .* 500m"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["9223372036854775808", "10E", "1e30", "1e999"])
def test_a_quantity_beyond_64_bits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="larger than any quantity may be"):
        parse_quantity(text)


@given(st.integers(0, (2**63 - 1) * NANO))
def test_every_quantity_survives_being_written_and_read(nano: int) -> None:
    assert parse_quantity(str(Quantity(nano))) == Quantity(nano)


@given(st.integers(0, 7), st.integers(0, 999), st.sampled_from(sorted(SCALES)))
def test_every_suffix_scales_and_rounds_up_to_a_billionth(whole: int, thousandths: int, suffix: str) -> None:
    exact = (whole + Fraction(thousandths, 1000)) * SCALES[suffix] * NANO
    assert parse_quantity(f"{whole}.{thousandths:03}{suffix}").nano == -(-exact.numerator // exact.denominator)


@given(st.integers(0, 10**6), st.integers(-9, 12))
def test_an_exponent_shifts_the_decimal_point(digits: int, exponent: int) -> None:
    assert parse_quantity(f"{digits}e{exponent}").nano == Fraction(digits * NANO) * Fraction(10) ** exponent


@given(st.integers(0, 10**18), st.integers(0, 10**18))
def test_quantities_add_compare_and_hash_as_numbers(first: int, second: int) -> None:
    assert (Quantity(first) + Quantity(second)).nano == first + second
    assert (Quantity(first) - Quantity(second)).nano == first - second
    assert (Quantity(first) < Quantity(second)) == (first < second)
    assert (hash(Quantity(first)) == hash(Quantity(second))) or first != second


def test_rounding_goes_up_as_in_kubernetes() -> None:
    assert parse_quantity("1n").milli == 1
    assert parse_quantity("1500m").units == 2
    assert ZERO.milli == 0


def test_a_quantity_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        ZERO.nano = 5
