"""JSON over HTTP from services that have many pages, and are busy at times."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from yarl import URL

from karpool.catalog.fetch.asking import FetchError, at, short
from karpool.kube.backoff import Backoff
from karpool.wire.problems import InputError

ATTEMPTS: Final = 6
_ATTEMPTS_TO_CONNECT: Final = 3
_LONGEST_WAIT: Final = 60.0
_MOST_BYTES: Final = 256 * 2**20
MOST_PAGES: Final = 2000
_CHUNK: Final = 2**20
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_TOO_MANY: Final = 429
_FAILED: Final = 500
_REFUSED: Final = (401, 403)


class _TryAgainError(Exception):
    """An answer that may be better next time, and the seconds to wait if it says so."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


@dataclass(frozen=True, slots=True)
class Web:
    """One service: where it is, who asks, and how to wait."""

    cloud: str
    base: URL
    session: aiohttp.ClientSession
    token: str = field(default="", repr=False)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def get(self, path: str | URL, **query: str) -> Mapping[str, Any]:
        """An object; what may pass is tried again, and Retry-After is obeyed."""
        url = path if isinstance(path, URL) else self.base.joinpath(path.lstrip("/")).with_query(query)
        backoff = Backoff(first=1.0, most=30.0)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._once(url)
            except (_TryAgainError, aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError) as error:
                why = str(error) or type(error).__name__
                if attempt >= (ATTEMPTS if isinstance(error, _TryAgainError) else _ATTEMPTS_TO_CONNECT):
                    message = f"{self.cloud}: {url.host} was asked {attempt} times, at last: {short(why)}"
                    raise FetchError(message) from error
                after = error.after if isinstance(error, _TryAgainError) else None
                await self.sleep(backoff.next() if after is None else min(after, _LONGEST_WAIT))
            except aiohttp.ClientError as error:
                raise FetchError(f"{self.cloud}: {url.host}: {short(error)}") from error
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, url: URL) -> Mapping[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        async with self.session.get(url, headers=headers, allow_redirects=False) as response:
            body = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK):
                body += chunk
                if len(body) > _MOST_BYTES:
                    raise FetchError(f"{self.cloud}: {url.host} answers with more than {_MOST_BYTES // 2**20} MiB")
            if response.ok and response.status < 300:  # noqa: PLR2004 - what is beyond is elsewhere
                return self._object(bytes(body), url)
            self._refuse(response, bytes(body), url)
        raise AssertionError("what is refused raises")

    def _object(self, body: bytes, url: URL) -> Mapping[str, Any]:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _TryAgainError(f"it answers with what is not JSON: {short(error)}") from error
        if not isinstance(found, dict):
            raise FetchError(f"{self.cloud}: {url.host} answers with a list where an object is expected")
        return found

    def _refuse(self, response: aiohttp.ClientResponse, body: bytes, url: URL) -> None:
        said = f"{response.status} {_message(body) or response.reason or ''}".strip()
        if response.status in _REFUSED:
            raise InputError.at("--cloud", f"{self.cloud}: {url.host} refuses to answer: {short(said)}")
        if response.status == _TOO_MANY or response.status >= _FAILED:
            raise _TryAgainError(said, _seconds(response.headers.get("Retry-After", "")))
        raise FetchError(f"{self.cloud}: {url.host} answers {short(said)}")

    async def pages(self, path: str, **query: str) -> AsyncIterator[Mapping[str, Any]]:
        """All pages of a service that gives a token for the next one."""
        token: object = ""
        seen: set[object] = set()
        while True:
            page = await self.get(path, **query, **({"pageToken": str(token)} if token else {}))
            yield page
            token = page.get("nextPageToken") or ""
            if not token:
                return
            if not isinstance(token, str) or token in seen or len(seen) >= MOST_PAGES:
                raise FetchError(f"{self.cloud}: the pages of {self.base.host} do not come to an end")
            seen.add(token)


@asynccontextmanager
async def web(
    cloud: str, address: str, *, token: str = "", sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[Web]:
    """A service at an address; a proxy of the environment is used."""
    timeout = aiohttp.ClientTimeout(total=300, sock_connect=10, sock_read=60)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        yield Web(cloud, checked_address(address), session, token, sleep)


def checked_address(address: str) -> URL:
    """The address of a service: nothing is asked, and no token shown, unencrypted, except on this machine."""
    try:
        url = URL(address)
    except ValueError:
        url = URL()
    if url.scheme == "https" and url.host:
        return url
    if url.scheme == "http" and url.host in _LOOPBACK:
        return url
    raise InputError.at("--endpoint", f"{address!r} is no address of a service; write one such as https://example.com")


def same_service(url: URL, base: URL) -> bool:
    return (url.scheme, url.host, url.port) == (base.scheme, base.host, base.port)


def _message(body: bytes) -> str:
    """What an answer says of an error, as Google and Microsoft write it."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    said = at(found, "error", "message") or at(found, "Error", "Message") or at(found, "message")
    return said if isinstance(said, str) else ""


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() else None
