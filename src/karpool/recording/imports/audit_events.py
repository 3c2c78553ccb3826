"""The events of the audit log of an API server, as its log backend writes them: one JSON object a line."""

import heapq
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from karpool.recording.imports.text_lines import Line, lines_of
from karpool.wire.objects import Timestamp, Wire
from karpool.wire.problems import InputError

_GROUP: Final = "audit.k8s.io/"
_DONE: Final = "ResponseComplete"
_FAILED: Final = 300
_WRITES: Final = frozenset(("create", "update", "patch", "delete"))


class ObjectRef(Wire):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    api_group: str = ""
    api_version: str = ""
    subresource: str = ""


class _Status(Wire):
    code: int = 0


class _User(Wire):
    username: str = ""


class AuditEvent(Wire):
    """One request, when it was answered; bodies are there as the level has them."""

    api_version: str = ""
    level: str = ""
    stage: str = ""
    verb: str = ""
    user: _User = _User()
    object_ref: ObjectRef | None = None
    response_status: _Status = _Status()
    request_object: msgspec.Raw = msgspec.Raw(b"null")
    response_object: msgspec.Raw = msgspec.Raw(b"null")
    request_received_timestamp: Timestamp | None = None
    stage_timestamp: Timestamp | None = None

    @property
    def at(self) -> datetime | None:
        return self.stage_timestamp or self.request_received_timestamp

    @property
    def counts(self) -> bool:
        """Whether it changed an object, and succeeded."""
        return (
            self.stage == _DONE
            and self.verb in _WRITES
            and self.object_ref is not None
            and 0 < self.response_status.code < _FAILED
        )


_DECODER: Final = msgspec.json.Decoder(AuditEvent)


def files_of(sources: Sequence[str]) -> list[Path]:
    """Files, and those of directories that are named after logs."""
    found: list[Path] = []
    for source in sources:
        path = Path(source)
        if path.is_dir():
            inside = sorted(entry for entry in path.iterdir() if entry.is_file() and ".log" in entry.name)
            if not inside:
                raise InputError.at(source, "has no file in it with .log in its name")
            found += inside
        else:
            found.append(path)
    return found


def events_of(files: Sequence[Path]) -> Iterator[tuple[datetime, Line, AuditEvent]]:
    """All events of all files, in the order of their times; those of several API servers are merged."""
    return heapq.merge(*map(_events, files), key=lambda entry: entry[0])


def _events(path: Path) -> Iterator[tuple[datetime, Line, AuditEvent]]:
    for line in lines_of(path):
        try:
            event = _DECODER.decode(line.text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            if not line.complete:
                return
            raise line.refuse(f"is no audit event: {error}") from error
        if not event.api_version.startswith(_GROUP):
            raise line.refuse("is no audit event: it is not of audit.k8s.io")
        if event.at is None:
            raise line.refuse("is an audit event without a time")
        yield event.at, line, event


def body(raw: msgspec.Raw) -> dict[str, Any] | None:
    """An object of a request or an answer; None if the level has none."""
    try:
        found: Any = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
