"""What an input is, as a short hash: results of another one are never taken for its own."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from karpool import __version__
from karpool.wire.objects import encode_value

if TYPE_CHECKING:
    from karpool.sweep.trial import SweepInput


def fingerprint(entry: "SweepInput") -> str:
    """A hash of all that the results of an input depend on, the same in every process."""
    digest = hashlib.blake2b(digest_size=12)
    for part in _parts((__version__, entry.policy, tuple(entry.inputs))):
        digest.update(part)
        digest.update(b"\0")
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, msgspec.Struct):
        yield msgspec.json.encode(value, enc_hook=encode_value, order="deterministic")
    elif is_dataclass(value):
        for part in fields(value):
            yield from _parts(getattr(value, part.name))
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield repr(key).encode()
            yield from _parts(value[key])
    elif isinstance(value, set | frozenset):
        yield from sorted(b"".join(_parts(part)) for part in value)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for part in value:
            yield from _parts(part)
    elif value is None or isinstance(value, str | bytes | int | float | datetime):
        yield repr(value).encode()
    else:
        # Its `repr` may hold an address, which is another one each time.
        yield from _parts(encode_value(value))
    yield b";"
