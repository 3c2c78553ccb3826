"""Pages over HTTP: metrics for Prometheus, probes for the kubelet, and whatever else a program is given to serve."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

from aiohttp import web

from karpool.wire.problems import InputError

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LARGEST_PORT: Final = 65535
# Requests that are being answered when the process ends get this long; the whole shutdown has five seconds.
_SHUTDOWN_SECONDS: Final = 1.0

Probe = Callable[[], str | None]
"""Says what is wrong; None: nothing."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


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


def metrics_page(address: Address | None, text: Callable[[], bytes]) -> Page:
    """`/metrics` in Prometheus' text format."""

    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=text(), headers={"Content-Type": METRICS_TYPE})

    return Page("/metrics", address, handle)


def probe_page(path: str, address: Address | None, probe: Probe) -> Page:
    """A page that says `ok` with status 200, or what is wrong with status 503."""

    async def handle(_: web.Request) -> web.Response:
        problem = probe()
        return web.Response(text="ok\n") if problem is None else web.Response(text=f"{problem}\n", status=503)

    return Page(path, address, handle)


@asynccontextmanager
async def serving(pages: Iterable[Page]) -> AsyncIterator[dict[str, Address]]:
    """Serve pages while the block lasts, those of one address together; gives the bound address of each path."""
    by_address: dict[Address, list[Page]] = {}
    for page in pages:
        if page.address is not None:
            by_address.setdefault(page.address, []).append(page)
    async with AsyncExitStack() as stack:
        bound: dict[str, Address] = {}
        for address, together in by_address.items():
            listening = await stack.enter_async_context(_listening(address, together))
            bound.update((page.path, listening) for page in together)
        yield bound


@asynccontextmanager
async def _listening(address: Address, pages: Iterable[Page]) -> AsyncIterator[Address]:
    app = web.Application()
    app.add_routes([web.get(page.path, page.handler) for page in pages])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address.host or None, address.port).start()
        except OSError as error:
            raise ListenError(address, error) from error
        yield Address(address.host, runner.addresses[0][1])
    finally:
        await runner.cleanup()
