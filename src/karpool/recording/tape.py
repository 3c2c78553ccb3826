"""A recording that goes on for as long as somebody watches: one file after the other, each of which stands alone.

`FILE` is what is being written. When it is large or old enough it is renamed to `FILE.20261116T080000Z`, after its
start, and another `FILE` begins with all that is there. So it does, too, after a disk was full for so long that
what waited for room had to be dropped.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

import structlog

from karpool.recording.observer import Observer, copied
from karpool.recording.records import AnyRecord
from karpool.recording.writer import RecordingWriter
from karpool.wire.problems import InputError

_log = structlog.get_logger()
PART_FORMAT: Final = "%Y%m%dT%H%M%SZ"
_NEXT: Final = ".next"


@dataclass(frozen=True, slots=True)
class Rotation:
    """When the next file begins; None: never for this reason."""

    size: int | None = None
    age: timedelta | None = None


class Tape:
    """Keep `observer` told, and `flush` about each minute. Use as a context manager."""

    def __init__(self, path: Path, now: datetime, rotation: Rotation | None = None) -> None:
        """Go on with what was recorded in a file, or begin."""
        self.path = path
        self.records = 0
        self.gaps = 0
        self._rotation = rotation or Rotation()
        self._earlier = 0
        self._dropped_since: datetime | None = None
        self._flushed = now
        _repair(path)
        self._writer = RecordingWriter(path, now)
        history = self._writer.history
        self.observer = Observer(history, self._write)
        self.ended = history.moment(history.time) if self._writer.resumed else None
        """Until when something was recorded before, if it was."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.__exit__()

    @property
    def size(self) -> int:
        """Bytes written, in all files."""
        return self._earlier + self._writer.size

    def gap(self, since: datetime, now: datetime, why: str) -> None:
        """Nothing was seen since a time."""
        self.gaps += 1
        self.observer.gap(since, now, why)

    def flush(self, now: datetime) -> None:
        """Make sure that what was seen survives, and begin another file if it is time; a full disk is waited for."""
        try:
            if self._dropped_since is None:
                self._writer.flush()
                self._flushed = now
            if self._dropped_since is not None or self._is_due(now):
                self._begin_another(now)
        except OSError as error:
            _log.warning("cannot be written, and is tried again", file=str(self.path), error=error.strerror)

    def _write(self, record: AnyRecord) -> None:
        self.records += 1
        if self._dropped_since is not None:
            return
        try:
            self._writer.write(record)
        except OSError as error:
            _log.warning("cannot be written, and so much waits that it is dropped", error=error.strerror)
            self._writer.discard()
            self._dropped_since = self._flushed

    def _is_due(self, now: datetime) -> bool:
        size, age = self._rotation.size, self._rotation.age
        old = age is not None and now - self._writer.history.header.start >= age
        return old or (size is not None and self._writer.size >= size)

    def _begin_another(self, now: datetime) -> None:
        """Begin the next file with all that is known; an OSError leaves everything as it was."""
        done = part_of(self.path, self._writer.history.header.start)
        if done.exists():
            raise FileExistsError(17, f"{done.name} is there already", str(done))
        beginning = self.path.with_name(self.path.name + _NEXT)
        beginning.unlink(missing_ok=True)
        writer = _begun(beginning, now)
        try:
            observer = Observer(writer.history, writer.write)
            if self._dropped_since is not None:
                observer.gap(self._dropped_since, now, "there was no room on the disk")
            copied(self.observer.history, observer)
            writer.flush()
            self.path.rename(done)
        except OSError:
            writer.discard()
            writer.__exit__()
            beginning.unlink(missing_ok=True)
            raise
        beginning.rename(self.path)
        writer.path = self.path
        self.gaps += self._dropped_since is not None
        self._earlier += self._writer.size
        self._writer.__exit__()
        self._writer, self._dropped_since, self._flushed = writer, None, now
        self.observer = Observer(writer.history, self._write)
        _log.info("another file begins", before=done.name)


def part_of(path: Path, start: datetime) -> Path:
    """The name of a file that is complete."""
    return path.with_name(f"{path.name}.{start.strftime(PART_FORMAT)}")


def _begun(path: Path, now: datetime) -> RecordingWriter:
    try:
        return RecordingWriter(path, now)
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from error
        raise


def _repair(path: Path) -> None:
    """Finish the change from one file to the next that a crash interrupted, or undo it."""
    beginning = path.with_name(path.name + _NEXT)
    try:
        if path.exists():
            beginning.unlink(missing_ok=True)
        elif beginning.exists():
            beginning.rename(path)
    except OSError as error:
        raise InputError.at(str(beginning), f"cannot be put in its place: {error.strerror or error}") from error
