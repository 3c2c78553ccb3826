"""Caches of one kind of object each, filled by a watch and by the answers to own writes.

Changes wait in a queue until their reader has time for them. The answer to an own write is queued too, so that no
decision is made without it; an older state of the same object that a watch delivers later is ignored.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from karpool.kube.store import Store
from karpool.wire.objects import Object

T = TypeVar("T", bound=Object)


def version_of(obj: Object) -> int:
    return version_number(obj.metadata.resource_version)


def version_number(text: str) -> int:
    """A resource version as a number; 0 if it is none."""
    return int(text) if text.isdecimal() else 0


class ChangeQueue:
    """Changes of all kinds, in the order in which they came."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self._queue: deque[Callable[[], None]] = deque()

    def add(self, change: Callable[[], None]) -> None:
        self._queue.append(change)
        self.waiting.set()

    def apply(self) -> int:
        """Apply all queued changes; returns how many there were."""
        count = len(self._queue)
        for _ in range(count):
            self._queue.popleft()()
        return count


class CacheFeed(Generic[T]):
    """Queues what a watch and own writes say of one kind, and applies it to a store."""

    def __init__(self, store: Store[T], changes: ChangeQueue) -> None:
        self.store = store
        self._changes = changes
        self._seen_version = 0

    def put(self, obj: T) -> None:
        self._changes.add(lambda: self._put(obj))

    def remove(self, obj: T) -> None:
        self._changes.add(lambda: self._remove(obj))

    def replace(self, objects: Sequence[T], resource_version: str) -> None:
        self._changes.add(lambda: self._replace(objects, version_number(resource_version)))

    def record_write(self, obj: T) -> None:
        """Queue what the API server answered to a write."""
        self._changes.add(lambda: self._put_written(obj))

    def _put(self, obj: T) -> None:
        self._seen_version = max(self._seen_version, version_of(obj))
        self._put_if_newer(obj)

    def _put_if_newer(self, obj: T) -> None:
        cached = self.store.get(obj.key)
        if cached is None or not version_of(cached) >= version_of(obj) > 0:
            self.store.put(obj)

    def _remove(self, obj: T) -> None:
        self._seen_version = max(self._seen_version, version_of(obj))
        cached = self.store.get(obj.key)
        if cached is not None and cached.metadata.uid == obj.metadata.uid:
            self.store.remove(obj.key)

    def _replace(self, objects: Sequence[T], version: int) -> None:
        self._seen_version = max(self._seen_version, version)
        keys = {obj.key for obj in objects}
        for cached in self.store.listed():
            # An own write may be newer than the list: the watch will say what became of it.
            if cached.key not in keys and version_of(cached) <= version:
                self.store.remove(cached.key)
        for obj in objects:
            self._put_if_newer(obj)

    def _put_written(self, obj: T) -> None:
        deleted_since = obj.key not in self.store and version_of(obj) <= self._seen_version
        finalized = obj.metadata.deletion_timestamp is not None and not obj.metadata.finalizers
        if not deleted_since and not finalized:
            self._put_if_newer(obj)
