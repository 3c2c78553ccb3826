"""The journal of a controller as it grows: read once, and then what has been added since."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from karpool.report.journals.timeline import Timeline

_MOST_FILES: Final = 100


class JournalFile:
    """A journal and the older files beside it: `journal.jsonl.2`, `journal.jsonl.1`, `journal.jsonl`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._timeline: Timeline | None = None
        self._file = (0, 0)
        self._read = 0

    def __str__(self) -> str:
        return str(self._path)

    def timeline(self) -> Timeline:
        """Everything until now; a file that was begun anew is read with the older ones, from their beginning."""
        file = self._identity()
        if self._timeline is None or file != self._file or self._size() < self._read:
            self._file, self._read = file, 0
            self._timeline = Timeline(self._all())
        else:
            self._timeline.read(self._more(self._path))
        return self._timeline

    def _all(self) -> Iterator[bytes]:
        older = [self._path.with_name(f"{self._path.name}.{number}") for number in range(1, _MOST_FILES)]
        for path in reversed([path for path in older if path.exists()]):
            with path.open("rb") as lines:
                yield from lines
        yield from self._more(self._path)

    def _more(self, path: Path) -> Iterator[bytes]:
        if not path.exists():
            return
        with path.open("rb") as lines:
            lines.seek(self._read)
            yield from lines
            self._read = lines.tell()

    def _identity(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return (0, 0)
        return found.st_dev, found.st_ino

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0
