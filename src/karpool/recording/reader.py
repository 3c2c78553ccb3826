"""Reads a recording record by record; input is not trusted, and says what is wrong where."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from karpool.recording.frames import Frames, head_of
from karpool.recording.records import FORMAT, VERSION, AnyRecord, Header, TimedRecord
from karpool.wire.objects import decode_value
from karpool.wire.problems import InputError

_DECODER: Final[msgspec.json.Decoder[AnyRecord]] = msgspec.json.Decoder(AnyRecord, dec_hook=decode_value)
LONGEST: Final = 100 * 366 * 86400.0
"""Seconds: no recording is longer, and arithmetic with its times is safe."""


class _Named(msgspec.Struct):
    format: str = ""
    version: int = 0


def is_recording(path: Path) -> bool:
    """Whether a file begins as a recording does; one that cannot be read does not."""
    return FORMAT.encode() in head_of(path).partition(b"\n")[0]


class RecordingFile:
    """The records of a file, as often as they are asked for; `torn` is known after the first time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header = self._read_header()
        self.frames = Frames(path)

    @property
    def torn(self) -> int:
        """How many bytes at the end a crash left unreadable."""
        return self.frames.torn

    def _read_header(self) -> Header:
        first = next(iter(Frames(self.path)), b"")
        line, _, _ = first.partition(b"\n")
        try:
            named = msgspec.json.decode(line, type=_Named)
        except msgspec.MsgspecError:
            named = _Named()
        if named.format != FORMAT:
            raise InputError.at(str(self.path), "is no recording; `karpool record` writes one")
        if named.version != VERSION:
            message = f"is a recording of version {named.version}, and this Karpool reads version {VERSION}"
            raise InputError.at(str(self.path), message)
        header = self._decoded(line, 1)
        if not isinstance(header, Header):
            raise InputError.at(str(self.path), "does not begin with a header")
        return header

    def __iter__(self) -> Iterator[AnyRecord]:
        """All records behind the header; times never go back."""
        self.frames = Frames(self.path)
        number, latest = 0, 0.0
        for frame in self.frames:
            for line in frame.splitlines():
                number += 1
                if number == 1:
                    continue
                record = self._decoded(line, number)
                if isinstance(record, Header):
                    self._refuse(number, "is a second header")
                if isinstance(record, TimedRecord):
                    if not latest <= record.t <= LONGEST:
                        self._refuse(number, f"is of {record.t:g} s, after one of {latest:g} s")
                    latest = record.t
                yield record

    def _decoded(self, line: bytes, number: int) -> AnyRecord:
        try:
            return _DECODER.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError.at(str(self.path), f"record {number} cannot be read: {error}") from error

    def _refuse(self, number: int, message: str) -> None:
        raise InputError.at(str(self.path), f"record {number} {message}")
