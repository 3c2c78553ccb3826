"""How wide each column of a table is on a terminal of some width, and which columns have to be left out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.text import Text

Justify = Literal["left", "right"]
_BETWEEN: Final = 3
_NARROWEST: Final = 12
_NARROWEST_PROSE: Final = 20
_WHOLE: Final = re.compile(r"[-+~<>=$]*[0-9][0-9.,:]*[%a-zA-Z]*|[A-Z][A-Za-z]{1,39}[:,;.]?")
"""Words that never break: numbers, and codes of reasons, which people search for."""
_NAME: Final = re.compile(r"[(`]?\w[\w.-]{0,44}[)`:,;.]*")
"""Names of nodes and machines, which people copy, and words; beyond this length a name may break."""


@dataclass(frozen=True)
class TableColumn:
    """A column's heading, its side, and whether long cells may break into lines.

    `spare`: columns that do not fit are left out, those with the highest first, then those further right; the first
    column always stays. `name`: what it is called when it is left out, if not by its title.
    """

    title: str
    justify: Justify = "left"
    wraps: bool = False
    spare: int = 0
    name: str = ""


@dataclass(frozen=True)
class Layout:
    """The widths of the columns that are shown, by their position, and the names of those that are not."""

    widths: dict[int, int]
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, columns: Sequence[TableColumn], rows: Sequence[Sequence[Text]], available: int) -> "Layout":
        cells = [[row[index] for row in rows] for index in range(len(columns))]
        full = [_full(column, own) for column, own in zip(columns, cells, strict=True)]
        known = list(zip(columns, cells, full, strict=True))
        least = [_least(column, own, width, names=not column.wraps) for column, own, width in known]
        shown = _shown(columns, least, available)
        # In prose names break rather than that the prose itself is left out for them.
        whole = [_least(column, own, width, names=True) for column, own, width in known]
        fitting = _shown(columns, whole, available)
        if all(index in fitting for index in shown if columns[index].wraps):
            least, shown = whole, fitting
        left_out = [columns[index].name or columns[index].title for index in range(len(columns)) if index not in shown]
        widths = _shared_out({index: (least[index], full[index]) for index in shown}, available)
        return cls(widths, tuple(dict.fromkeys(name for name in left_out if name)))


def _shown(columns: Sequence[TableColumn], least: Sequence[int], available: int) -> list[int]:
    """The columns that fit at their narrowest, by position."""
    shown = list(range(len(columns)))
    while len(shown) > 1 and _total([least[index] for index in shown]) > available:
        shown.remove(max(shown[1:], key=lambda index: (columns[index].spare, index)))
    return shown


def _full(column: TableColumn, cells: Sequence[Text]) -> int:
    lines = [line for cell in cells for line in cell.plain.split("\n")]
    return max((Text(text).cell_len for text in (column.title, *lines)), default=0)


def _least(column: TableColumn, cells: Sequence[Text], full: int, *, names: bool) -> int:
    """How narrow a column may become: a number never breaks, nor does the code of a reason; `names`: nor do names."""
    if column.justify == "right":
        return full
    words = {word for cell in cells for word in cell.plain.split()}
    whole = [len(word) for word in words if _WHOLE.fullmatch(word) or (names and _NAME.fullmatch(word))]
    narrowest = _NARROWEST_PROSE if column.wraps else _NARROWEST
    return min(full, max(narrowest, *whole, 0))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _BETWEEN * (len(widths) - 1)


def _shared_out(bounds: dict[int, tuple[int, int]], available: int) -> dict[int, int]:
    """Widths within their bounds: short columns in full first, then the long ones share what is left."""
    widths = {index: least for index, (least, _) in bounds.items()}
    left = available - _total(list(widths.values()))
    wanting = sorted(bounds, key=lambda index: bounds[index][1] - bounds[index][0])
    for position, index in enumerate(wanting):
        least, full = bounds[index]
        more = min(full - least, max(0, left) // (len(wanting) - position))
        widths[index], left = least + more, left - more
    return widths
