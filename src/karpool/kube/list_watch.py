"""Decodes pages of a list and lines of a watch into typed objects; those that cannot be decoded are left out."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar, cast

import msgspec

from karpool.kube.errors import UNDECODABLE, UnreadableError, error_of
from karpool.kube.resources import Resource, Unreadable
from karpool.wire.objects import Metadata, Object

T = TypeVar("T", bound=Object)
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
OnUnreadable = Callable[[Unreadable], None]

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
# Etcd takes no object of more than a few MiB; a longer line is not from an API server.
LONGEST_LINE: Final = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """All objects at one resource version, or a page of them, but those that could not be decoded."""

    items: tuple[T, ...]
    resource_version: str
    unreadable: tuple[Unreadable, ...] = ()
    token: str = ""
    """That of the next page; empty after the last."""


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """A change; the object of a BOOKMARK has nothing but metadata."""

    type: EventType
    object: T

    @property
    def resource_version(self) -> str:
        """Where a watch that is cut after this event resumes."""
        return self.object.metadata.resource_version

    @property
    def ends_initial(self) -> bool:
        return self.type == "BOOKMARK" and INITIAL_EVENTS_END in self.object.metadata.annotations


class _PageMetadata(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _PageMetadata = _PageMetadata()
    items: tuple[msgspec.Raw, ...] | None = ()


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: Metadata


_PAGE: Final = msgspec.json.Decoder(_Page)
_LINE: Final = msgspec.json.Decoder(_Line)
_BOOKMARK: Final = msgspec.json.Decoder(_Bookmark)


def read_page(resource: Resource[T], body: bytes, about: str) -> Listed[T]:
    try:
        page = _PAGE.decode(body)
    except UNDECODABLE as error:
        raise UnreadableError(f"the answer is not a list: {error}", about=about) from error
    items: list[T] = []
    unreadable: list[Unreadable] = []
    for raw in page.items or ():
        item = resource.read(raw)
        if isinstance(item, Unreadable):
            unreadable.append(item)
            if item.fallback is not None:
                items.append(cast("T", item.fallback))
        else:
            items.append(item)
    return Listed(tuple(items), page.metadata.resource_version, tuple(unreadable), page.metadata.continue_)


def read_event(resource: Resource[T], line: bytes, about: str, on_unreadable: OnUnreadable) -> WatchEvent[T]:
    """The event in a line; an object that cannot be decoded is replaced by its fallback, or counts as deleted."""
    try:
        event = _LINE.decode(line)
        if event.type == "BOOKMARK":
            return WatchEvent("BOOKMARK", resource.metadata_only(_BOOKMARK.decode(event.object).metadata))
    except UNDECODABLE as error:
        raise UnreadableError(f"the stream holds a line that is no event: {error}", about=about) from error
    if event.type == "ERROR":
        raise error_of(0, {}, event.object, about)
    if event.type not in ("ADDED", "MODIFIED", "DELETED"):
        raise UnreadableError(f"the stream holds an event of the unknown type {event.type[:40]!r}", about=about)
    item = resource.read(event.object)
    if not isinstance(item, Unreadable):
        return WatchEvent(event.type, item)  # type: ignore[arg-type] # checked above, and a cast costs time per event
    fallback = item.fallback
    if event.type != "DELETED":
        on_unreadable(item)
        if fallback is not None:
            return WatchEvent("MODIFIED", cast("T", fallback))
    metadata = item.metadata if fallback is None else fallback.metadata
    return WatchEvent("DELETED", resource.metadata_only(metadata))


async def split_lines(chunks: AsyncIterator[bytes], about: str) -> AsyncGenerator[list[bytes], None]:
    """The whole lines of each chunk; an incomplete last line is dropped."""
    pending: list[bytes] = []
    length = 0
    async for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join((*pending, whole[0]))
            pending.clear()
            length = 0
            yield [line for line in whole if line]
        pending.append(rest)
        length += len(rest)
        if length > LONGEST_LINE:
            raise UnreadableError(f"the stream holds a line of more than {LONGEST_LINE} bytes", about=about)
