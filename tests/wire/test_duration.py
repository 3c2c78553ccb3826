"""Durations as Kubernetes and Karpenter write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpool.wire.duration import NEVER, Duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("0", 0),
        ("0s", 0),
        ("720h", 2_592_000),
        ("-5s", -5),
        ("1h0m0s", 3600),
    ],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text).delta == timedelta(seconds=seconds)


def test_never_is_no_length_of_time() -> None:
    assert parse_duration("Never") is NEVER
    assert NEVER.never
    assert NEVER.delta is None


@pytest.mark.parametrize(
    "text", ["", "5x", "5", "s", "1h 30m", "never", "1d", "5s!", "--5s", "-+5s", "٣s", "9" * 5000 + "s"]
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration; write numbers with units .* 1h30m"):
        parse_duration(text)


def test_a_duration_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than any duration may be"):
        parse_duration("9999999h")


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_every_duration_survives_being_written_and_read(nanos: int) -> None:
    assert parse_duration(str(Duration(nanos))) == Duration(nanos)


@given(st.integers(0, 9999), st.integers(0, 9999), st.integers(0, 9999))
def test_groups_add_up(hours: int, minutes: int, seconds: int) -> None:
    total = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    assert parse_duration(f"{hours}h{minutes}m{seconds}s").delta == total
