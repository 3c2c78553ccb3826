"""Metrics and health over HTTP, for Prometheus and the kubelet."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

from aiohttp import web

from karpool.wire.problems import InputError

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LARGEST_PORT: Final = 65535
# Whoever is still being answered when the process ends gets this long; the whole of it has five seconds.
_GOODBYE_SECONDS: Final = 1.0

Probe = Callable[[], str | None]
"""Says what is wrong; None: nothing."""
Page = Callable[[], web.Response]


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
    """An address that cannot be listened on."""

    def __init__(self, address: Address, error: OSError) -> None:
        why = os.strerror(error.errno).lower() if error.errno else error
        super().__init__(error.errno, f"cannot listen on {address}: {why}; choose another address, or 0 for none")


def metrics_page(make: Callable[[], bytes]) -> Page:
    """A page of series in Prometheus' text format."""
    return lambda: web.Response(body=make(), headers={"Content-Type": METRICS_TYPE})


def probe_page(probe: Probe) -> Page:
    """A page that says `ok` with status 200, or what is wrong with status 503."""

    def answer() -> web.Response:
        wrong = probe()
        return web.Response(text="ok\n") if wrong is None else web.Response(text=f"{wrong}\n", status=503)

    return answer


def _handler(page: Page) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(_: web.Request) -> web.StreamResponse:
        return page()

    return handle


@asynccontextmanager
async def serving(address: Address, pages: Mapping[str, Page]) -> AsyncIterator[Address]:
    """Answer requests for these paths while the block lasts; gives the address with the port that was bound."""
    app = web.Application()
    for path, page in pages.items():
        app.router.add_get(path, _handler(page))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_GOODBYE_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address.host or None, address.port).start()
        except OSError as error:
            raise ListenError(address, error) from error
        yield Address(address.host, runner.addresses[0][1])
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serving_all(wanted: Mapping[str, tuple[Address | None, Page]]) -> AsyncIterator[dict[str, Address]]:
    """Serve each path at its address, paths of one address together; gives the addresses bound, by path."""
    together: dict[Address, dict[str, Page]] = {}
    for path, (address, page) in wanted.items():
        if address is not None:
            together.setdefault(address, {})[path] = page
    async with AsyncExitStack() as stack:
        bound = {
            address: await stack.enter_async_context(serving(address, pages)) for address, pages in together.items()
        }
        yield {path: bound[address] for path, (address, _) in wanted.items() if address is not None}
