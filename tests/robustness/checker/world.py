"""The cluster at any revision of a history."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from tests.robustness.checker.records import Change, Json, Mark, Record, Request, Start

Version = tuple[int, Json | None]


class Rest(NamedTuple):
    """A time without faults: the revisions of its beginning, if that is known, and of its end."""

    quiet: int | None
    end: int


class World:
    """All versions of all objects; "at a revision" means: before that record."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        start = records[0]
        if not isinstance(start, Start):
            raise TypeError("a history starts with its start")
        self.start = start
        self.epoch = datetime.fromisoformat(start.epoch)
        self._versions: dict[str, dict[str, tuple[list[int], list[Json | None]]]] = {}
        self._changes: dict[str, list[int]] = {}
        self.requests: list[tuple[int, Request]] = []
        self.effects: dict[int, list[tuple[int, Change]]] = {}
        """The changes that each request made, by its revision."""
        self.times = [0.0] * len(records)
        self.rests: list[Rest] = []
        quiet: int | None = None
        for revision, record in enumerate(records):
            if not isinstance(record, Start):
                self.times[revision] = record.time
            match record:
                case Change():
                    self._note(revision, record)
                case Request():
                    self.requests.append((revision, record))
                case Mark(what="quiet"):
                    quiet = revision
                case Mark(what="end"):
                    self.rests.append(Rest(quiet, revision))
                case _:
                    pass

    def _note(self, revision: int, change: Change) -> None:
        revisions, objects = self._versions.setdefault(change.kind, {}).setdefault(change.key, ([], []))
        revisions.append(revision)
        objects.append(change.object)
        self._changes.setdefault(change.kind, []).append(revision)
        if change.by >= 0:
            self.effects.setdefault(change.by, []).append((revision, change))

    # -- objects -------------------------------------------------------------------------------------------------

    def get(self, kind: str, key: str, at: int) -> Json | None:
        """An object as it was before a revision."""
        found = self._versions.get(kind, {}).get(key)
        if found is None:
            return None
        place = bisect_left(found[0], at)
        return found[1][place - 1] if place else None

    def listed(self, kind: str, at: int) -> list[Json]:
        """All objects of a kind that there were before a revision."""
        keys = self._versions.get(kind, {})
        return [obj for key in keys if (obj := self.get(kind, key, at)) is not None]

    def keys(self, kind: str) -> Iterator[str]:
        """The keys of all objects of a kind that there ever were."""
        return iter(self._versions.get(kind, {}))

    def versions(self, kind: str, key: str) -> list[Version]:
        """Everything that an object was, each with the revision from which on."""
        revisions, objects = self._versions.get(kind, {}).get(key, ([], []))
        return list(zip(revisions, objects, strict=True))

    def instants(self, kinds: Sequence[str], since: int, at: int) -> list[int]:
        """The revisions between two at which objects of these kinds had become different, and both ends."""
        between = {
            revision + 1
            for kind in kinds
            for revision in self._changes.get(kind, ())[bisect_left(self._changes.get(kind, ()), since) :]
            if revision < at
        }
        return sorted({since, at} | between)

    # -- time ----------------------------------------------------------------------------------------------------

    def moment(self, time: float) -> datetime:
        return self.epoch + timedelta(seconds=time)

    def before(self, time: float) -> int:
        """The revision at a time."""
        return bisect_left(self.times, time)

    def held_since(self, kind: str, key: str, at: int) -> int:
        """The first revision of the object that is there before `at`: since it was created, not since it changed."""
        since = at
        for revision, obj in reversed(self.versions(kind, key)):
            if revision < at:
                if obj is None:
                    break
                since = revision
        return since
