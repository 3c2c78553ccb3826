"""Objects of one kind, by key: immutable, replaced on change, watched.

Watchers are called at once, in the order in which they subscribed, and only take note; one that wants to answer with a
change of its own schedules that, so that nobody hears of changes in the wrong order.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from karpool.wire.objects import Object

T = TypeVar("T", bound=Object)
Watcher = Callable[[T | None, T | None], None]


class Versions:
    """The number of the latest change in a store."""

    def __init__(self) -> None:
        self.latest = 0

    def next(self) -> int:
        """The number of a new change."""
        self.latest += 1
        return self.latest


class Store(Generic[T]):
    """The objects of one kind; `version` is that of the last change among them."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._held: dict[str, T] = {}
        self._watchers: list[Watcher[T]] = []
        self._listed: tuple[int, tuple[T, ...]] = (0, ())
        self.version = 0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[T]:
        return iter(self.listed())

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def get(self, key: str) -> T | None:
        """The object of a key, if it is there."""
        return self._held.get(key)

    def listed(self) -> tuple[T, ...]:
        """All objects, in the order in which they came; the same tuple until one changes."""
        # Another thread may change the shelf meanwhile, so what is kept says what it was made of.
        version, listed = self._listed
        if version != self.version:
            version = self.version
            listed = tuple(self._held.values())
            self._listed = (version, listed)
        return listed

    def put(self, value: T) -> T:
        """Create or replace an object."""
        key = value.key
        old = self._held.get(key)
        self._held[key] = value
        self._tell(old, value)
        return value

    def remove(self, key: str) -> None:
        """Take an object away, if it is there."""
        old = self._held.pop(key, None)
        if old is not None:
            self._tell(old, None)

    def watch(self, watcher: Watcher[T]) -> None:
        """Be told of every change: what was before, and what is now."""
        self._watchers.append(watcher)

    def _tell(self, old: T | None, new: T | None) -> None:
        self.version = self._versions.next()
        for watcher in self._watchers:
            watcher(old, new)
