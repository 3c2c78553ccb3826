"""How many pods gangs need: read again and again while pods wait as gangs, for it is seldom asked."""

from typing import Any

import structlog

from karpool.controller.store import ClusterStore
from karpool.kube.cache import ChangeQueue
from karpool.kube.client import Client
from karpool.kube.store import Store
from karpool.live.gang_objects import read_gang_objects
from karpool.operator.listed_objects import queue_listed

_log = structlog.get_logger()


class GangReader:
    """Keeps PodGroups and Workloads in a store; a cluster without gangs costs no request."""

    def __init__(self, client: Client, store: ClusterStore, changes: ChangeQueue) -> None:
        self._client = client
        self._store = store
        self._changes = changes
        self._said: tuple[str, ...] = ()

    async def read(self) -> None:
        """Read once; the store changes between decisions."""
        found = await read_gang_objects(self._client, self._store.pods.listed())
        if found.problems and found.problems != self._said:
            _log.warning("gangs", problem="; ".join(found.problems))
        self._said = found.problems
        stores: dict[str, Store[Any]] = {"pod_groups": self._store.pod_groups, "workloads": self._store.workloads}
        queue_listed(self._changes, stores, found.found)
