"""Keeps a fleet's rows up to date while somebody looks, and tells all open pages what has changed.

Everything is done in short slices: a controller may share the event loop. A change is encoded once, for all pages.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from karpool.web.fleet import FleetRows

INTERVAL: Final = 0.25
"""How often pages are told of changes, in seconds."""
_SLICE: Final = 400
"""How many rows are made before others get a turn."""
_REST: Final = 0.002
_REPRICE_SECONDS: Final = 10.0
_MOST_UNREAD: Final = 200
"""A page that is so many changes behind is told to read everything again."""
_IDLE_SECONDS: Final = 30.0
"""How long changes are followed after the last page has gone."""
_FORGET_SECONDS: Final = 600.0
"""How long rows are kept for a page that comes back, such as one behind other tabs."""

RESET: Final = b"event: reset\ndata: {}\n\n"
STILL_HERE: Final = b": still here\n\n"
_SILENCE: Final = 15.0


class Feed:
    """Follows one fleet as long as pages ask for it."""

    def __init__(self, make: Callable[[], FleetRows], status: Callable[[], Mapping[str, Any]] = dict) -> None:
        """`make` begins a fleet anew. `status`: what pages are told besides, whenever it changes."""
        self._make = make
        self.fleet = make()
        self._forgotten = False
        self._status_of = status
        self._status: Mapping[str, Any] = {}
        self._pages: set[asyncio.Queue[bytes | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._wanted_at = 0.0
        self._priced_at = 0.0
        self._nodes_read = asyncio.Event()
        self._settled = asyncio.Event()

    @property
    def pages(self) -> int:
        return len(self._pages)

    async def nodes(self) -> FleetRows:
        """The fleet, once all nodes have their rows; pods may still be read."""
        self._want()
        await self._nodes_read.wait()
        return self.fleet

    async def ready(self) -> FleetRows:
        """The fleet, once all that is known has its rows."""
        self._want()
        await self._settled.wait()
        return self.fleet

    async def follow(self, epoch: str, number: int) -> AsyncGenerator[bytes, None]:
        """Server-sent events for one page: what has changed since a number, and then each change as it comes."""
        unread: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_UNREAD)
        same = epoch == self.fleet.epoch and not self._forgotten
        missed = self.fleet.changes_after(number) if same else None
        if missed is None:
            yield RESET
            return
        self._pages.add(unread)
        self._want()
        try:
            # The first bytes open the stream for the page.
            yield STILL_HERE
            for known, change in missed:
                yield _event(known, change)
            while True:
                try:
                    event = await asyncio.wait_for(unread.get(), _SILENCE)
                except TimeoutError:
                    self._want()
                    yield STILL_HERE
                    continue
                if event is None:
                    yield RESET
                    return
                yield event
        finally:
            self._pages.discard(unread)
            self._wanted_at = time.monotonic()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._forget()

    def _want(self) -> None:
        """Follow changes from now on, if that is not being done already."""
        self._wanted_at = time.monotonic()
        if self._task is None or self._task.done():
            self._nodes_read.clear()
            self._settled.clear()
            if self._forgotten:
                self.fleet, self._forgotten = self._make(), False
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _begin(self) -> None:
        """Make the rows of all that is there, nodes first."""
        fleet = self.fleet
        if not fleet.begun:
            await self._read(fleet.waiting - fleet.pods_at_first)
            fleet.nodes_known()
            self._nodes_read.set()
            await self._read(fleet.waiting)
            fleet.pods_known()
            fleet.begun = True
        else:
            await self._read(fleet.waiting)
        self._nodes_read.set()
        self._settled.set()

    async def _run(self) -> None:
        await self._begin()
        while self._wanted_within(_FORGET_SECONDS):
            started = time.monotonic()
            if self._wanted_within(_IDLE_SECONDS):
                await self._follow_on()
            await asyncio.sleep(max(_REST, INTERVAL - (time.monotonic() - started)))
        self._forget()

    def _wanted_within(self, seconds: float) -> bool:
        return bool(self._pages) or time.monotonic() - self._wanted_at < seconds

    async def _follow_on(self) -> None:
        """Make the rows of what has changed, and tell pages."""
        await self._read(self.fleet.waiting)
        if time.monotonic() - self._priced_at > _REPRICE_SECONDS:
            self._priced_at = time.monotonic()
            self.fleet.reprice()
        change = self.fleet.change()
        if change is not None:
            self._tell(_event(*change))
        self._tell_status()

    def _forget(self) -> None:
        """Nobody looks: what changes from now on would pile up, and so would the names of what is long gone."""
        self.fleet.close()
        self._forgotten = True

    async def _read(self, left: int) -> None:
        """Make so many rows, in slices; what changes meanwhile waits for the next turn."""
        while left > 0:
            self.fleet.read(min(_SLICE, left))
            left -= _SLICE
            await asyncio.sleep(_REST if left > 0 else 0)

    def _tell_status(self) -> None:
        status = self._status_of()
        if status != self._status:
            self._status = status
            self._tell(b"event: status\ndata: %b\n\n" % msgspec.json.encode(status))

    def _tell(self, event: bytes) -> None:
        for unread in self._pages:
            if unread.full():
                # It will read everything again: the changes that it has not read are of no use.
                while not unread.empty():
                    unread.get_nowait()
                with suppress(asyncio.QueueFull):
                    unread.put_nowait(None)
            else:
                unread.put_nowait(event)


def _event(number: int, change: bytes) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (number, change)
