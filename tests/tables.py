"""Tables of cases whose fields have names, so that a row reads as a sentence.

@table(
    row("half an hour is left", minutes=30, expired=False),
    row("the time is up", minutes=60, expired=True),
)
def test_a_node_lives_for_an_hour(minutes: int, *, expired: bool) -> None: ...
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Row:
    """A case: its name, which pytest shows, and its fields."""

    name: str
    fields: Mapping[str, Any]


def row(name: str = "", /, **fields: Any) -> Row:
    """Make a case; one without a name is called after its fields, but for functions, whose addresses change."""
    shown = (f"{field}={value}" for field, value in fields.items() if not callable(value))
    return Row(name or " ".join(shown), fields)


def table(*rows: Row) -> pytest.MarkDecorator:
    """Call a test once for each row; all rows have the same fields."""
    fields = list(rows[0].fields)
    assert all(row.fields.keys() == rows[0].fields.keys() for row in rows)
    return pytest.mark.parametrize(
        fields, [[row.fields[field] for field in fields] for row in rows], ids=[row.name for row in rows]
    )
