"""A terminal to print on: colours and symbols, or plain ASCII in a pipe and where NO_COLOR asks for it.

rich takes a while to load: import this only to print.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_PIPE_WIDTH: Final = 160
_BAR_WIDTH: Final = 24

Justify = Literal["left", "right"]
Cell = str | Text


@dataclass(frozen=True)
class TableColumn:
    """A column's heading, its side, and whether long cells may break into lines."""

    title: str
    justify: Justify = "left"
    wraps: bool = False


def right(title: str) -> TableColumn:
    return TableColumn(title, "right")


def wrapped(title: str) -> TableColumn:
    return TableColumn(title, wraps=True)


def is_plain(file: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to leave out colours and symbols: not a terminal, not Unicode, or asked for."""
    unicode = (getattr(file, "encoding", None) or "").lower().replace("-", "") == "utf8"
    return bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb" or not file.isatty() or not unicode


class Screen:
    """Prints tables and lines. All text is cleaned, because names come from a cluster and a terminal obeys escapes."""

    def __init__(self, file: TextIO, *, plain: bool | None = None, width: int | None = None) -> None:
        self.plain = plain = is_plain(file) if plain is None else plain
        self._console = Console(
            file=file,
            width=width or (_PIPE_WIDTH if plain and not file.isatty() else None),
            no_color=plain,
            color_system=None if plain else "auto",
            highlight=False,
            markup=False,
            emoji=False,
        )

    def heading(self, text: str) -> None:
        self._console.print()
        self._console.print(self.text(text, "bold"))

    def line(self, *parts: Cell) -> None:
        self._console.print(Text().join(self.text(part) if isinstance(part, str) else part for part in parts))

    def table(self, columns: Iterable[str | TableColumn], rows: Iterable[Iterable[Cell]]) -> None:
        """A table without a frame; a column that is only a title is aligned to the left."""
        table = Table(box=box.ASCII2 if self.plain else box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for entry in columns:
            column = TableColumn(entry) if isinstance(entry, str) else entry
            table.add_column(
                column.title, justify=column.justify, no_wrap=not column.wraps, overflow="fold", header_style="bold"
            )
        for row in rows:
            table.add_row(*(self.text(cell) if isinstance(cell, str) else cell for cell in row))
        self._console.print(table)

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
