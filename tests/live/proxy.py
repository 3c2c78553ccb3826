"""A proxy before the API server that refuses, delays, loses and misdates responses, and stalls and cuts watches."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import Enum
from typing import Self

import aiohttp
from aiohttp import web
from tests.kube.scripted_server import failure

from karpool.kube.credentials import FixedCredentials
from karpool.kube.target import Target, tls_context

_REASONS = {403: "Forbidden", 409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}


class Trouble(Enum):
    """What may become of a request."""

    FORBIDDEN = 403
    CONFLICT = 409
    TOO_MANY = 429
    INTERNAL = 500
    SLOW = "answered late"
    LOST = "carried out, but the answer never comes"
    BROKEN = "never arrives"


Choice = Callable[[web.Request], Trouble | None]
Skew = Callable[[web.Request], timedelta]


@dataclass
class AtRandom:
    """Spoils a share of all requests but watches, the same ones for the same seed and order of requests."""

    seed: int
    share: float
    troubles: tuple[Trouble, ...] = tuple(trouble for trouble in Trouble if trouble is not Trouble.FORBIDDEN)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.made: list[Trouble] = []

    def __call__(self, request: web.Request) -> Trouble | None:
        if "watch" in request.query or "/leases/" in request.path or self._random.random() >= self.share:
            return None
        self.made.append(self._random.choice(self.troubles))
        return self.made[-1]


class Proxy:
    """Use as an async context manager; `target` is the way through it."""

    def __init__(
        self, behind: Target, choice: Choice | None = None, *, delay: float = 1.0, skew: Skew | None = None
    ) -> None:
        """`skew`: how far the clock of the server that answers a request is ahead."""
        self.choice = choice
        self.skew = skew
        self.delay = delay
        self.writes: list[str] = []
        """Method and path of everything that was to change something, leases apart."""
        self.lists = 0
        """How often everything there is of a kind was asked for."""
        self.stalled: set[str] = set()
        """The plurals whose watches are open and silent; what they should bring comes when they are not any more."""
        self.rewrite: Callable[[bytes], bytes] = lambda line: line
        """What becomes of each line of an answer; lists come as one."""
        self._behind = behind
        self._watches: set[asyncio.Event] = set()

    async def __aenter__(self) -> Self:
        tls = tls_context(self._behind, self._behind.credentials.certificate)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=tls), read_bufsize=2**20)
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.target = replace(self._behind, server=self.url, credentials=FixedCredentials(), authority=b"")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut_watches()
        await self._runner.cleanup()
        await self._session.close()

    def cut_watches(self) -> int:
        """End all watches in the middle of a line; how many there were."""
        watches, self._watches = self._watches, set()
        for watch in watches:
            watch.set()
        return len(watches)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.lists += "sendInitialEvents" in request.query
        if request.method != "GET" and "/leases" not in request.path:
            self.writes.append(f"{request.method} {request.path}")
        trouble = self.choice(request) if self.choice is not None else None
        if trouble is Trouble.BROKEN:
            return _hang_up(request)
        if trouble is not None and isinstance(trouble.value, int):
            return _refuse(trouble.value)
        if trouble is Trouble.SLOW:
            await asyncio.sleep(self.delay)
        try:
            async with self._forward(request, body) as answer:
                if "watch" in request.query:
                    return await self._stream(request, answer)
                body = await answer.read()
        except aiohttp.ClientError:
            return _hang_up(request)
        if trouble is Trouble.LOST:
            return _hang_up(request)
        return web.Response(status=answer.status, body=self.rewrite(body), headers=self._headers(request, answer))

    def _headers(self, request: web.Request, answer: aiohttp.ClientResponse) -> dict[str, str]:
        ahead = self.skew(request) if self.skew is not None else timedelta()
        date = format_datetime(datetime.now(UTC) + ahead, usegmt=True)
        return {"Content-Type": answer.content_type, "Date": date}

    @asynccontextmanager
    async def _forward(self, request: web.Request, body: bytes) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {
            key: request.headers[key] for key in ("Content-Type", "Accept", "User-Agent") if key in request.headers
        }
        timeout = aiohttp.ClientTimeout(total=None)
        url = self._behind.server + request.path_qs
        async with self._session.request(
            request.method, url, data=body or None, headers=headers, timeout=timeout
        ) as answer:
            yield answer

    async def _stream(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=self._headers(request, answer))
        await response.prepare(request)
        cut = asyncio.Event()
        self._watches.add(cut)
        end = asyncio.create_task(cut.wait())
        rest = b""
        try:
            while not cut.is_set():
                chunk = asyncio.create_task(answer.content.readany())
                await asyncio.wait((chunk, end), return_when=asyncio.FIRST_COMPLETED)
                if not chunk.done():
                    chunk.cancel()
                    await response.write(b'{"type":"MODIFIED","object":{"metad')
                    return _hang_up(request)
                while request.path.rpartition("/")[2] in self.stalled and not cut.is_set():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                if not chunk.result():
                    return response
                *lines, rest = (rest + chunk.result()).split(b"\n")
                await response.write(b"".join(self.rewrite(line) + b"\n" for line in lines))
        finally:
            end.cancel()
            self._watches.discard(cut)
        return response


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _refuse(status: int) -> web.Response:
    headers = {"Retry-After": "1"} if status == Trouble.TOO_MANY.value else {}
    return web.json_response(failure(status, _REASONS[status], "as the test asks for"), status=status, headers=headers)
