"""`karpool warmup`: compile the kernels now, so that the first plan does not wait for that."""

import sys
import time
from pathlib import Path
from typing import Final

import click

from karpool.cli.errors import FAILED, say
from karpool.cli.progress import progress

EPILOG: Final = """\b
WHAT IT DOES
  Karpool's inner loops are compiled at their first use, which takes about a minute,
  and kept in ~/.cache/karpool (XDG_CACHE_HOME, NUMBA_CACHE_DIR). This does it
  beforehand, as for an image. A new version of Karpool or of Numba compiles anew;
  whatever is compiled already takes no time.
\b
EXAMPLES
  karpool warmup
  NUMBA_CACHE_DIR=/kernels karpool warmup    # in an image; the folder may be read-only later
\b
EXIT STATUS
  0  all kernels are compiled and kept
  1  they cannot be kept: the folder cannot be written, or others can write it
"""


@click.command(epilog=EPILOG)
@click.pass_context
def warmup(context: click.Context) -> None:
    """Compile the kernels, so that the first plan does not wait a minute for that."""
    from karpool.optimization.kernels import __name__ as package
    from karpool.packing.compilation import compiled_now, failure
    from karpool.packing.kernels import folder_of
    from karpool.wire.ownership import distrusted

    folder = folder_of(package)
    problem = distrusted(folder)
    if problem is not None:
        context.exit(_not_kept(folder, problem))
    if not sys.stderr.isatty():
        click.echo("karpool: compiling kernels that are not compiled yet, which takes up to a minute", err=True)
    start = time.perf_counter()
    with progress() as report:
        report("Loading the engine", 0, None)
        from karpool.optimization.warmup import warm_up

        warm_up()
    lost = failure()
    if lost is not None:
        context.exit(_not_kept(folder, lost.strerror or str(lost)))
    seconds = time.perf_counter() - start
    done = f"{compiled_now()} kernels compiled in {seconds:.0f} s" if compiled_now() else "all kernels were compiled"
    click.echo(f"{done}; they are in {folder.parent}")


def _not_kept(folder: Path, why: str) -> int:
    return say(f"{folder.parent}: compiled kernels cannot be kept: {why}", FAILED)
