"""Objects of one kind by key: immutable, replaced on change, with watchers.

Watchers are called at once, in the order in which they subscribed, and must not change the store. One that wants to
change something enqueues that for later, so that all watchers see changes in the same order.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from karpool.wire.objects import Object

T = TypeVar("T", bound=Object)
Watcher = Callable[[T | None, T | None], None]


class Versions:
    """Numbers the changes of stores that belong together."""

    def __init__(self) -> None:
        self.latest = 0

    def next(self) -> int:
        self.latest += 1
        return self.latest


class Store(Generic[T]):
    """The objects of one kind; `version` is that of the last change among them."""

    def __init__(self, versions: Versions | None = None) -> None:
        self._versions = versions or Versions()
        self._objects: dict[str, T] = {}
        self.get: Callable[[str], T | None] = self._objects.get
        self._watchers: list[Watcher[T]] = []
        self._listed: tuple[int, tuple[T, ...]] = (0, ())
        self.version = 0
        self.prepare: Callable[[T], T] | None = None
        """What is done to every object before it is kept."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self.listed())

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def listed(self) -> tuple[T, ...]:
        """All objects, in the order in which they came; the same tuple until one changes."""
        # Another thread may change the store meanwhile, so the tuple is kept with the version that it was made of.
        version, listed = self._listed
        if version != self.version:
            version = self.version
            listed = tuple(self._objects.values())
            self._listed = (version, listed)
        return listed

    def put(self, value: T) -> T:
        if self.prepare is not None:
            value = self.prepare(value)
        key = value.key
        old = self._objects.get(key)
        self._objects[key] = value
        self._notify(old, value)
        return value

    def remove(self, key: str) -> None:
        old = self._objects.pop(key, None)
        if old is not None:
            self._notify(old, None)

    def watch(self, watcher: Watcher[T]) -> None:
        """Call `watcher` with the old and the new object on every change."""
        self._watchers = [*self._watchers, watcher]

    def unwatch(self, watcher: Watcher[T]) -> None:
        """Call `watcher` no more; another thread may be calling it just now."""
        self._watchers = [known for known in self._watchers if known is not watcher]

    def _notify(self, old: T | None, new: T | None) -> None:
        self.version = self._versions.next()
        for watcher in self._watchers:
            watcher(old, new)
