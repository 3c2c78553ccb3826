"""Writes the actions of `execution.actions` to the API server, and records the responses in the caches."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final, TypeVar

import msgspec
import structlog

from karpool.execution import actions as a
from karpool.kube.cache import CacheFeed
from karpool.kube.client import Client
from karpool.kube.errors import ConflictError, NotFoundError, TooManyRequestsError
from karpool.kube.resources import Resource
from karpool.live.patches import Json, merge_patch, target
from karpool.live.resources import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from karpool.model.labels import EVICTED_FROM, MANAGED_BY
from karpool.model.nodepool import NodeClaim
from karpool.wire.merge_patch import merged

R = TypeVar("R")

_log = structlog.get_logger()
_TRIES: Final = 5
_WRITTEN: Final[tuple[Resource[Any], ...]] = (NODES, NODE_CLAIMS, NODE_POOLS, PODS)
_RESOURCES: Final = {resource.kind: resource for resource in _WRITTEN}
ObjectAction = a.CreateClaim | a.DeleteClaim | a.DeleteNode | a.DeletePod | a.EvictPod


@dataclass(frozen=True, slots=True)
class CacheFeeds:
    """The caches that record the responses to writes, by kind."""

    by_kind: Mapping[str, CacheFeed[Any]]

    def uid_of(self, kind: str, key: str) -> str:
        cached = self.by_kind[kind].store.get(key)
        return "" if cached is None else str(cached.metadata.uid)


class Writer:
    """Writes one object at a time; one that is gone, or has another uid by now, is skipped."""

    def __init__(self, client: Client, feeds: CacheFeeds, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._feeds = feeds
        self._clock = clock

    async def edit(self, edits: Sequence[a.Edit], *, also: Json | None = None) -> None:
        """Patch one object with all edits, and with `also`; on a conflict, read it again and retry.

        It is read once, and patched once for each run of edits of one part: of itself, or of its status.
        """
        if not edits:
            return
        kind, key, _ = target(edits[0])
        with suppress(NotFoundError):
            await retry_on_conflict(lambda: self._patch(kind, key, edits, also or {}))

    async def _patch(self, kind: str, key: str, edits: Sequence[a.Edit], also: Json) -> None:
        resource = _RESOURCES[kind]
        namespace, _, name = key.rpartition("/")
        current = msgspec.json.decode(await self._client.raw("GET", resource.path(namespace, name)))
        if self._feeds.uid_of(kind, key) not in ("", current["metadata"]["uid"]):
            return
        version = current["metadata"]["resourceVersion"]
        for subresource, together in groupby(edits, key=lambda edit: target(edit)[2]):
            patch = merge_patch(current, together, self._clock())
            if subresource in also:
                patch[subresource] = {**patch.get(subresource, {}), **also[subresource]}
            if patch:
                patched = await self._client.merge_patch(
                    resource, name, patch, namespace=namespace, subresource=subresource, resource_version=version
                )
                self._feeds.by_kind[kind].record_write(patched)
                version = patched.metadata.resource_version
                # Lists are written whole: a later run must not bring back what this one changed.
                current = merged(current, patch)

    async def has_claim(self, name: str) -> bool:
        """Whether the API server has a NodeClaim, whatever is cached."""
        try:
            await self._client.get(NODE_CLAIMS, name)
        except NotFoundError:
            return False
        return True

    async def apply(self, action: ObjectAction) -> None:
        match action:
            case a.CreateClaim():
                await self._create(action.claim)
            case a.DeleteClaim():
                await delete(self._client, NODE_CLAIMS, action.name, action.uid)
            case a.DeleteNode():
                await delete(self._client, NODES, action.name, action.uid)
            case a.DeletePod():
                await delete(self._client, PODS, action.key, action.uid, action.grace_seconds)
            case a.EvictPod():
                await evict(self._client, action)

    async def _create(self, claim: NodeClaim) -> None:
        try:
            created = await self._client.create(NODE_CLAIMS, claim)
        except ConflictError as error:
            if not error.already_exists:
                raise
            created = await self._client.get(NODE_CLAIMS, claim.name)
        self._feeds.by_kind["NodeClaim"].record_write(created)


async def retry_on_conflict(write: Callable[[], Awaitable[R]]) -> R:
    """Read and write again a few times, while other writers cause conflicts."""
    for _ in range(_TRIES - 1):
        with suppress(ConflictError):
            return await write()
    return await write()


async def delete(client: Client, resource: Resource[Any], key: str, uid: str, grace: int | None = None) -> None:
    namespace, _, name = key.rpartition("/")
    with suppress(ConflictError, NotFoundError):
        await client.delete(resource, name, namespace=namespace, uid=uid, grace_seconds=grace)


async def evict(client: Client, eviction: a.EvictPod) -> None:
    """Evict a pod, and say who does it and from which node: an admission policy sees the eviction, but not its pod."""
    namespace, _, name = eviction.key.rpartition("/")
    try:
        metadata = {"labels": {MANAGED_BY: "karpool"}, "annotations": {EVICTED_FROM: eviction.node}}
        await client.evict(namespace, name, eviction.uid, metadata=metadata)
    except (ConflictError, NotFoundError):
        return
    except TooManyRequestsError as error:
        # A refusal by a budget is no failure: the drain retries by itself.
        _log.debug("eviction refused", pod=eviction.key, said=error.message)
