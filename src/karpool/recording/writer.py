"""Writes a recording to a file that only grows, so that a crash costs at most what was not yet flushed."""

import fcntl
import os
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import msgspec

from karpool.live import USER_AGENT
from karpool.recording.frames import packed
from karpool.recording.history import History, histories
from karpool.recording.reader import RecordingFile, is_recording
from karpool.recording.records import AnyRecord, Header
from karpool.wire.objects import encode_value
from karpool.wire.problems import InputError

_ENCODER: Final = msgspec.json.Encoder(enc_hook=encode_value)
_FULL: Final = 2**19
"""Bytes of lines after which a frame ends by itself: damage costs no more, and larger ones are hardly packed better."""


class RecordingWriter:
    """An open recording; `history` is what its readers know. Use as a context manager, and flush now and then."""

    def __init__(self, path: Path, start: datetime, source: str = "cluster") -> None:
        """Go on with the recording in a file, or begin one; nobody else may write to it meanwhile."""
        self.path = path
        self._lines = bytearray()
        self.resumed = path.exists() and path.stat().st_size > 0
        if self.resumed and not is_recording(path):
            raise InputError.at(str(path), "is there and is no recording; name another file")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InputError.at(str(path), f"cannot be written: {error.strerror or error}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.history = self._resume() if self.resumed else self._begin(start, source)
        except BlockingIOError as error:
            os.close(self._file)
            raise InputError.at(str(path), "is being written by another recorder") from error
        except BaseException:
            os.close(self._file)
            raise

    def _begin(self, start: datetime, source: str) -> History:
        history = History(Header(start=start.replace(microsecond=0), source=source, recorder=USER_AGENT))
        self.write(history.header)
        self.flush()
        return history

    def _resume(self) -> History:
        """What the file says so far; a torn tail is cut off."""
        file = RecordingFile(self.path)
        history = History(file.header)
        for _ in histories(file, history):
            pass
        if file.torn:
            os.ftruncate(self._file, file.frames.end)
        return history

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.flush()
        finally:
            os.close(self._file)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._file).st_size

    def write(self, record: AnyRecord) -> None:
        self._lines += _ENCODER.encode(record) + b"\n"
        if len(self._lines) >= _FULL:
            self.flush()

    def discard(self) -> None:
        """Forget what was written and is not yet in the file."""
        self._lines.clear()

    def flush(self) -> None:
        """Make a frame of what was written; an OSError leaves it for the next time, and the file as it was."""
        if not self._lines:
            return
        before = self.size
        try:
            _write_all(self._file, packed(bytes(self._lines)))
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, before)
            raise
        self._lines.clear()


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
