"""One connection pool to an API server: sends requests, tries again where that is safe, and names what went wrong."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import aiohttp
from aiohttp.typedefs import LooseHeaders
from yarl import URL

from karpool.kube.backoff import Backoff
from karpool.kube.credentials import Certificate
from karpool.kube.errors import (
    ApiError,
    NotLeadingError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
    error_of,
)
from karpool.kube.target import Target, tls_context

# An API server sends lines as long as the largest object; a smaller buffer would pause at each.
_BUFFER: Final = 8 * 2**20
_FIRST_FAILURE: Final = 300

OnRequest = Callable[[str, str, int, float], None]
OnDate = Callable[[str, float], None]


class Retry(Enum):
    """When a request may be sent a second time."""

    READ = "after any failure that may pass"
    WRITE = "if the server has not acted on it: it said so, or was never reached"
    NEVER = "when the caller says so"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to ask, and what to call it: a verb and the plural of a resource."""

    verb: str
    resource: str
    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    content_type: str = "application/json"
    retry: Retry = Retry.READ
    timeout: aiohttp.ClientTimeout | None = None

    @property
    def about(self) -> str:
        """What people call the request."""
        return f"{self.verb} {self.path}"

    @property
    def writes(self) -> bool:
        """Whether the request changes anything."""
        return self.method not in ("GET", "HEAD")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long to wait, in seconds: for a response, for a connection, and in all while retrying."""

    response: float = 15.0
    connect: float = 5.0
    retries: float = 30.0
    first_retry: float = 0.25
    longest_retry: float = 10.0


class Transport:
    """Sends requests to one target."""

    def __init__(
        self,
        target: Target,
        *,
        timeouts: Timeouts,
        user_agent: str,
        on_request: OnRequest,
        on_date: OnDate | None = None,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self.target = target
        self.timeouts = timeouts
        self.on_request = on_request
        self.on_date = on_date
        self._sleep = sleep
        self._secured: tuple[Certificate | None, ssl.SSLContext] | None = None
        self._timeout = aiohttp.ClientTimeout(total=timeouts.response, sock_connect=timeouts.connect)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30, socket_factory=_socket),
            headers={"User-Agent": user_agent, "Accept": "application/json"},
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_BUFFER,
            timeout=self._timeout,
        )

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()

    async def ask(self, request: Request, gate: Callable[[], bool] | None) -> bytes:
        """The body of the answer, asking again where that is safe and until `timeouts.retries` is over."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        backoff = Backoff(self.timeouts.first_retry, self.timeouts.longest_retry)
        while True:
            if request.writes and gate is not None and not gate():
                raise NotLeadingError(about=request.about)
            try:
                async with self.open(request) as response:
                    return await response.read()
            except ApiError as error:
                wait = _wait(error, request.retry, backoff)
                if wait is None or loop.time() - started + wait > self.timeouts.retries:
                    raise
                await self._sleep(wait)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a request sent once, or twice when the first credentials were refused; errors are typed."""
        try:
            async with await self._answer(request) as response:
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(error, request.about) from _without_secrets(error)

    async def _answer(self, request: Request) -> aiohttp.ClientResponse:
        credentials = self.target.credentials
        headers = await credentials.headers()
        try:
            return await self._send(request, headers)
        except UnauthorizedError:
            if not await credentials.renew(headers):
                raise
        return await self._send(request, await credentials.headers())

    async def _send(self, request: Request, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        started = asyncio.get_running_loop().time()
        status = 0
        try:
            async with asyncio.timeout(self.timeouts.response):  # a stream, too, must begin in time
                response = await self._request(request, headers)
            status = response.status
        finally:
            seconds = asyncio.get_running_loop().time() - started
            self.on_request(request.verb, request.resource, status, seconds)
        if self.on_date is not None and "Date" in response.headers:
            self.on_date(response.headers["Date"], seconds)
        if status < _FIRST_FAILURE:
            return response
        async with response:
            raise error_of(status, response.headers, await response.read(), request.about)

    async def _request(self, request: Request, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        target = self.target
        sent: LooseHeaders = headers
        if request.body is not None:
            sent = [*headers.items(), ("Content-Type", request.content_type)]
        options: dict[str, Any] = {"ssl": self._tls()} if target.server.startswith("https:") else {}
        if target.server_name:
            options["server_hostname"] = target.server_name
        return await self._session.request(
            request.method,
            URL(target.server + request.path, encoded=True).with_query(request.params),
            data=request.body,
            headers=sent,
            proxy=target.proxy or None,
            timeout=request.timeout or self._timeout,
            allow_redirects=False,
            **options,
        )

    def _tls(self) -> ssl.SSLContext:
        certificate = self.target.credentials.certificate
        if self._secured is None or self._secured[0] != certificate:
            self._secured = certificate, tls_context(self.target, certificate)
        return self._secured[1]


def _wait(error: ApiError, retry: Retry, backoff: Backoff) -> float | None:
    """How long to wait before asking again; None: do not."""
    asked: float | None = None
    if isinstance(error, TooManyRequestsError | ServerError):
        asked = error.retry_after
    if retry is Retry.READ:
        passing = isinstance(error, TooManyRequestsError | ServerError) or (
            isinstance(error, UnreachableError) and not error.lasting
        )
    elif retry is Retry.WRITE:
        passing = (isinstance(error, TooManyRequestsError) and asked is not None) or (
            isinstance(error, UnreachableError) and not error.sent and not error.lasting
        )
    else:
        passing = False
    return max(asked or 0.0, backoff.next()) if passing else None


def _unreachable(error: Exception, about: str) -> UnreachableError:
    """A network's failure in words; never with the address of a proxy, which may hold a password."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        words = f"the certificate of the server is not trusted: {_reason(error.certificate_error)}"
        return UnreachableError(words, about=about, sent=False, lasting=True)
    if isinstance(error, aiohttp.ClientSSLError):
        return UnreachableError(f"TLS failed: {_reason(error.os_error)}", about=about, sent=False, lasting=True)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return UnreachableError(f"the proxy answered {error.status}", about=about, sent=False)
    if isinstance(error, aiohttp.ClientConnectorError):
        words = f"cannot connect to {error.host}:{error.port}: {_reason(error.os_error)}"
        return UnreachableError(words, about=about, sent=False)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return UnreachableError("the connection took too long", about=about, sent=False)
    if isinstance(error, TimeoutError):
        return UnreachableError("no answer in time", about=about)
    if isinstance(error, aiohttp.InvalidURL):
        return UnreachableError("the address of the server or of the proxy is no URL", about=about, lasting=True)
    return UnreachableError(f"the connection broke: {type(error).__name__}", about=about)


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return error.reason or "no reason given"
    return str(getattr(error, "strerror", "") or type(error).__name__)


def _without_secrets(error: Exception) -> Exception | None:
    """An error to be shown as the cause; a proxy's holds its address, and with that its password."""
    return None if isinstance(error, aiohttp.ClientHttpProxyError | aiohttp.InvalidURL) else error


def _socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket that notices within a minute when the other side is gone without a word."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made
