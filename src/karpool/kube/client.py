"""A Kubernetes client: typed objects by verb, on one connection pool.

Reads are retried until they are answered or `Timeouts.retries` is over. Writes are retried only when the server has
certainly not acted on them; after any other failure the caller reads the object and decides.
"""

import asyncio
import builtins
import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, Self, TypeVar

import aiohttp
import msgspec

from karpool.kube.errors import GoneError, UnreadableError
from karpool.kube.list_watch import Listed, Page, Report, WatchEvent, read_event, read_page, split_lines
from karpool.kube.resources import Resource, Unreadable
from karpool.kube.target import Target
from karpool.kube.transport import OnDate, OnRequest, Request, Retry, Timeouts, Transport
from karpool.wire.objects import Object, encode_value

T = TypeVar("T", bound=Object)
_PODS: Final = Resource("", "v1", "pods", "Pod", namespaced=True, type=Object)

_MERGE_PATCH: Final = "application/merge-patch+json"
# A list may be long; what counts is that it does not stop arriving.
_LIST_SECONDS: Final = 120.0


class Client:
    """Speaks to one API server; use it as an async context manager.

    `write_gate` is asked before anything is sent that changes the cluster: once it says no, writes raise
    NotLeadingError. `on_request` hears verb, resource, status (0: no answer) and seconds of everything that was sent.
    `on_unreadable` hears of every object that had to be left out, `on_date` when the server answered by its own clock.
    """

    def __init__(
        self,
        target: Target,
        *,
        timeouts: Timeouts | None = None,
        user_agent: str = "kube",
        write_gate: Callable[[], bool] | None = None,
        on_request: OnRequest | None = None,
        on_date: OnDate | None = None,
        on_unreadable: Report | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.target = target
        self.timeouts = timeouts or Timeouts()
        self.user_agent = user_agent
        self.write_gate = write_gate
        self.on_request = on_request
        self.on_date = on_date
        self.on_unreadable = on_unreadable
        self.silence = 10.0
        """How long after its own time-out a server may be silent in a watch, in seconds."""
        self._sleep = sleep
        self._transport: Transport | None = None

    async def __aenter__(self) -> Self:
        self._transport = Transport(
            self.target,
            timeouts=self.timeouts,
            user_agent=self.user_agent,
            on_request=self._count,
            on_date=self.on_date,
            sleep=self._sleep,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._transport is not None:
            await self._transport.close()
            self._transport = None

    def ungated(self) -> "Client":
        """The same client, on the same connections, for those who write without leading: the election itself."""
        other = copy.copy(self)
        other.write_gate = None
        return other

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T:
        """One object."""
        request = Request(verb="get", resource=resource.plural, method="GET", path=resource.path(namespace, name))
        return _read(resource, await self._ask(request), request.about)

    async def list(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        page: int = 500,
    ) -> Listed[T]:
        """Everything there is at one moment, fetched page by page; if the pages expire, once more in one piece."""
        params = _selectors(label_selector, field_selector)
        path = resource.path(namespace)
        try:
            pages = await self._pages(resource, path, params | {"limit": str(page)} if page else params)
        except GoneError:
            pages = await self._pages(resource, path, params)
        unreadable = tuple(found for one in pages for found in one.unreadable)
        for found in unreadable:
            self._report(found)
        return Listed(tuple(item for one in pages for item in one.items), pages[-1].resource_version, unreadable)

    async def _pages(self, resource: Resource[T], path: str, params: dict[str, str]) -> builtins.list[Page[T]]:
        pages: list[Page[T]] = []
        timeout = aiohttp.ClientTimeout(
            total=_LIST_SECONDS, sock_connect=self.timeouts.connect, sock_read=self.timeouts.response
        )
        while not pages or pages[-1].token:
            more = {"continue": pages[-1].token} if pages else {}
            request = Request(
                verb="list", resource=resource.plural, method="GET", path=path, params=params | more, timeout=timeout
            )
            pages.append(read_page(resource, await self._ask(request), request.about))
        return pages

    async def watch(
        self,
        resource: Resource[T],
        resource_version: str = "",
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        initial_events: bool = False,
        timeout_seconds: float = 300,
        on_open: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Changes since a version, or with `initial_events` first everything there is; ends when the server ends it.

        Close it (`contextlib.aclosing`) when leaving early. An object that cannot be read counts as gone. `on_open` is
        called when the server has agreed.
        """
        params = _selectors(label_selector, field_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(timeout_seconds))),
        }
        if resource_version:
            params["resourceVersion"] = resource_version
        if initial_events:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        timeout = aiohttp.ClientTimeout(sock_connect=self.timeouts.connect, sock_read=timeout_seconds + self.silence)
        request = Request(
            verb="watch",
            resource=resource.plural,
            method="GET",
            path=resource.path(namespace),
            params=params,
            timeout=timeout,
        )
        async with (
            self._open.open(request) as response,
            aclosing(split_lines(response.content.iter_any(), request.about)) as chunks,
        ):
            on_open()
            async for lines in chunks:
                for line in lines:
                    yield read_event(resource, line, request.about, self._report)

    async def create(self, resource: Resource[T], obj: Object | Mapping[str, Any], *, namespace: str = "") -> T:
        """Make an object, and return it as the server has it."""
        written = dict(obj) if isinstance(obj, Mapping) else msgspec.to_builtins(obj, enc_hook=encode_value)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **written}
        return await self._write(resource, "create", "POST", resource.path(namespace), body)

    async def merge_patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str = "",
        subresource: str = "",
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Change an object as the patch says, if it still has the version named; return it is now."""
        body = dict(patch)
        if resource_version is not None:
            body["metadata"] = {**body.get("metadata", {}), "resourceVersion": resource_version}
        path = resource.path(namespace, name, subresource)
        params = {"dryRun": "All"} if dry_run else {}
        return await self._write(resource, "patch", "PATCH", path, body, content_type=_MERGE_PATCH, params=params)

    async def delete(
        self,
        resource: Resource[Any],
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
    ) -> None:
        """Delete an object, if it still is the one named; raises NotFoundError or ConflictError otherwise."""
        conditions = {"uid": uid, "resourceVersion": resource_version}
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid or resource_version:
            options["preconditions"] = {key: value for key, value in conditions.items() if value}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        await self._ask(_writing(resource, "delete", "DELETE", resource.path(namespace, name), options))

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """Ask for a pod to leave; TooManyRequestsError when a PodDisruptionBudget, or the server, says not now."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = _PODS.path(namespace, name, "eviction")
        await self._ask(_writing(_PODS, "evict", "POST", path, eviction, retry=Retry.NEVER))

    async def raw(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        """The body of the answer to any request."""
        again = Retry.READ if method == "GET" else Retry.WRITE
        request = Request(
            verb=method.lower(),
            resource="",
            method=method,
            path=path,
            params=params or {},
            body=body,
            content_type=content_type,
            retry=again,
        )
        return await self._ask(request)

    async def _write(
        self, resource: Resource[T], verb: str, method: str, path: str, body: Mapping[str, Any], **more: Any
    ) -> T:
        request = _writing(resource, verb, method, path, body, **more)
        return _read(resource, await self._ask(request), request.about)

    async def _ask(self, request: Request) -> bytes:
        return await self._open.ask(request, self.write_gate)

    @property
    def _open(self) -> Transport:
        if self._transport is None:
            raise RuntimeError("the client is closed; use it inside `async with`")
        return self._transport

    def _count(self, verb: str, resource: str, status: int, seconds: float) -> None:
        if self.on_request is not None:
            self.on_request(verb, resource, status, seconds)

    def _report(self, found: Unreadable) -> None:
        if self.on_unreadable is not None:
            self.on_unreadable(found)


def _writing(
    resource: Resource[Any],
    verb: str,
    method: str,
    path: str,
    body: Mapping[str, Any],
    **more: Any,
) -> Request:
    encoded = msgspec.json.encode(body, enc_hook=encode_value)
    options = {"retry": Retry.WRITE} | more
    return Request(verb=verb, resource=resource.plural, method=method, path=path, body=encoded, **options)


def _read(resource: Resource[T], body: bytes, about: str) -> T:
    found = resource.read(body)
    if isinstance(found, Unreadable):
        raise UnreadableError(found.problem, about=about)
    return found


def _selectors(labels: str, fields: str) -> dict[str, str]:
    found = {"labelSelector": labels, "fieldSelector": fields}
    return {key: value for key, value in found.items() if value}
