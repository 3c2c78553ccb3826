"""A history: what was so in the cluster, who asked for what, and which faults were put in; one JSON line each.

The place of a record in the list is its revision: a request saw at most what stands before it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

Json = dict[str, Any]


class Start(msgspec.Struct, tag="start", tag_field="record", omit_defaults=True):
    """The first line: how to make this history again, and how exact it is."""

    seed: int
    epoch: str
    """The moment that times count from."""
    exact: bool = True
    """Whether the order of records is the order in which things happened, and every kind was recorded."""
    settings: Json = {}
    """Limits that the controller was given."""


class Change(msgspec.Struct, tag="change", tag_field="record", omit_defaults=True):
    """An object as it is from now on; None: it is gone."""

    time: float
    kind: str
    key: str
    object: Json | None = None
    by: int = -1
    """The revision of the request that made the change; -1: of nobody that is checked."""


class Request(msgspec.Struct, tag="request", tag_field="record", omit_defaults=True):
    """A request of a controller, at the moment at which the server carries it out or refuses it."""

    time: float
    who: str
    verb: str
    kind: str
    key: str
    body: Any = None
    sent: int = 0
    """The revision when it was sent."""
    view: int = 0
    """Everything before this revision was known to the sender when it decided."""
    status: int = 0
    """What the server answered; 0 if the request never arrived."""
    fault: str = ""
    """What was done to it on the way."""


class Fault(msgspec.Struct, tag="fault", tag_field="record", omit_defaults=True):
    """A fault that begins, or happens at once."""

    time: float
    fault: str
    who: str = ""
    seconds: float = 0.0


class Mark(msgspec.Struct, tag="mark", tag_field="record", omit_defaults=True):
    """`quiet`: the last fault is over. `end`: the story is."""

    time: float
    what: str


Record = Start | Change | Request | Fault | Mark
_READER = msgspec.json.Decoder(Record)


def write_history(path: Path, records: Sequence[Record]) -> None:
    """One line for each record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(records))


def encoded(records: Iterable[Record]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def decoded(lines: bytes) -> list[Record]:
    return [_READER.decode(line) for line in lines.splitlines()]


def read_history(path: Path) -> list[Record]:
    return decoded(path.read_bytes())
