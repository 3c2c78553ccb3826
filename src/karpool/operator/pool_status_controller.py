"""Keeps the status of NodePools in line with what is known of them, and writes only what would change."""

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
from karpool.live.patches import Json
from karpool.live.resources import NODE_POOLS
from karpool.live.writer import retry_on_conflict
from karpool.model.nodepool import NodePool
from karpool.model.rules.pools import controller_flaws
from karpool.operator.pool_nodes import ByPool, PoolNodes
from karpool.operator.pool_status import WantedStatus, counted, pool_status, status_patch
from karpool.operator.registration_health import RegistrationHealth
from karpool.wire.problems import Flaw
from karpool.wire.quantity import Quantity

_log = structlog.get_logger()
_MERGE_PATCH: Final = "application/merge-patch+json"
NodeClasses = Callable[[NodePool], bool | None]


class _Settled(NamedTuple):
    """A status that a pool has, as of a version of the pool."""

    uid: str
    version: int
    status: WantedStatus


class PoolStatusController:
    """Writes conditions and counters of pools; one call at a time.

    It reads the store and never writes there: what it wrote comes back by the watch, between decisions.
    """

    def __init__(
        self, client: Client, store: ClusterStore, *, node_classes: NodeClasses, clock: Callable[[], datetime]
    ) -> None:
        """`node_classes` says whether the node class of a pool can be used; None: nobody can tell."""
        self._client = client
        self._store = store
        self._node_classes = node_classes
        self._clock = clock
        self._registrations = RegistrationHealth()
        self._unreadable: dict[str, Unreadable] = {}
        self._settled: dict[str, _Settled] = {}
        self._machines = PoolNodes(store)
        self._counted: tuple[ByPool, Mapping[str, Mapping[str, Quantity]]] = ({}, {})

    def unreadable(self, found: Unreadable) -> None:
        """Note an object that was left out; if it is a pool, its status will say why."""
        if found.resource is NODE_POOLS and found.metadata.name:
            self._unreadable[found.metadata.name] = found

    async def keep(self) -> None:
        """Bring the status of every pool in line; what fails is logged and tried again at the next call."""
        wanted = self._wanted()
        there = {pool.name for pool, _ in wanted}
        self._settled = {name: held for name, held in self._settled.items() if name in there}
        await asyncio.gather(
            *(self._bring(pool, status) for pool, status in wanted if not self._is_settled(pool, status))
        )

    # -- what is wanted ------------------------------------------------------------------------------------------

    def _wanted(self) -> list[tuple[NodePool, WantedStatus]]:
        pools = tuple(self._store.pools)
        self._registrations.look(pools, self._store.claims, self._clock())
        counts = self._counts()
        nothing = counted(())
        self._forget_mended(pools)
        readable = [
            (pool, self._status(pool, counts.get(pool.name, nothing)))
            for pool in pools
            if pool.name not in self._unreadable
        ]
        return readable + [
            (pool, _unreadable_status(pool, found, counts.get(name, nothing)))
            for name, found in self._unreadable.items()
            for pool in [NODE_POOLS.metadata_only(found.metadata)]
        ]

    def _status(self, pool: NodePool, resources: Mapping[str, Quantity]) -> WantedStatus:
        return pool_status(
            pool,
            resources=resources,
            node_class_ready=self._node_classes(pool),
            registers=self._registrations.healthy(pool.name),
            flaws=tuple(controller_flaws(pool)),
        )

    def _counts(self) -> Mapping[str, Mapping[str, Quantity]]:
        """What the machines of each pool have together, counted anew only after a change."""
        machines = self._machines.by_pool()
        if self._counted[0] is not machines:
            self._counted = (machines, {pool: counted(states) for pool, states in machines.items()})
        return self._counted[1]

    def _forget_mended(self, pools: tuple[NodePool, ...]) -> None:
        """Pools of which a later version could be read."""
        for pool in pools:
            found = self._unreadable.get(pool.name)
            if found is not None and version_of(pool) > version_number(found.metadata.resource_version):
                del self._unreadable[pool.name]

    # -- what is written -----------------------------------------------------------------------------------------

    def _is_settled(self, pool: NodePool, status: WantedStatus) -> bool:
        """Whether the pool has this status, and nobody has changed the pool since."""
        held = self._settled.get(pool.name)
        if held is None:
            return False
        return held.uid == pool.metadata.uid and version_of(pool) <= held.version and held.status == status

    async def _bring(self, pool: NodePool, status: WantedStatus) -> None:
        try:
            version = await retry_on_conflict(lambda: self._write(pool, status))
        except NotFoundError:
            self._unreadable.pop(pool.name, None)
        except NotLeadingError:
            return
        except ApiError as error:
            _log.warning(
                "the status of a pool could not be written; it is tried again", pool=pool.name, error=str(error)
            )
        else:
            self._settled[pool.name] = _Settled(pool.metadata.uid, version, status)

    async def _write(self, pool: NodePool, status: WantedStatus) -> int:
        """Give a pool its status; the version of the pool that has it."""
        held = msgspec.json.decode(await self._client.raw("GET", NODE_POOLS.path(name=pool.name)))
        if held["metadata"]["uid"] != pool.metadata.uid:
            raise NotFoundError(404, "NotFound", "another pool has this name by now", about=f"NodePool {pool.name}")
        return await self._patched(held, status)

    async def _patched(self, held: Json, status: WantedStatus) -> int:
        metadata = held["metadata"]
        patch = status_patch(held, status, self._clock())
        if patch:
            patch["metadata"] = {"resourceVersion": metadata["resourceVersion"]}
            # Not the typed call: it would refuse to return a pool that cannot be read.
            answer = await self._client.raw(
                "PATCH",
                NODE_POOLS.path(name=metadata["name"], subresource="status"),
                body=msgspec.json.encode(patch),
                content_type=_MERGE_PATCH,
            )
            metadata = msgspec.json.decode(answer)["metadata"]
        return version_number(metadata["resourceVersion"])


def _unreadable_status(pool: NodePool, found: Unreadable, resources: Mapping[str, Quantity]) -> WantedStatus:
    flaws = [Flaw("", "Unreadable", found.problem)]
    return pool_status(pool, resources=resources, node_class_ready=None, registers=None, flaws=flaws)
