"""A progress bar for long work: on a terminal, on standard error, and gone when the work is done."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, int, int | None], None]


@contextmanager
def progress() -> Iterator[Tell]:
    """Give a function that is told what is being done and how far it is; it shows nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=5) as bar:
        task = bar.add_task("Reading", total=None)
        yield lambda what, done, most: bar.update(task, description=what, completed=done, total=most)
