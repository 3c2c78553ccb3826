"""A client that stops at a certain write, as if its process were killed there."""

import asyncio
from typing import Any

from karpool.kube.client import Client
from karpool.kube.target import Target
from karpool.kube.transport import Request


class KillSwitch:
    """Counts the writes of one operator, and kills it at the write it is armed for.

    Events and the status of pools are written in the background, and are not counted.
    """

    def __init__(self) -> None:
        self.killed = asyncio.Event()
        """Set when the operator is dead and all its requests are answered, though it gets no answers."""
        self.writes: list[str] = []
        self._dead = False
        self._fatal = 0
        self._sends = False
        self._under_way = 0

    def arm(self, write: int, *, sent: bool) -> None:
        """Kill at the n-th write from now: after the server has acted on it, or just before it is sent."""
        self.writes.clear()
        self._fatal, self._sends = write, sent

    def client(self, target: Target, **options: Any) -> Client:
        """The client to give to an operator as `make_client`."""
        return _KillableClient(self, target, **options)

    async def pass_on(self, client: "_KillableClient", request: Request) -> bytes:
        """Send a request; after the kill it never returns."""
        self._under_way += 1
        try:
            if not self._dead and self._lives_on(request):
                return await client.really_send(request)
        finally:
            self._under_way -= 1
            if self._dead and not self._under_way:
                self.killed.set()
            if self._dead:
                await asyncio.Event().wait()
        raise AssertionError("a killed client does not return")

    def _lives_on(self, request: Request) -> bool:
        """Whether a request is still sent; it may be the last one."""
        if not request.writes or request.path.endswith("/events") or "/nodepools/" in request.path:
            return True
        self.writes.append(request.about)
        self._dead = len(self.writes) == self._fatal
        return self._sends or not self._dead


class _KillableClient(Client):
    def __init__(self, kill_switch: KillSwitch, target: Target, **options: Any) -> None:
        super().__init__(target, **options)
        self._switch = kill_switch

    async def really_send(self, request: Request) -> bytes:
        return await super()._send(request)

    async def _send(self, request: Request) -> bytes:
        return await self._switch.pass_on(self, request)
