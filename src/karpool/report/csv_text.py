"""Lines for a spreadsheet."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_text(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A line for each row under a head; what is None is empty."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow(map(_cell, row))
    return text.getvalue()


def _cell(value: object) -> str:
    """A value of which no spreadsheet makes a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text
