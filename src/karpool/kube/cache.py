"""The store of a live cluster: changes that watches bring wait here until the controller has time for them.

So does what an own write answered, and no decision is made without it; an older state of the same object that a watch
brings later is ignored.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from karpool.kube.store import Store
from karpool.wire.objects import Object

T = TypeVar("T", bound=Object)


def version_of(thing: Object) -> int:
    """An object's resource version as a number; 0 if it is none."""
    return version_number(thing.metadata.resource_version)


def version_number(text: str) -> int:
    """A resource version as a number; 0 if it is none."""
    return int(text) if text.isdecimal() else 0


class ChangeQueue:
    """Changes of all kinds in the order in which they came."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self._queue: deque[Callable[[], None]] = deque()

    def add(self, change: Callable[[], None]) -> None:
        """Note a change."""
        self._queue.append(change)
        self.waiting.set()

    def apply(self) -> int:
        """Make all noted changes; how many there were."""
        count = len(self._queue)
        for _ in range(count):
            self._queue.popleft()()
        return count


class CacheFeed(Generic[T]):
    """Keeps one shelf in step with a watch and with own writes."""

    def __init__(self, store: Store[T], changes: ChangeQueue) -> None:
        self.store = store
        self._changes = changes
        self._seen = 0

    # -- what a watch brings -------------------------------------------------------------------------------------

    def put(self, thing: T) -> None:
        """Note an object that came or changed."""
        self._changes.add(lambda: self._put(thing))

    def remove(self, thing: T) -> None:
        """Note an object that went."""
        self._changes.add(lambda: self._remove(thing))

    def replace(self, things: Sequence[T], resource_version: str) -> None:
        """Note everything there was at a version."""
        self._changes.add(lambda: self._replace(things, version_number(resource_version)))

    def _put(self, thing: T) -> None:
        self._seen = max(self._seen, version_of(thing))
        if not self._knows_better(thing):
            self.store.put(thing)

    def _remove(self, thing: T) -> None:
        self._seen = max(self._seen, version_of(thing))
        held = self.store.get(thing.key)
        if held is not None and held.metadata.uid == thing.metadata.uid:
            self.store.remove(thing.key)

    def _replace(self, things: Sequence[T], version: int) -> None:
        self._seen = max(self._seen, version)
        there = {thing.key for thing in things}
        for held in self.store.listed():
            # An own write that is newer than the list: the watch will tell what became of it.
            if held.key not in there and version_of(held) <= version:
                self.store.remove(held.key)
        for thing in things:
            if not self._knows_better(thing):
                self.store.put(thing)

    def _knows_better(self, thing: T) -> bool:
        held = self.store.get(thing.key)
        return held is not None and version_of(held) >= version_of(thing) > 0

    # -- own writes ----------------------------------------------------------------------------------------------

    def record_write(self, thing: T) -> None:
        """Note what the API server answered to a write; it counts as soon as changes are made."""
        self._changes.add(lambda: self._written(thing))

    def _written(self, thing: T) -> None:
        gone = thing.key not in self.store and version_of(thing) <= self._seen
        finished = thing.metadata.deletion_timestamp is not None and not thing.metadata.finalizers
        if not gone and not finished and not self._knows_better(thing):
            self.store.put(thing)
