"""A Kubernetes client: typed objects by verb, on one connection pool.

Reads are retried until they are answered or `Timeouts.retries` is over. Writes are retried only when the server has
certainly not acted on them; after any other failure the caller reads the object and decides.
"""

import asyncio
import builtins
import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Self, TypeVar

import aiohttp
import msgspec

from karpool.kube.errors import GoneError, UnreadableError
from karpool.kube.list_watch import Listed, OnUnreadable, WatchEvent, read_event, read_page, split_lines
from karpool.kube.resources import Resource, Unreadable
from karpool.kube.target import Target
from karpool.kube.transport import OnDate, OnRequest, Request, Retry, Timeouts, Transport
from karpool.wire.objects import Object, encode_value

T = TypeVar("T", bound=Object)
_PODS: Final = Resource("", "v1", "pods", "Pod", namespaced=True, type=Object)

UNPAGED: Final = 0
"""A list that is wanted in one piece."""
MERGE_PATCH: Final = "application/merge-patch+json"
# A list may be long; what matters is that it keeps arriving.
_LIST_SECONDS: Final = 120.0


@dataclass(eq=False)
class Client:
    """Talks to one API server; use it as an async context manager.

    `write_gate` is asked before each write: while it says no, writes raise NotLeadingError. `on_request` gets verb,
    resource, status (0: no response) and seconds of each request, `on_date` the server's `Date` and the same seconds,
    `on_unreadable` each object that cannot be decoded.
    """

    target: Target
    _: KW_ONLY
    timeouts: Timeouts = field(default_factory=Timeouts)
    user_agent: str = "kube"
    write_gate: Callable[[], bool] | None = None
    on_request: OnRequest = lambda _verb, _resource, _status, _seconds: None
    on_date: OnDate = lambda _date, _seconds: None
    on_unreadable: OnUnreadable = lambda _unreadable: None
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    watch_grace: float = 10.0
    """How long after the end of a watch the server may be silent, in seconds."""
    _transport: Transport | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._transport = Transport(
            target=self.target,
            timeouts=self.timeouts,
            user_agent=self.user_agent,
            on_request=self._report_request,
            on_date=self.on_date,
            sleep=self.sleep,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._transport is not None:
            await self._transport.close()
            self._transport = None

    def ungated(self) -> "Client":
        """The same client on the same connections without its write gate, for the election itself."""
        other = copy.copy(self)
        other.write_gate = None
        return other

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T:
        request = Request(verb="get", resource=resource.plural, path=resource.path(namespace, name))
        return _decode(resource, await self._send(request), request.about)

    async def list(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        page: int = 500,
    ) -> Listed[T]:
        """All objects at one resource version, in pages; if a page token expires, once more without pages.

        With `UNPAGED` they come at once, which lets older API servers answer from their cache.
        """
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        params = {key: value for key, value in selectors.items() if value}
        path = resource.path(namespace)
        try:
            pages = await self._pages(resource, path, params | ({} if page == UNPAGED else {"limit": str(page)}))
        except GoneError:
            pages = await self._pages(resource, path, params)
        unreadable = tuple(entry for page in pages for entry in page.unreadable)
        for entry in unreadable:
            self.on_unreadable(entry)
        return Listed(tuple(item for page in pages for item in page.items), pages[-1].resource_version, unreadable)

    async def _pages(self, resource: Resource[T], path: str, params: dict[str, str]) -> builtins.list[Listed[T]]:
        pages: list[Listed[T]] = []
        timeout = aiohttp.ClientTimeout(
            total=_LIST_SECONDS, sock_connect=self.timeouts.connect, sock_read=self.timeouts.response
        )
        while not pages or pages[-1].token:
            more = {"continue": pages[-1].token} if pages else {}
            request = Request(verb="list", resource=resource.plural, path=path, params=params | more, timeout=timeout)
            pages.append(read_page(resource, await self._send(request), request.about))
        return pages

    async def watch(
        self,
        resource: Resource[T],
        resource_version: str = "",
        *,
        namespace: str = "",
        field_selector: str = "",
        initial_events: bool = False,
        timeout_seconds: float = 300,
        on_open: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Changes since a version, or with `initial_events` first all objects, until the server ends the watch.

        Close it (`contextlib.aclosing`) when leaving early. An object that cannot be decoded counts as deleted.
        `on_open` is called when the server has accepted the watch.
        """
        params = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(max(1, round(timeout_seconds)))}
        if field_selector:
            params["fieldSelector"] = field_selector
        if resource_version:
            params["resourceVersion"] = resource_version
        if initial_events:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        silence = timeout_seconds + self.watch_grace
        timeout = aiohttp.ClientTimeout(sock_connect=self.timeouts.connect, sock_read=silence)
        path = resource.path(namespace)
        request = Request(verb="watch", resource=resource.plural, path=path, params=params, timeout=timeout)
        async with (
            self._open.open(request) as response,
            aclosing(split_lines(response.content.iter_any(), request.about)) as chunks,
        ):
            on_open()
            async for lines in chunks:
                for line in lines:
                    yield read_event(resource, line, request.about, self.on_unreadable)

    async def create(self, resource: Resource[T], obj: Object | Mapping[str, Any], *, namespace: str = "") -> T:
        """Create an object, and return it as the server has it."""
        fields = dict(obj) if isinstance(obj, Mapping) else msgspec.to_builtins(obj, enc_hook=encode_value)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **fields}
        request = _write_request("create", resource, resource.path(namespace), body)
        return _decode(resource, await self._send(request), request.about)

    async def merge_patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str = "",
        subresource: str = "",
        resource_version: str | None = None,
    ) -> T:
        """Patch an object, if it still has the version given, and return it as the server has it."""
        body = dict(patch)
        if resource_version is not None:
            body["metadata"] = {**body.get("metadata", {}), "resourceVersion": resource_version}
        path = resource.path(namespace, name, subresource)
        request = _write_request("patch", resource, path, body, content_type=MERGE_PATCH)
        return _decode(resource, await self._send(request), request.about)

    async def delete(
        self,
        resource: Resource[Any],
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        grace_seconds: int | None = None,
    ) -> None:
        """Delete an object, if it still has the uid given; raises NotFoundError or ConflictError otherwise."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        await self._send(_write_request("delete", resource, resource.path(namespace, name), options))

    async def evict(self, namespace: str, name: str, uid: str, *, metadata: Mapping[str, Any] | None = None) -> None:
        """Evict a pod; TooManyRequestsError when a PodDisruptionBudget, or the server, says not now.

        `metadata` is that of the eviction, such as annotations, which admission policies see.
        """
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {**(metadata or {}), "name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = _PODS.path(namespace, name, "eviction")
        await self._send(_write_request("evict", _PODS, path, eviction, retry=Retry.NEVER))

    async def raw(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        retry = Retry.READ if method == "GET" else Retry.WRITE
        request = Request(
            verb=method.lower(), path=path, params=params or {}, body=body, content_type=content_type, retry=retry
        )
        return await self._send(request)

    async def _send(self, request: Request) -> bytes:
        return await self._open.send(request, self.write_gate)

    @property
    def _open(self) -> Transport:
        if self._transport is None:
            raise RuntimeError("the client is closed; use it inside `async with`")
        return self._transport

    def _report_request(self, verb: str, resource: str, status: int, seconds: float) -> None:
        self.on_request(verb, resource, status, seconds)


def _write_request(
    verb: str,
    resource: Resource[Any],
    path: str,
    body: Mapping[str, Any],
    *,
    retry: Retry = Retry.WRITE,
    content_type: str = "application/json",
) -> Request:
    encoded = msgspec.json.encode(body, enc_hook=encode_value)
    return Request(verb=verb, resource=resource.plural, path=path, body=encoded, retry=retry, content_type=content_type)


def _decode(resource: Resource[T], body: bytes, about: str) -> T:
    decoded = resource.read(body)
    if isinstance(decoded, Unreadable):
        raise UnreadableError(decoded.problem, about=about)
    return decoded
