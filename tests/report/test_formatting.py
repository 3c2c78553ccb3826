import pytest

from karpool.report.formatting import age, amount, count, gibibytes, per_month, percent, resource
from karpool.wire.quantity import parse_quantity


@pytest.mark.parametrize(
    ("price", "text"),
    [
        (None, "?"),
        (0.0, "0.00"),
        (0.096, "0.096"),
        (0.0416, "0.0416"),
        (0.5, "0.50"),
        (-0.5, "-0.50"),
        (1234.5, "1,234.50"),
    ],
)
def test_prices(price: float | None, text: str) -> None:
    assert amount(price) == text


@pytest.mark.parametrize(
    ("name", "quantity", "text"),
    [
        ("cpu", "1570m", "1.57 cores"),
        ("memory", "512Mi", "512 MiB"),
        ("memory", "14Gi", "14 GiB"),
        ("ephemeral-storage", "100", "100 B"),
        ("nvidia.com/gpu", "8", "8"),
    ],
)
def test_resources_have_units(name: str, quantity: str, text: str) -> None:
    assert resource(name, parse_quantity(quantity)) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "?"), (0, "0s"), (59, "59s"), (3700, "1h 1m"), (273_900, "3d 4h")]
)
def test_ages(seconds: float | None, text: str) -> None:
    assert age(seconds) == text


def test_a_column_of_memory_has_one_precision() -> None:
    assert gibibytes(map(parse_quantity, ("29600Mi", "30250Mi", "2Ti"))) == ["28.91 GiB", "29.54 GiB", "2,048.00 GiB"]
    assert gibibytes(map(parse_quantity, ("8Gi", "16Gi"))) == ["8 GiB", "16 GiB"]


def test_unknown_is_a_question_mark() -> None:
    assert (percent(None), per_month(None)) == ("? %", "? $/month")


def test_one_is_not_many() -> None:
    assert (count(1, "node"), count(1200, "node")) == ("1 node", "1,200 nodes")
