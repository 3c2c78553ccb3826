"""Reads nodes and their pods from the API server, whatever is cached, and lets the caches know.

An API server without consistent reads from its cache (before 1.31) answers a list of one node's pods by reading all
pods of the cluster. So few such lists are under way at a time, they ask for no pages, which would make 1.31 do the
same, and much of a cluster is read in one list.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from karpool.execution.fresh_facts import FreshNode
from karpool.kube.cache import CacheFeed
from karpool.kube.client import UNPAGED, Client
from karpool.kube.errors import ApiError, NotFoundError
from karpool.live.resources import NODES, PODS
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.reading.unreadable import UNKNOWN

CONCURRENT_READS: Final = 4
"""How many nodes are read at the same time, by all who ask."""
MANY: Final = 20
"""From so many nodes on, one list of all pods may be cheaper than one for each node."""
SHARE: Final = 4
"""It is, if these are at least one in so many of all nodes: it brings no more than so many times what is wanted."""


class FactReader:
    def __init__(self, client: Client, nodes: CacheFeed[Node], pods: CacheFeed[Pod]) -> None:
        self._client = client
        self._nodes = nodes
        self._pods = pods
        self._slots = asyncio.Semaphore(CONCURRENT_READS)

    async def read(self, names: Sequence[str]) -> dict[str, FreshNode]:
        """Nodes and their pods as they are now; a failure is written into the facts."""
        wanted = list(dict.fromkeys(names))
        if len(wanted) >= MANY and len(wanted) * SHARE >= len(self._nodes.store):
            return await self._read_all(wanted)
        facts = await asyncio.gather(*map(self._read, wanted))
        return dict(zip(wanted, facts, strict=True))

    async def _read(self, name: str) -> FreshNode:
        async with self._slots:
            try:
                node = await self._node(name)
                listed = await self._client.list(PODS, field_selector=f"spec.nodeName={name}", page=UNPAGED)
            except ApiError as error:
                return FreshNode(problem=str(error))
        return self._fresh(node, listed.items)

    async def _read_all(self, names: Sequence[str]) -> dict[str, FreshNode]:
        async with self._slots:
            try:
                nodes = {node.name: node for node in (await self._client.list(NODES)).items}
                listed = await self._client.list(PODS, field_selector="spec.nodeName!=")
            except ApiError as error:
                return dict.fromkeys(names, FreshNode(problem=str(error)))
        # A pod whose node cannot be read may be on any of them.
        pods: dict[str, list[Pod]] = {name: [] for name in (*names, UNKNOWN)}
        for pod in listed.items:
            if pod.spec.node_name in pods:
                pods[pod.spec.node_name].append(pod)
        for name in names:
            if name in nodes:
                self._nodes.record_write(nodes[name])
        return {name: self._fresh(nodes.get(name), (*pods[name], *pods[UNKNOWN])) for name in names}

    async def _node(self, name: str) -> Node | None:
        try:
            node = await self._client.get(NODES, name)
        except NotFoundError:
            return None
        self._nodes.record_write(node)
        return node

    def _fresh(self, node: Node | None, pods: tuple[Pod, ...]) -> FreshNode:
        for pod in pods:
            self._pods.record_write(pod)
        return FreshNode(node, pods)
