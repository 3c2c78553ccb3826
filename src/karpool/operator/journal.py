"""The decision journal: one JSON line per decision, in files that are rotated when they are full.

A failing disk stops nothing: a line that cannot be written is lost, and the log says so.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import structlog

from karpool.report.journals.journal_lines import JournalLines
from karpool.report.journals.journal_records import JournalRecord

_LOG_INTERVAL: Final = timedelta(minutes=1)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """The file of the decision journal; without a path nothing is written."""

    path: Path | None = None
    largest: int = 64 * 2**20
    """At how many bytes a new file begins."""
    old_files: int = 5


class Journal(JournalLines):
    """The current file and the older ones beside it: `journal.jsonl`, `journal.jsonl.1`, and so on."""

    def __init__(self, settings: JournalSettings, *, on_failure: Callable[[], None] = lambda: None) -> None:
        """`on_failure` is called for every line that is lost."""
        super().__init__()
        self._settings = settings
        self._on_failure = on_failure
        self._file: int | None = None
        self._failure_logged: datetime | None = None

    def write(self, record: JournalRecord) -> None:
        """Append a record; never raises because of the disk."""
        path = self._settings.path
        if path is None:
            return
        try:
            self._append(path, msgspec.json.encode(record) + b"\n")
        except OSError as error:
            self._failed(record.time, error)

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, path: Path, line: bytes) -> None:
        file = self._opened(path)
        size = os.fstat(file).st_size
        if size and size + len(line) > self._settings.largest:
            self.close()
            self._rotate(path)
            file, size = self._opened(path), 0
        try:
            _write_all(file, line)
        except OSError:
            # Half a line would break the next one.
            os.ftruncate(file, size)
            raise

    def _opened(self, path: Path) -> int:
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
            _end_line(self._file)
        return self._file

    def _rotate(self, path: Path) -> None:
        """Give every file the next number; the oldest is deleted."""
        self.began_anew()
        if self._settings.old_files == 0:
            path.unlink(missing_ok=True)
            return
        for number in range(self._settings.old_files - 1, 0, -1):
            younger = _numbered(path, number)
            if younger.exists():
                younger.replace(_numbered(path, number + 1))
        path.replace(_numbered(path, 1))

    def _failed(self, now: datetime, error: OSError) -> None:
        self._on_failure()
        if self._failure_logged is None or now - self._failure_logged >= _LOG_INTERVAL:
            self._failure_logged = now
            log.error(
                "journal write failed; decisions are not recorded", path=str(self._settings.path), error=str(error)
            )


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _end_line(file: int) -> None:
    """End the half line that a killed process left."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        _write_all(file, b"\n")
