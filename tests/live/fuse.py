"""A client that dies at a certain write, as a process does that is killed there: nothing is sent after that."""

import asyncio
from typing import Any

from karpool.kube.client import Client
from karpool.kube.target import Target
from karpool.kube.transport import Request


class Fuse:
    """Counts the writes of one operator, and ends it at the one it was armed for.

    Events and the status of pools are told beside everything else, whenever there is time, and are not counted.
    """

    def __init__(self) -> None:
        self.blown = asyncio.Event()
        """Set when the operator is dead and whatever it sent is answered, though nobody hears that."""
        self.writes: list[str] = []
        self._dead = False
        self._fatal = 0
        self._sends = False
        self._under_way = 0

    def arm(self, write: int, *, sent: bool) -> None:
        """Die at a write from now, the first being 1: after it was carried out, or just before it is sent."""
        self.writes.clear()
        self._fatal, self._sends = write, sent

    def client(self, target: Target, **options: Any) -> Client:
        """The client to give to an operator as `make_client`."""
        return _Fused(self, target, **options)

    async def pass_on(self, client: "_Fused", request: Request) -> bytes:
        """Send a request; whoever waits for an answer after the end waits for ever."""
        self._under_way += 1
        try:
            if not self._dead and self._lives_on(request):
                return await client.really_send(request)
        finally:
            self._under_way -= 1
            if self._dead and not self._under_way:
                self.blown.set()
            if self._dead:
                await asyncio.Event().wait()
        raise AssertionError("the dead do not return")

    def _lives_on(self, request: Request) -> bool:
        """Whether a request is still sent; it may be the last one."""
        if not request.writes or request.path.endswith("/events") or "/nodepools/" in request.path:
            return True
        self.writes.append(request.about)
        self._dead = len(self.writes) == self._fatal
        return self._sends or not self._dead


class _Fused(Client):
    def __init__(self, fuse: Fuse, target: Target, **options: Any) -> None:
        super().__init__(target, **options)
        self._fuse = fuse

    async def really_send(self, request: Request) -> bytes:
        return await super()._send(request)

    async def _send(self, request: Request) -> bytes:
        return await self._fuse.pass_on(self, request)
