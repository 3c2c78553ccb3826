"""One connection pool to an API server: sends requests, retries where that is safe, and turns failures into errors."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from karpool.kube.answers import ENCODINGS, expect_plain, read_answer, read_failure
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
_METHODS: Final = {"list": "GET", "watch": "GET", "create": "POST", "evict": "POST"}

OnRequest = Callable[[str, str, int, float], None]
OnDate = Callable[[str, float], None]
Gate = Callable[[], bool]


class Retry(Enum):
    """When a request may be sent a second time."""

    READ = "after any failure that may pass"
    WRITE = "if the server has not acted on it: it said so, or was never reached"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request; the verb and the plural of a resource are its names in logs and metrics."""

    verb: str
    resource: str = ""
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    content_type: str = "application/json"
    retry: Retry = Retry.READ
    timeout: aiohttp.ClientTimeout | None = None

    @property
    def about(self) -> str:
        return f"{self.verb} {self.path}"

    @property
    def method(self) -> str:
        return _METHODS.get(self.verb, self.verb.upper())

    @property
    def writes(self) -> bool:
        return self.method not in ("GET", "HEAD")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long to wait, in seconds: for a response, for a connection, and in all while retrying."""

    response: float = 15.0
    connect: float = 5.0
    retries: float = 30.0
    first_retry: float = 0.25
    longest_retry: float = 10.0


class _GatedBody(aiohttp.BytesPayload):
    """The body of a write; asks its gate once more when the connection is there, right before the bytes go out."""

    def __init__(self, body: bytes, gate: Gate) -> None:
        super().__init__(body)
        self._gate = gate
        self.refused = False

    async def write(self, writer: AbstractStreamWriter) -> None:
        self._ask()
        await super().write(writer)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._ask()
        await super().write_with_length(writer, content_length)

    def _ask(self) -> None:
        if not self._gate():
            self.refused = True
            raise NotLeadingError


@dataclass(eq=False, kw_only=True)
class Transport:
    target: Target
    timeouts: Timeouts
    user_agent: str
    on_request: OnRequest
    on_date: OnDate
    sleep: Callable[[float], Awaitable[object]]
    _tls_for: tuple[Certificate | None, ssl.SSLContext] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._timeout = aiohttp.ClientTimeout(total=self.timeouts.response, sock_connect=self.timeouts.connect)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30, socket_factory=_socket),
            headers={"User-Agent": self.user_agent, "Accept": "application/json"},
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_BUFFER,
            auto_decompress=False,
            timeout=self._timeout,
        )

    async def close(self) -> None:
        await self._session.close()

    async def send(self, request: Request, gate: Gate | None) -> bytes:
        """The body of the response; retries where that is safe, until `timeouts.retries` is over.

        The gate is asked before a write begins, and again right before its bytes go out: credentials and a connection
        may take longer than a lease lasts.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        backoff = Backoff(self.timeouts.first_retry, self.timeouts.longest_retry)
        while True:
            if request.writes and gate is not None and not gate():
                raise NotLeadingError(about=request.about)
            try:
                async with self.open(request, gate) as response:
                    return await read_answer(response, request.about)
            except ApiError as error:
                wait = _wait(error, request.retry, backoff)
                if wait is None or loop.time() - started + wait > self.timeouts.retries:
                    raise
                await self.sleep(wait)

    @asynccontextmanager
    async def open(self, request: Request, gate: Gate | None = None) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to a request, sent again with renewed credentials if they were refused."""
        try:
            async with await self._authorized(request, gate) as response:
                if request.verb == "watch":
                    expect_plain(response, request.about)
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(error, request.about) from _without_secrets(error)

    async def _authorized(self, request: Request, gate: Gate | None) -> aiohttp.ClientResponse:
        credentials = self.target.credentials
        headers = await credentials.headers()
        try:
            return await self._send_once(request, headers, gate)
        except UnauthorizedError:
            if not await credentials.renew(headers):
                raise
        return await self._send_once(request, await credentials.headers(), gate)

    async def _send_once(
        self, request: Request, headers: Mapping[str, str], gate: Gate | None
    ) -> aiohttp.ClientResponse:
        started = asyncio.get_running_loop().time()
        body = _GatedBody(request.body or b"", gate) if request.writes and gate is not None else request.body
        status = 0
        try:
            async with asyncio.timeout(self.timeouts.response):  # a watch, too, must begin in time
                response = await self._request(request, headers, body)
            status = response.status
        except aiohttp.ClientConnectionError:
            if isinstance(body, _GatedBody) and body.refused:
                raise NotLeadingError(about=request.about) from None
            raise
        finally:
            seconds = asyncio.get_running_loop().time() - started
            if not (isinstance(body, _GatedBody) and body.refused):
                self.on_request(request.verb, request.resource, status, seconds)
        if "Date" in response.headers:
            self.on_date(response.headers["Date"], seconds)
        if status < _FIRST_FAILURE:
            return response
        async with response:
            raise error_of(status, response.headers, await read_failure(response, request.about), request.about)

    async def _request(
        self, request: Request, headers: Mapping[str, str], body: _GatedBody | bytes | None
    ) -> aiohttp.ClientResponse:
        target = self.target
        all_headers = [*headers.items(), ("Accept-Encoding", "identity" if request.verb == "watch" else ENCODINGS)]
        if request.body is not None:
            all_headers.append(("Content-Type", request.content_type))
        options: dict[str, Any] = {"ssl": self._tls()} if target.server.startswith("https:") else {}
        if target.server_name:
            options["server_hostname"] = target.server_name
        return await self._session.request(
            request.method,
            URL(target.server + request.path, encoded=True).with_query(request.params),
            data=body,
            headers=all_headers,
            proxy=target.proxy or None,
            timeout=request.timeout or self._timeout,
            allow_redirects=False,
            **options,
        )

    def _tls(self) -> ssl.SSLContext:
        certificate = self.target.credentials.certificate
        if self._tls_for is None or self._tls_for[0] != certificate:
            self._tls_for = certificate, tls_context(self.target, certificate)
        return self._tls_for[1]


def _wait(error: ApiError, retry: Retry, backoff: Backoff) -> float | None:
    """The seconds to wait before the next try; None: do not retry."""
    if isinstance(error, UnreachableError):
        retriable = not error.lasting and (retry is Retry.READ or (retry is Retry.WRITE and not error.sent))
    elif isinstance(error, TooManyRequestsError):
        retriable = retry is Retry.READ or (retry is Retry.WRITE and error.retry_after is not None)
    else:
        retriable = retry is Retry.READ and isinstance(error, ServerError)
    return max(error.retry_after or 0.0, backoff.next()) if retriable else None


def _unreachable(error: Exception, about: str) -> UnreachableError:
    """A network failure as an error; never with the address of a proxy, which may hold a password."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        message = f"the certificate of the server is not trusted: {_reason(error.certificate_error)}"
        return UnreachableError(message, about=about, sent=False, lasting=True)
    if isinstance(error, aiohttp.ClientSSLError):
        return UnreachableError(f"TLS failed: {_reason(error.os_error)}", about=about, sent=False, lasting=True)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return UnreachableError(f"the proxy answered {error.status}", about=about, sent=False)
    if isinstance(error, aiohttp.ClientConnectorError):
        message = f"cannot connect to {error.host}:{error.port}: {_reason(error.os_error)}"
        return UnreachableError(message, about=about, sent=False)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return UnreachableError("the connection took too long", about=about, sent=False)
    if isinstance(error, TimeoutError):
        return UnreachableError("no answer in time", about=about)
    if isinstance(error, aiohttp.InvalidURL):
        return UnreachableError("the address of the server or of the proxy is not a URL", about=about, lasting=True)
    return UnreachableError(f"the connection broke: {type(error).__name__}", about=about)


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return error.reason or "no reason given"
    return str(getattr(error, "strerror", "") or type(error).__name__)


def _without_secrets(error: Exception) -> Exception | None:
    """The cause to show, unless it holds the address of a proxy and so its password."""
    return None if isinstance(error, aiohttp.ClientHttpProxyError | aiohttp.InvalidURL) else error


def _socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket that notices within a minute that the other side is gone."""
    family, kind, protocol, *_ = address
    connection = socket.socket(family, kind, protocol)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return connection
