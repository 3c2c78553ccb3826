"""The HTTP API of Prometheus, and of what speaks it: range queries, asked window by window."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import msgspec
from yarl import URL

from karpool.kube.backoff import Backoff
from karpool.kube.credentials import Credentials, FixedCredentials
from karpool.wire.problems import InputError, one_line

_ATTEMPTS: Final = 5
_MOST_BYTES: Final = 256 * 2**20
_CHUNK: Final = 2**20
_LONGEST: Final = 200
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_REFUSED: Final = (401, 403)
_BUSY: Final = (408, 429, 500, 502, 503, 504)
_REDIRECTS: Final = range(300, 400)
_TOO_MUCH: Final = ("too many samples", "exceeded maximum resolution", "exceeds the limit", "too many points")


class PrometheusError(ConnectionError):
    """It does not answer, or with something that is not an answer; the text is one line for a person."""


class TooMuchError(Exception):
    """An answer that is too large to give; one for a shorter time may be."""


class PrometheusSeries(msgspec.Struct):
    """A series with its samples: times in seconds, and values as text."""

    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: list[PrometheusSeries] = []


class _Answer(msgspec.Struct, rename="camel"):
    status: str = ""
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""
    error_type: str = ""


_DECODER: Final = msgspec.json.Decoder(_Answer)


@dataclass(frozen=True, slots=True)
class PrometheusApi:
    """A server at an address; a proxy of the environment is used."""

    base: URL
    session: aiohttp.ClientSession
    credentials: Credentials = field(default_factory=FixedCredentials)
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    async def range(self, query: str, start: float, end: float, step: float) -> list[PrometheusSeries]:
        """What a query gives from a time to another, both included; what may pass is tried again."""
        url = self.base / "api" / "v1" / "query_range"
        form = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        backoff = Backoff(first=0.5, most=15.0)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                status, body = await self._once(url, form)
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError) as error:
                why = str(error) or type(error).__name__
            except aiohttp.ClientError as error:
                raise PrometheusError(f"{url.host}: {_short(error)}") from error
            else:
                answer = _answer(body)
                if status not in _BUSY or _is_too_much(answer):
                    return self._within(self._result(status, answer, body), start, end)
                why = f"{status} {_said(answer, body)}"
            if attempt < _ATTEMPTS:
                await self.sleep(backoff.next())
        raise PrometheusError(f"{url.host} was asked {_ATTEMPTS} times, at last: {_short(why)}")

    def _within(self, found: list[PrometheusSeries], start: float, end: float) -> list[PrometheusSeries]:
        for series in found:
            if any(not start - 1 <= at <= end + 1 for at, _ in series.values):
                raise PrometheusError(f"{self.base.host} answers with a time that it was not asked for")
        return found

    async def _once(self, url: URL, form: dict[str, str]) -> tuple[int, bytes]:
        headers = await self.credentials.headers()
        async with self.session.post(url, data=form, headers=headers, allow_redirects=False) as response:
            body = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK):
                body += chunk
                if len(body) > _MOST_BYTES:
                    raise TooMuchError(f"{url.host} answers with more than {_MOST_BYTES // 2**20} MiB")
            return response.status, bytes(body)

    def _result(self, status: int, answer: _Answer | None, body: bytes) -> list[PrometheusSeries]:
        host = self.base.host
        if status in _REFUSED:
            message = f"refuses to answer: {status} {_said(answer, body)}"
            raise InputError.at(str(self.base), f"{message}; --token-file names a file with a bearer token")
        if status in _REDIRECTS:
            raise InputError.at(str(self.base), f"answers {status}: it is elsewhere; name its own address")
        if answer is None:
            raise PrometheusError(f"{host} answers {status} with what is no answer of Prometheus: {_said(None, body)}")
        if _is_too_much(answer):
            raise TooMuchError(f"{host}: {_short(answer.error)}")
        if answer.status != "success":
            raise PrometheusError(f"{host} answers {status} {_said(answer, body)}")
        if answer.data.result_type != "matrix":
            raise PrometheusError(f"{host} answers with {_short(answer.data.result_type)!r} where a matrix is expected")
        return answer.data.result


def checked_address(address: str, *, shows_token: bool) -> URL:
    """The address of a server; a token is shown to nobody unencrypted, except on this machine."""
    url = URL()
    with suppress(ValueError):
        url = URL(address)
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError.at(
            "SOURCE", f"{address!r} is no address of Prometheus; write one such as http://localhost:9090"
        )
    if shows_token and url.scheme == "http" and url.host not in _LOOPBACK:
        raise InputError.at(
            "--token-file", f"the token would be sent to {url.host} unencrypted; use https or a port-forward"
        )
    return url


def _answer(body: bytes) -> _Answer | None:
    try:
        return _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _is_too_much(answer: _Answer | None) -> bool:
    return answer is not None and any(part in answer.error for part in _TOO_MUCH)


def _said(answer: _Answer | None, body: bytes) -> str:
    return _short(answer.error if answer is not None and answer.error else body[:_LONGEST].decode(errors="replace"))


def _short(message: Any) -> str:
    return one_line(" ".join(str(message).split()))[:_LONGEST]
