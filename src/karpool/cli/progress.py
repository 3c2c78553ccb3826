"""A progress bar on standard error, shown on a terminal only, and removed at the end."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ReportProgress = Callable[[str, int, int | None], None]


@contextmanager
def progress() -> Iterator[ReportProgress]:
    """A function that takes what is being done, how many steps are done, and how many there are, if known."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=5) as bar:
        task = bar.add_task("Reading", total=None)
        yield lambda what, done, most: bar.update(task, description=what, completed=done, total=most)
