"""Pages over HTTP: metrics for Prometheus, probes for the kubelet, and whatever else a program is given to serve.

Beyond the loopback interface a page is served only to those whom a guard lets pass; probes are for everybody, because a
kubelet has no token to show. Whatever clients do, they take no more than a bounded number of connections.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self, cast

from aiohttp import web

from karpool.kube.proxies import is_local
from karpool.observability.connections import MOST_CONNECTIONS, CappedConnections
from karpool.observability.rendering import RenderedPage
from karpool.wire.problems import InputError

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LARGEST_PORT: Final = 65535
# Requests that are being answered when the process ends get this long; the whole shutdown has five seconds.
_SHUTDOWN_SECONDS: Final = 1.0
# Long enough for a client that asks again and again; idle connections take the places of others.
_KEEPALIVE_SECONDS: Final = 15.0

Probe = Callable[[], str | None]
"""Says what is wrong; None: nothing."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Guard = Callable[[web.Request], Awaitable[web.Response | None]]
"""Refuses a request with a response, or lets it pass with None."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 takes any free one."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str, option: str) -> Self | None:
        """An address as a user writes it: `host:port`, `:port` (everywhere), or 0 (nowhere)."""
        if text == "0":
            return None
        host, colon, port = text.rpartition(":")
        if not colon or not (port.isascii() and port.isdigit()) or int(port) > _LARGEST_PORT:
            raise InputError.at(option, f"{text!r} is not an address; write host:port, :port, or 0 for none")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_local(self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class ListenError(OSError):
    def __init__(self, address: Address, error: OSError) -> None:
        why = os.strerror(error.errno).lower() if error.errno else error
        super().__init__(error.errno, f"cannot listen on {address}: {why}; choose another address, or 0 for none")


@dataclass(frozen=True, slots=True)
class Page:
    """A path to serve with GET; without an address it is not served."""

    path: str
    address: Address | None
    handler: Handler
    public: bool = False
    """Whether it is for everybody who can connect, also beyond the loopback interface."""
    connections: int = MOST_CONNECTIONS
    """How many connections its address takes at least."""


def metrics_page(address: Address | None, render: Callable[[], bytes]) -> Page:
    """`/metrics` in Prometheus' text format, rendered in another thread, and for all clients at most once a second."""
    page = RenderedPage(render)

    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=await page.text(), headers={"Content-Type": METRICS_TYPE})

    return Page("/metrics", address, handle)


def probe_page(path: str, address: Address | None, probe: Probe) -> Page:
    """A page for everybody that says `ok` with status 200, or what is wrong with status 503."""

    async def handle(_: web.Request) -> web.Response:
        problem = probe()
        return web.Response(text="ok\n") if problem is None else web.Response(text=f"{problem}\n", status=503)

    return Page(path, address, handle, public=True)


@asynccontextmanager
async def serving(pages: Iterable[Page], guard: Guard | None = None) -> AsyncIterator[dict[str, Address]]:
    """Serve pages while the block lasts, those of one address together; gives the bound address of each path.

    Beyond the loopback interface the guard is asked first; without one, nobody gets a page that is not public.
    """
    by_address: dict[Address, list[Page]] = {}
    for page in pages:
        if page.address is not None:
            by_address.setdefault(page.address, []).append(page)
    async with AsyncExitStack() as stack:
        bound: dict[str, Address] = {}
        for address, together in by_address.items():
            listening = await stack.enter_async_context(_listening(address, together, guard or _nobody))
            bound.update((page.path, listening) for page in together)
        yield bound


@asynccontextmanager
async def _listening(address: Address, pages: Sequence[Page], guard: Guard) -> AsyncIterator[Address]:
    app = web.Application()
    open_to_all = address.loopback
    app.add_routes(
        [web.get(page.path, page.handler if open_to_all or page.public else _guarded(page, guard)) for page in pages]
    )
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS, keepalive_timeout=_KEEPALIVE_SECONDS
    )
    await runner.setup()
    listener: asyncio.Server | None = None
    try:
        make = cast("Callable[[], asyncio.Protocol]", runner.server)
        try:
            loop = asyncio.get_running_loop()
            capped = CappedConnections(make, max(page.connections for page in pages))
            listener = await loop.create_server(capped, address.host or None, address.port)
        except OSError as error:
            raise ListenError(address, error) from error
        yield Address(address.host, listener.sockets[0].getsockname()[1])
    finally:
        if listener is not None:
            listener.close()
        await runner.cleanup()


def _guarded(page: Page, guard: Guard) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        refusal = await guard(request)
        return await page.handler(request) if refusal is None else refusal

    return handle


async def _nobody(_: web.Request) -> web.Response:
    return web.Response(status=403, text="served on the loopback interface only\n")
