"""Writes the status of NodePools, where it would change."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
import structlog

from karpool.controller.store import ClusterStore
from karpool.kube.cache import version_number, version_of
from karpool.kube.client import Client
from karpool.kube.errors import ApiError, NotFoundError, NotLeadingError
from karpool.kube.resources import Unreadable
from karpool.live.resources import NODE_POOLS
from karpool.live.writer import retry_on_conflict
from karpool.model.nodepool import NodePool
from karpool.model.rules.pools import controller_flaws
from karpool.operator.pool_nodes import PoolNodes
from karpool.operator.pool_status import DesiredPoolStatus, pool_status, status_patch, total_resources
from karpool.operator.registration_health import RegistrationHealth
from karpool.wire.objects import Condition
from karpool.wire.problems import Flaw
from karpool.wire.quantity import Quantity

_log = structlog.get_logger()
_MERGE_PATCH: Final = "application/merge-patch+json"


class _Written(NamedTuple):
    uid: str
    version: int
    status: DesiredPoolStatus


class PoolStatusController:
    """Writes conditions and counters of pools; one call at a time.

    It does not change the store: its writes come back through the watch, between decisions.
    """

    def __init__(
        self,
        client: Client,
        store: ClusterStore,
        nodes: PoolNodes,
        *,
        node_classes: Callable[[NodePool], Condition | bool | None],
        clock: Callable[[], datetime],
    ) -> None:
        """`node_classes` says whether the node class of a pool can be used; None: unknown."""
        self._client = client
        self._store = store
        self._node_classes = node_classes
        self._clock = clock
        self._registrations = RegistrationHealth()
        self._unreadable: dict[str, Unreadable] = {}
        self._written: dict[str, _Written] = {}
        self._nodes = nodes

    def unreadable(self, unreadable: Unreadable) -> None:
        """Note an object that cannot be read; if it is a pool, its status will say why."""
        if unreadable.resource is NODE_POOLS and unreadable.metadata.name:
            self._unreadable[unreadable.metadata.name] = unreadable

    async def reconcile(self) -> None:
        """Write the status of every pool that differs; failures are logged and retried at the next call."""
        desired = self._desired()
        names = {pool.name for pool, _ in desired}
        self._written = {name: written for name, written in self._written.items() if name in names}
        await asyncio.gather(
            *(self._update(pool, status) for pool, status in desired if not self._is_written(pool, status))
        )

    def _desired(self) -> list[tuple[NodePool, DesiredPoolStatus]]:
        pools = tuple(self._store.pools)
        self._registrations.observe(pools, self._store.claims, self._clock())
        totals = {name: total_resources(states) for name, states in self._nodes.by_pool().items()}
        nothing = total_resources(())
        self._drop_readable(pools)
        desired = [
            (pool, self._status(pool, totals.get(pool.name, nothing)))
            for pool in pools
            if pool.name not in self._unreadable
        ]
        for name, unreadable in self._unreadable.items():
            pool = NODE_POOLS.metadata_only(unreadable.metadata)
            flaws = [Flaw("", "Unreadable", unreadable.problem)]
            desired.append((pool, pool_status(pool, resources=totals.get(name, nothing), flaws=flaws)))
        return desired

    def _status(self, pool: NodePool, resources: Mapping[str, Quantity]) -> DesiredPoolStatus:
        return pool_status(
            pool,
            resources=resources,
            node_class_ready=self._node_classes(pool),
            registers=self._registrations.healthy(pool.name),
            flaws=tuple(controller_flaws(pool)),
        )

    def _drop_readable(self, pools: tuple[NodePool, ...]) -> None:
        for pool in pools:
            unreadable = self._unreadable.get(pool.name)
            if unreadable is not None and version_of(pool) > version_number(unreadable.metadata.resource_version):
                del self._unreadable[pool.name]

    def _is_written(self, pool: NodePool, status: DesiredPoolStatus) -> bool:
        last = self._written.get(pool.name)
        if last is None:
            return False
        return last.uid == pool.metadata.uid and version_of(pool) <= last.version and last.status == status

    async def _update(self, pool: NodePool, status: DesiredPoolStatus) -> None:
        try:
            version = await retry_on_conflict(lambda: self._write(pool, status))
        except NotFoundError:
            self._unreadable.pop(pool.name, None)
        except NotLeadingError:
            return
        except ApiError as error:
            _log.warning("pool status write failed; retrying", pool=pool.name, error=str(error))
        else:
            self._written[pool.name] = _Written(pool.metadata.uid, version, status)

    async def _write(self, pool: NodePool, status: DesiredPoolStatus) -> int:
        """Write the status of a pool; the version of the pool that has it."""
        current = msgspec.json.decode(await self._client.raw("GET", NODE_POOLS.path(name=pool.name)))
        metadata = current["metadata"]
        if metadata["uid"] != pool.metadata.uid:
            raise NotFoundError(404, "NotFound", "another pool has this name by now", about=f"NodePool {pool.name}")
        patch = status_patch(current, status, self._clock())
        if patch:
            patch["metadata"] = {"resourceVersion": metadata["resourceVersion"]}
            # Not the typed call, which fails for a pool that cannot be read.
            answer = await self._client.raw(
                "PATCH",
                NODE_POOLS.path(name=pool.name, subresource="status"),
                body=msgspec.json.encode(patch),
                content_type=_MERGE_PATCH,
            )
            metadata = msgspec.json.decode(answer)["metadata"]
        return version_number(metadata["resourceVersion"])
