"""What is known of kernels that are being compiled, for those who wait: which there are, and how many are done.

It imports nothing heavy, so that a progress bar can watch before Numba is loaded.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watcher = Callable[[int, int], None]
"""Gets how many kernels are compiled, and how many there are so far."""

_kernels: set[str] = set()
_compiled: set[str] = set()
_watchers: list[Watcher] = []
_lost: list[OSError] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell a watcher whenever the compilation of a kernel begins or ends, as long as the block lasts."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def declared(kernel: str) -> None:
    """A kernel that may have to be compiled."""
    _kernels.add(kernel)


def begun() -> None:
    """A kernel was not found compiled, and is compiled now."""
    _tell()


def finished(kernel: str) -> None:
    _compiled.add(kernel)
    _tell()


def not_kept(error: OSError) -> None:
    """What was compiled could not be written to disk."""
    _lost.append(error)


def compiled_now() -> int:
    """How many kernels this process has compiled."""
    return len(_compiled)


def failure() -> OSError | None:
    """Why what was compiled is not on disk, if it is not."""
    return _lost[0] if _lost else None


def _tell() -> None:
    for watcher in _watchers:
        watcher(len(_compiled), len(_kernels))
