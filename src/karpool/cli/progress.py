"""A progress bar on standard error, shown on a terminal only, and removed at the end.

Each phase has its own number of steps, and a bar that only moves where nobody knows it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from karpool.packing.compilation import watching

if TYPE_CHECKING:
    from rich.progress import Progress

ReportProgress = Callable[[str, int, int | None], None]


@contextmanager
def progress() -> Iterator[ReportProgress]:
    """A function that takes what is being done, how many steps are done, and how many there are, if known.

    Kernels that have to be compiled on the way, as at the first use of a version, are shown by themselves.
    """
    if not sys.stderr.isatty():
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=5) as bar:
        bar.add_task("Reading", total=None)

        def report(what: str, done: int, most: int | None) -> None:
            show(bar, what, done, most)

        with watching(lambda done, most: report("Compiling kernels, once for this version", done, most)):
            yield report


def show(bar: "Progress", what: str, done: int, most: int | None) -> None:
    """Show how far the phase is that is going on; its number of steps is never exceeded."""
    (task,) = bar.tasks
    # To rich, None means that the number of another phase still holds, and a phase that is finished stops the clock.
    task.total, task.finished_time = most, None
    bar.update(task.id, description=what, completed=done if most is None else min(done, most))
