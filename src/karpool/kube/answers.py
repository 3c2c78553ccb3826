"""Reads the bodies of responses; what an API server never sends is refused before it fills the memory."""

import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final

import aiohttp

from karpool.kube.errors import UnreadableError
from karpool.wire.expansion import ExpansionError, check_expansion

ENCODINGS: Final = "gzip"
"""The encodings that `read_answer` understands, as a request asks for them."""
LARGEST_ANSWER: Final = 2 * 2**30
"""All pods of the largest cluster in one list are about half of that."""
_LARGEST_FAILURE: Final = 64 * 2**10
_PIECE: Final = 2**20
_GZIP_FORMAT: Final = 31


async def read_answer(response: aiohttp.ClientResponse, about: str) -> bytes:
    """The whole body, decompressed."""
    pieces: list[bytes] = []
    size = 0
    async with aclosing(_pieces(response, about)) as unpacked:
        async for piece in unpacked:
            pieces.append(piece)
            size += len(piece)
            if size > LARGEST_ANSWER:
                raise UnreadableError(f"the answer is larger than {LARGEST_ANSWER} bytes", about=about)
    return b"".join(pieces)


async def read_failure(response: aiohttp.ClientResponse, about: str) -> bytes:
    """As much of the body of a refusal as says why; nothing if it cannot be read."""
    body = b""
    try:
        async with aclosing(_pieces(response, about)) as unpacked:
            async for piece in unpacked:
                body += piece[:_LARGEST_FAILURE]
                if len(body) >= _LARGEST_FAILURE:
                    break
    except UnreadableError:
        return b""
    return body[:_LARGEST_FAILURE]


def expect_plain(response: aiohttp.ClientResponse, about: str) -> None:
    """Refuse a stream that is compressed, because it was not asked for so."""
    if encoding := _encoding(response):
        raise UnreadableError(f"the stream is encoded as {encoding[:40]!r}", about=about)


def _encoding(response: aiohttp.ClientResponse) -> str:
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    return "" if encoding == "identity" else encoding


async def _pieces(response: aiohttp.ClientResponse, about: str) -> AsyncGenerator[bytes, None]:
    encoding = _encoding(response)
    if encoding not in ("", "gzip"):
        raise UnreadableError(f"the answer is encoded as {encoding[:40]!r}, which was not asked for", about=about)
    gzip = _Gzip() if encoding else None
    try:
        async for chunk in response.content.iter_any():
            if gzip is None:
                yield chunk
            else:
                for piece in gzip.unpacked(chunk):
                    yield piece
        if gzip is not None:
            gzip.finish()
    except (zlib.error, ExpansionError) as error:
        raise UnreadableError(f"the answer cannot be unpacked: {error}", about=about) from error


class _Gzip:
    """Unpacks chunk by chunk, never more at a time than a piece."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(_GZIP_FORMAT)
        self._taken = 0
        self._given = 0

    def unpacked(self, chunk: bytes) -> Iterator[bytes]:
        self._taken += len(chunk)
        while chunk:
            if self._decompressor.eof:
                raise zlib.error("there is more after its end")
            piece = self._decompressor.decompress(chunk, _PIECE)
            self._given += len(piece)
            check_expansion(self._taken, self._given)
            if piece:
                yield piece
            chunk = self._decompressor.unconsumed_tail or self._decompressor.unused_data

    def finish(self) -> None:
        if self._taken and not self._decompressor.eof:
            raise zlib.error("it is cut short")
