"""The recording that an import makes: it appears under its name when it is complete, and not before."""

import os
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from karpool.recording.observer import Observer
from karpool.recording.records import AnyRecord
from karpool.recording.writer import RecordingWriter
from karpool.wire.problems import InputError

Report = Callable[[str, int, int | None], None]
"""Takes what is being done, how many steps are done, and how many there are, if known."""
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)


class ImportedFile:
    """Use as a context manager; `begin` once, and tell the observer that it returns what was seen."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        """What the source does not say, in sentences."""
        self._temporary: Path | None = None
        self._writer: RecordingWriter | None = None
        self._observer: Observer | None = None
        self.records = 0
        check_new(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        try:
            if self._writer is not None:
                with self._writer:
                    if failure is not None:
                        self._writer.discard()
            if failure is None and self._temporary is not None:
                check_new(self.path)
                self._temporary.rename(self.path)
                self._temporary = None
        finally:
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)

    def begin(self, start: datetime, source: str) -> Observer:
        """The observer of a history that starts at a time."""
        if start < _EARLIEST:
            raise InputError.at(source, f"begins on {start.date()}, which no cluster did")
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}-", dir=self.path.parent)
        os.close(handle)
        self._temporary = Path(name)
        self._writer = RecordingWriter(self._temporary, start, source)
        self._observer = Observer(self._writer.history, self._write)
        return self._observer

    def _write(self, record: AnyRecord) -> None:
        if self._writer is not None:
            self._writer.write(record)
            self.records += 1

    @property
    def length(self) -> float:
        """How many seconds it spans."""
        return 0.0 if self._observer is None else self._observer.history.time

    def lacks(self, kinds: Iterable[str], why: str, now: datetime) -> None:
        """Objects of these kinds are not in the source; told once, and written down for each."""
        if self._observer is not None:
            for kind in kinds:
                self._observer.missed(kind, why, now)
        self.note(why)

    def note(self, why: str) -> None:
        """Say something that whoever imports should know, once."""
        if why not in self.notes:
            self.notes.append(why)


def check_new(path: Path) -> None:
    """Refuse a name under which there is something, or under which nothing can be."""
    if path.exists() or path.is_symlink():
        raise InputError.at(str(path), "is there already; name a new file")
    if not path.parent.is_dir():
        raise InputError.at(str(path), "cannot be written: its directory does not exist")
