"""A series of snapshots as a history: what differs between two of them is seen at the time of the later one."""

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from karpool.model.reading.loading import Loaded, load
from karpool.recording.history import RECORDED
from karpool.recording.imports.imported_file import ImportedFile, Report
from karpool.recording.records import EVICTION
from karpool.wire.problems import InputError
from karpool.wire.sources import find_sources

SOURCE: Final = "snapshots"
_STAMP: Final = re.compile(
    r"(?<!\d)(20\d\d)-?([01]\d)-?([0-3]\d)(?:[T_ -]?([0-2]\d)[:_-]?([0-5]\d)(?:[:_-]?([0-5]\d))?Z?)?(?!\d)"
)
_HOW: Final = (
    "put the time into the names, as 20261116T080000Z, and the files of one snapshot into a folder with such a name"
)
_WHY_NOT: Final = "snapshots do not say which pods were evicted between them"


class Taken(NamedTuple):
    """A snapshot and when it was taken."""

    at: datetime
    name: str


def import_snapshots(sources: Sequence[str], file: ImportedFile, report: Report) -> None:
    """Files or folders, each with a whole cluster, or directories of such; two at least."""
    series = taken(sources)
    observer = None
    for number, (at, name) in enumerate(series):
        report("Reading snapshots", number, len(series))
        loaded = load([name], stdin=sys.stdin.buffer)
        if observer is None:
            observer = file.begin(at, SOURCE)
            file.lacks((EVICTION,), _WHY_NOT, at)
        observer.listed(loaded.objects, at, _kinds(loaded))
        observer.alive(at)


def taken(sources: Sequence[str]) -> list[Taken]:
    """The snapshots in the order of their times, which their names say, or else when the files were written."""
    names_found = dict.fromkeys(_snapshot(entry.name, source) for source in sources for entry in find_sources([source]))
    found = sorted(Taken(time_of(name), name) for name in names_found)
    if len(found) < 2:  # noqa: PLR2004 - a history has a beginning and an end
        names = ", ".join(sources)
        raise InputError.at(names, "is one snapshot, and a history needs at least two; `simulate` takes one as it is")
    for before, after in pairwise(found):
        if before.at == after.at:
            message = f"is of the same time as {before.name}; {_HOW}"
            raise InputError.at(after.name, message)
    return found


def _snapshot(file: str, source: str) -> str:
    """The snapshot that a file is, or is part of: a folder whose name has a time where that of the file has none.

    `source` is what was named, the file itself or a directory above it.
    """
    path = Path(file)
    if file == source or _STAMP.search(path.name):
        return file
    above = (folder for folder in path.parents if folder.is_relative_to(source))
    return next((str(folder) for folder in above if _STAMP.search(folder.name)), file)


def time_of(name: str) -> datetime:
    """When a snapshot was taken."""
    for match in _STAMP.finditer(Path(name).name):
        numbers = [int(part or 0) for part in match.groups()]
        try:
            return datetime(*numbers, tzinfo=UTC)  # type: ignore[arg-type,misc]
        except ValueError:
            continue
    try:
        return datetime.fromtimestamp(Path(name).stat().st_mtime, UTC).replace(microsecond=0)
    except OSError as error:
        raise InputError.at(name, f"cannot be read: {error.strerror or error}") from error


def _kinds(loaded: Loaded) -> tuple[str, ...]:
    """What a file speaks of: kinds that it does not name at all may be there all the same."""
    return ("Pod", *(kind for kind in RECORDED if kind in loaded.listed))
