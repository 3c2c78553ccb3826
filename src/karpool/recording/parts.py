"""The files of one recording read as one history.

Each file stands alone: it begins with all that is there. Read after another one, of that beginning only what is
different counts, and its numbers of pods and templates become those of the history so far.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from karpool.recording import records as r
from karpool.recording.history import History, apply_numbered, histories
from karpool.recording.observer import Observer, copied
from karpool.recording.reader import RecordingFile, is_recording
from karpool.wire.problems import InputError

_PART: Final = re.compile(r"\d{8}T\d{6}Z")
_OVERLAP: Final = 60.0
"""Seconds by which a file may begin before the last record of the one before."""
_SEAM: Final = 90.0
"""Seconds between two files after which it counts that nobody looked."""


def holds_recording(path: Path) -> bool:
    """Whether this is a recording, or a directory with files of one."""
    return any(is_recording(entry) for entry in path.iterdir()) if path.is_dir() else is_recording(path)


def open_recording(path: Path) -> "RecordingFile | JoinedFiles":
    """A recording with the files that were completed before it, or all files of a directory."""
    if path.is_dir():
        found = [entry for entry in path.iterdir() if is_recording(entry)]
        if not found:
            raise InputError.at(str(path), "has no recording in it; `karpool record` writes one")
    else:
        before = path.parent.glob(f"{_escaped(path.name)}.*")
        found = [path, *(entry for entry in before if _PART.fullmatch(entry.name[len(path.name) + 1 :]))]
    files = sorted(map(RecordingFile, found), key=lambda file: file.header.start)
    return files[0] if len(files) == 1 else JoinedFiles(path, files)


def _escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


class JoinedFiles:
    """The records of several files, as if they were those of one."""

    def __init__(self, path: Path, files: list[RecordingFile]) -> None:
        self.path = path
        self.files = files
        self.header = files[0].header

    @property
    def torn(self) -> int:
        """How many bytes at the ends of files a crash left unreadable."""
        return sum(file.torn for file in self.files)

    def __iter__(self) -> Iterator[r.AnyRecord]:
        history = History(self.header)
        yield from histories(self.files[0], history)
        for file in self.files[1:]:
            begin = (file.header.start - self.header.start).total_seconds()
            if begin < history.time - _OVERLAP:
                late = f"begins {history.time - begin:.0f} s before the file ahead of it ends"
                raise InputError.at(str(file.path), f"{late}, so they are not files of one recording")
            yield from _Continuation(history, file, begin)


class _Continuation:
    """The records of another file as those of a history, which goes on with them."""

    def __init__(self, history: History, file: RecordingFile, begin: float) -> None:
        self._history = history
        self._file = file
        self._begin = begin
        self._own = History(file.header)
        self._told: list[r.AnyRecord] = []
        self._observer = Observer(history, self._told.append)
        self._pods: dict[int, int] = {}
        self._templates: dict[int, int] = {}

    def __iter__(self) -> Iterator[r.AnyRecord]:
        first: float | None = None
        gaps: list[r.Gap] = []
        joined = False
        for number, record in enumerate(self._file, start=2):
            if isinstance(record, r.TimedRecord):
                first = record.t if first is None else first
                if not joined and record.t > first:
                    joined = True
                    self._join(gaps)
            apply_numbered(self._file, self._own, number, record)
            if joined and isinstance(record, r.Template):
                self._templates[record.id] = self._observer.template(record.pod)
            elif joined:
                self._observer.tell(self._translated(record))
            elif isinstance(record, r.Gap):
                gaps.append(record)
            yield from self._told
            self._told.clear()
        if not joined:
            self._join(gaps)
            yield from self._told

    def _join(self, gaps: list[r.Gap]) -> None:
        """What was different at the first moment of the file, and what its numbers are from now on."""
        history, own, observer = self._history, self._own, self._observer
        for gap in gaps:
            observer.gap(own.moment(gap.since), own.moment(gap.t), gap.why)
        if not gaps and self._begin - history.time > _SEAM:
            observer.gap(history.moment(history.time), own.header.start, "nobody recorded")
        copied(own, observer)
        self._pods = {number: observer.number_of(own.key_of(number)) for number in own.pods}
        self._templates = {number: observer.template(pod) for number, pod in own.templates.items()}

    def _translated(self, record: r.AnyRecord) -> r.AnyRecord:
        changes: dict[str, Any] = {}
        if isinstance(record, r.Born):
            self._pods[record.pod] = self._observer.number_of(self._own.key_of(record.pod))
        if isinstance(record, r.TimedRecord):
            changes["t"] = max(self._history.time, self._later(record.t))
        for name, numbers in (("pod", self._pods), ("template", self._templates)):
            if hasattr(record, name):
                changes[name] = numbers[getattr(record, name)]
        for name in ("created", "since"):
            if getattr(record, name, None) is not None:
                changes[name] = self._later(getattr(record, name))
        return replace(record, **changes)

    def _later(self, time: float) -> float:
        return round(time + self._begin, 1)
