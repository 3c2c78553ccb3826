"""A terminal to print on: colours and symbols, or plain ASCII in a pipe and where NO_COLOR asks for it.

rich takes a while to load: import this only to print.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from karpool.report.table_layout import Layout, TableColumn

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_PIPE_WIDTH: Final = 160
_WIDEST: Final = 10_000
_BAR_WIDTH: Final = 24

Cell = str | Text


def right(title: str, *, spare: int = 0, name: str = "") -> TableColumn:
    return TableColumn(title, "right", spare=spare, name=name)


def wrapped(title: str) -> TableColumn:
    return TableColumn(title, wraps=True)


def is_plain(file: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to leave out colours and symbols: not a terminal, not Unicode, or asked for."""
    unicode = (getattr(file, "encoding", None) or "").lower().replace("-", "") == "utf8"
    return bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb" or not file.isatty() or not unicode


def _pipe_width(environ: Mapping[str, str] = os.environ) -> int:
    columns = environ.get("COLUMNS", "")
    return int(columns) if columns.isascii() and columns.isdigit() and 0 < int(columns) <= _WIDEST else _PIPE_WIDTH


class Screen:
    """Prints tables and lines. All text is cleaned, because names come from a cluster and a terminal obeys escapes."""

    def __init__(self, file: TextIO, *, plain: bool | None = None, width: int | None = None) -> None:
        self.plain = plain = is_plain(file) if plain is None else plain
        self.printed = 0
        """About how many lines were printed: rows and lines, not how they wrapped."""
        self._console = Console(
            file=file,
            width=width or (_pipe_width() if plain and not file.isatty() else None),
            no_color=plain,
            color_system=None if plain else "auto",
            highlight=False,
            markup=False,
            emoji=False,
        )

    def heading(self, text: str) -> None:
        self.printed += 2
        self._console.print()
        self._console.print(self.text(text, "bold"))

    def line(self, *parts: Cell) -> None:
        self.printed += 1
        self._console.print(Text().join(self.text(part) if isinstance(part, str) else part for part in parts))

    def table(self, columns: Iterable[str | TableColumn], rows: Iterable[Iterable[Cell]]) -> None:
        """A table without a frame; a column that is only a title is aligned to the left.

        Numbers are never cut: where all columns do not fit, the least important are left out, and a line says which.
        """
        known = [TableColumn(entry) if isinstance(entry, str) else entry for entry in columns]
        cells = [[self.text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
        layout = Layout.of(known, cells, self._console.width)
        table = Table(box=box.ASCII2 if self.plain else box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for index, width in layout.widths.items():
            column = known[index]
            table.add_column(column.title, justify=column.justify, width=width, overflow="fold", header_style="bold")
        for row in cells:
            table.add_row(*(row[index] for index in layout.widths))
        self._console.print(table)
        self.printed += sum(max(cell.plain.count("\n") for cell in row) + 1 for row in cells if row) + 2
        if layout.left_out:
            self.line(f"Left out for lack of width: {', '.join(layout.left_out)}.")

    def text(self, text: str, style: str = "") -> Text:
        """Text that is safe to print here, in a style."""
        return Text(self.clean(text), style="" if self.plain else style)

    def lines(self, texts: Iterable[str]) -> Text:
        return Text("\n").join(self.text(text) for text in texts)

    def clean(self, text: str) -> str:
        """The text without control characters, and in plain mode without anything beyond ASCII."""
        safe = _CONTROL.sub("\ufffd", text)
        return safe.encode("ascii", "replace").decode() if self.plain else safe

    def mark(self, *, passed: bool) -> Text:
        if self.plain:
            return Text("[ok]" if passed else "[no]")
        return Text("✓ yes", style="green") if passed else Text("✗ no", style="red")

    @property
    def arrow(self) -> str:
        return "->" if self.plain else "→"

    def bar(self, ratio: float) -> Text:
        """A ratio as a bar; more than all of it fills the bar and no more."""
        filled = round(max(0.0, min(1.0, ratio)) * _BAR_WIDTH)
        if self.plain:
            return Text("[" + "#" * filled + "." * (_BAR_WIDTH - filled) + "]")
        return Text("█" * filled, style="cyan") + Text("░" * (_BAR_WIDTH - filled), style="dim")
