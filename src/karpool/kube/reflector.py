"""Keeps a copy of one kind of object up to date: lists all objects, then watches changes, and recovers from failures.

Where the server can stream the initial list over a watch, that is used; otherwise objects are listed in pages.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from karpool.kube.backoff import Backoff
from karpool.kube.client import Client
from karpool.kube.errors import ApiError, GoneError, InvalidError, UnreachableError, UnreadableError
from karpool.kube.list_watch import WatchEvent
from karpool.kube.resources import Resource
from karpool.wire.objects import Object

T = TypeVar("T", bound=Object)
T_contra = TypeVar("T_contra", contravariant=True)
OnError = Callable[[Resource[Any], Exception], None]

_BAD_REQUEST: Final = 400
# Statuses that say nothing about the version from which a watch resumes.
_NOT_ABOUT_THE_VERSION: Final = (401, 403, 429)
_MOST_RESUMPTIONS: Final = 3
_SHORT_WATCH_SECONDS: Final = 1.0


class Sink(Protocol[T_contra]):
    """Where the copy is kept."""

    def put(self, obj: T_contra) -> None:
        """Add or replace an object."""

    def remove(self, obj: T_contra) -> None:
        """Remove an object of which perhaps only the metadata is known."""

    def replace(self, objects: Sequence[T_contra], resource_version: str) -> None:
        """Replace the whole copy by all objects of a version; objects that are newer than that stay."""


class _NoBookmarkError(Exception):
    """The initial events did not come to their end."""


@dataclass(eq=False)
class Reflector(Generic[T]):
    """Feeds a sink from list and watch; while a list is read again, the sink keeps what it has."""

    client: Client
    resource: Resource[T]
    sink: Sink[T]
    _: KW_ONLY
    namespace: str = ""
    field_selector: str = ""
    on_error: OnError = lambda _resource, _error: None
    backoff: Backoff = field(default_factory=Backoff)
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    watch_seconds: float = 300
    bookmark_seconds: float = 10
    synced: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    last_activity: float = field(default=0.0, init=False)
    """When the server last sent anything, on the loop's clock."""
    disconnected_at: float | None = field(default=None, init=False)
    """Since when there is no watch, on the loop's clock; None while there is one."""
    _version: str = field(default="", init=False)
    _can_stream: bool = field(default=True, init=False)
    _failures: int = field(default=0, init=False)
    _limit: asyncio.Timeout | None = field(default=None, init=False)

    @property
    def version(self) -> str:
        """From where the watch goes on."""
        return self._version

    def cut(self) -> None:
        """End the watch, which brings nothing any more, and start another one from the same version."""
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._list_and_watch()
            except ApiError as error:
                self._failed(error)
                await self.sleep(self.backoff.next())
            else:
                # A server that ends every watch at once must not be called in a tight loop.
                if loop.time() - started < _SHORT_WATCH_SECONDS:
                    await self.sleep(self.backoff.next())

    async def _list_and_watch(self) -> None:
        if self._version:
            await self._watch(initial=False)
            return
        if self._can_stream:
            try:
                await self._watch(initial=True)
                return
            except ApiError as error:
                if not isinstance(error, InvalidError) and error.status != _BAD_REQUEST:
                    raise
            except _NoBookmarkError:
                pass
            self._can_stream = False
        listed = await self.client.list(self.resource, namespace=self.namespace, field_selector=self.field_selector)
        self._note_activity()
        self._replace(listed.items, listed.resource_version)
        await self._watch(initial=False)

    async def _watch(self, *, initial: bool) -> None:
        """Apply changes until the server ends the watch; with `initial`, first gather all objects."""
        gathered: dict[str, T] | None = {} if initial else None
        events = self.client.watch(
            self.resource,
            self._version,
            namespace=self.namespace,
            field_selector=self.field_selector,
            initial_events=initial,
            timeout_seconds=self.watch_seconds * random.uniform(0.8, 1),
            on_open=(lambda: None) if initial else self._connected,
        )
        try:
            async with asyncio.timeout(self.bookmark_seconds if initial else None) as limit, aclosing(events):
                self._limit = None if initial else limit
                async for event in events:
                    self._note_activity()
                    if gathered is None:
                        self._apply(event)
                    elif event.ends_initial:
                        self._replace(tuple(gathered.values()), event.resource_version)
                        gathered = None
                        limit.reschedule(None)
                        self._limit = limit
                    else:
                        _gather(gathered, event)
                        limit.reschedule(self.last_activity + self.bookmark_seconds)
        except TimeoutError as error:
            if gathered is None:
                raise UnreachableError("the watch was silent", about=f"watch {self.resource.plural}") from error
            raise _NoBookmarkError from error
        finally:
            self._limit = None
        if gathered is not None:
            raise _NoBookmarkError

    def _apply(self, event: WatchEvent[T]) -> None:
        if event.type == "DELETED":
            self.sink.remove(event.object)
        elif event.type != "BOOKMARK":
            self.sink.put(event.object)
        self._version = event.resource_version or self._version

    def _replace(self, objects: Sequence[T], version: str) -> None:
        self.sink.replace(objects, version)
        self._version = version
        self._connected()
        self.synced.set()

    def _connected(self) -> None:
        self.disconnected_at = None

    def _note_activity(self) -> None:
        self.last_activity = asyncio.get_running_loop().time()
        self._failures = 0
        self.backoff.reset()

    def _failed(self, error: ApiError) -> None:
        """Decide whether to resume from the same version, and report the error."""
        self._failures += 1
        if self.disconnected_at is None:
            self.disconnected_at = asyncio.get_running_loop().time()
        stuck = error.status and error.status not in _NOT_ABOUT_THE_VERSION and self._failures >= _MOST_RESUMPTIONS
        if stuck or isinstance(error, GoneError | UnreadableError):
            self._version = ""
        if not isinstance(error, GoneError):
            self.on_error(self.resource, error)


def _gather(gathered: dict[str, T], event: WatchEvent[T]) -> None:
    if event.type == "DELETED":
        gathered.pop(event.object.key, None)
    elif event.type != "BOOKMARK":
        gathered[event.object.key] = event.object
