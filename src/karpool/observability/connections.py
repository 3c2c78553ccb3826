"""How many connections a server takes: so many, however many clients there are and whatever they do.

When all are taken, the oldest makes room if it has been there for seconds: an answer takes milliseconds, so it is idle
or stuck. Otherwise the new one is told to come back.
"""

import asyncio
from collections.abc import Callable
from typing import Final

MOST_CONNECTIONS: Final = 64
STUCK_SECONDS: Final = 5.0
_PATIENCE: Final = 1.0
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 21\r\nRetry-After: 1\r\n"
    b"Connection: close\r\n\r\ntoo many connections\n"
)


class CappedConnections:
    """Makes the protocols of a server, and refuses what is too much."""

    def __init__(self, make: Callable[[], asyncio.Protocol], most: int = MOST_CONNECTIONS) -> None:
        self._make = make
        self._most = most
        self._open: dict[_Connection, float] = {}

    def __call__(self) -> asyncio.Protocol:
        now = asyncio.get_running_loop().time()
        if len(self._open) >= self._most and not self._made_room(now):
            return _Busy()
        connection = _Connection(self._make(), self._forget)
        self._open[connection] = now
        return connection

    def _made_room(self, now: float) -> bool:
        oldest, since = next(iter(self._open.items()))
        if now - since < STUCK_SECONDS:
            return False
        self._forget(oldest)
        oldest.abort()
        return True

    def _forget(self, connection: "_Connection") -> None:
        self._open.pop(connection, None)


class _Connection(asyncio.Protocol):
    """A connection that says when it is gone; everything else is its handler's."""

    def __init__(self, handler: asyncio.Protocol, on_lost: Callable[["_Connection"], None]) -> None:
        self._handler = handler
        self._on_lost = on_lost
        self._transport: asyncio.BaseTransport | None = None
        self.data_received = handler.data_received  # type: ignore[method-assign] # called for every packet
        self.pause_writing = handler.pause_writing  # type: ignore[method-assign]
        self.resume_writing = handler.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._handler.connection_made(transport)

    def eof_received(self) -> bool | None:
        return self._handler.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost(self)
        self._handler.connection_lost(exc)

    def abort(self) -> None:
        if isinstance(self._transport, asyncio.WriteTransport):
            self._transport.abort()


class _Busy(asyncio.Protocol):
    """Says that there are too many connections, once it was asked something, or for a moment."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._end = asyncio.get_running_loop().call_later(_PATIENCE, transport.close)

    def data_received(self, _data: bytes) -> None:
        if isinstance(self._transport, asyncio.WriteTransport) and not self._transport.is_closing():
            self._transport.write(_BUSY)
            self._transport.close()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._end.cancel()
