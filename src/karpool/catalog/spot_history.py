"""Histories of spot prices: a table of changes, `time,zone,type,usd_per_hour`, plain or packed (xz, gzip, zstd)."""

import csv
import gzip
import io
import lzma
import sys
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final, cast

from karpool.wire.expansion import ExpansionError, check_expansion
from karpool.wire.problems import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COLUMNS: Final = ("time", "zone", "type", "usd_per_hour")
_MOST_BYTES: Final = 2**30
_CHUNK: Final = 2**20
_PLAUSIBLE: Final = 10_000.0
_XZ: Final = b"\xfd7zXZ"
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
Market = tuple[str, str]
"""A type and a zone."""


@dataclass(frozen=True, slots=True)
class MarketHistory:
    """The changes of one price: when, in seconds since 1970, and to what, in $/h."""

    times: tuple[float, ...]
    prices: tuple[float, ...]

    def at(self, time: float) -> float:
        """The price then; before the first change it is that of the first."""
        return self.prices[max(0, bisect_right(self.times, time) - 1)]

    def between(self, after: float, until: float) -> Iterator[tuple[float, float]]:
        """The changes after a time, until another."""
        first, last = bisect_right(self.times, after), bisect_right(self.times, until)
        yield from zip(self.times[first:last], self.prices[first:last], strict=True)


@dataclass(frozen=True, slots=True)
class SpotHistory:
    """All markets of a file."""

    markets: Mapping[Market, MarketHistory]
    first: float
    last: float

    @property
    def zones(self) -> tuple[str, ...]:
        return tuple(sorted({zone for _, zone in self.markets}))


@lru_cache(maxsize=2)
def read_spot_history(path: Path) -> SpotHistory:
    """A history from a file; it is read once."""
    found: dict[Market, list[tuple[float, float]]] = {}
    for market, time, price in _changes(path):
        found.setdefault(market, []).append((time, price))
    if not found:
        raise InputError.at(str(path), "has no prices in it")
    markets = {}
    for market, changes in found.items():
        changes.sort()
        markets[market] = MarketHistory(*(tuple(column) for column in zip(*changes, strict=True)))
    first = min(entry.times[0] for entry in markets.values())
    return SpotHistory(markets, first, max(entry.times[-1] for entry in markets.values()))


def _changes(path: Path) -> Iterator[tuple[Market, float, float]]:
    table = csv.reader(io.StringIO(_text(path), newline=""))
    try:
        if tuple(next(table, ())) != COLUMNS:
            raise InputError.at(str(path), f"is no history of prices: its first line is not {','.join(COLUMNS)}")
        for cells in table:
            if cells:
                yield _change(path, table.line_num, cells)
    except csv.Error as error:
        raise InputError.at(str(path), f"line {table.line_num}: {error}") from error


def _change(path: Path, line: int, cells: list[str]) -> tuple[Market, float, float]:
    if len(cells) != len(COLUMNS):
        raise InputError.at(str(path), f"line {line} has {len(cells)} columns, and there are {len(COLUMNS)}")
    when, zone, kind, amount = cells
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InputError.at(str(path), f"line {line}: {when[:40]!r} is no time such as 2026-05-01T12:00Z")
    try:
        price = float(amount)
    except ValueError:
        price = 0.0
    if not 0 < price < _PLAUSIBLE:
        raise InputError.at(str(path), f"line {line}: {amount[:40]!r} is no price in $/h")
    return (kind, zone), moment.timestamp(), price


def _text(path: Path) -> str:
    try:
        data = _unpacked(path)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.at(str(path), "is not UTF-8 text") from error
    except FileNotFoundError as error:
        raise InputError.at(str(path), "does not exist") from error
    except ExpansionError as error:
        raise InputError.at(str(path), str(error)) from error
    except (lzma.LZMAError, EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
        raise InputError.at(str(path), f"cannot be unpacked: {error}") from error
    except OSError as error:
        raise InputError.at(str(path), f"cannot be read: {error.strerror or error}") from error


def _unpacked(path: Path) -> bytes:
    """The bytes of a file; a small file that becomes a huge one is refused on the way."""
    with path.open("rb") as file:
        head = file.read(len(_XZ))
        file.seek(0)
        data = bytearray()
        with _opened(file, head) as stream:
            while chunk := stream.read(_CHUNK):
                data += chunk
                if stream is not file:
                    check_expansion(file.tell(), len(data))
                if len(data) > _MOST_BYTES:
                    raise InputError.at(str(path), f"is larger than {_MOST_BYTES // 2**30} GiB")
        return bytes(data)


def _opened(file: BinaryIO, head: bytes) -> BinaryIO:
    if head.startswith(_XZ):
        return cast("BinaryIO", lzma.LZMAFile(file))
    if head.startswith(_GZIP):
        return cast("BinaryIO", gzip.GzipFile(fileobj=file))
    return cast("BinaryIO", zstd.ZstdFile(file)) if head.startswith(_ZSTD) else file
