"""Reads nodes and their pods from the API server, whatever is cached, and lets the caches know."""

import asyncio
from collections.abc import Sequence
from typing import Final

from karpool.execution.fresh_facts import FreshNode
from karpool.kube.cache import CacheFeed
from karpool.kube.client import Client
from karpool.kube.errors import ApiError, NotFoundError
from karpool.live.resources import NODES, PODS
from karpool.model.node import Node
from karpool.model.pod import Pod

CONCURRENT_READS: Final = 20
"""How many nodes are read at the same time."""


class FactReader:
    def __init__(self, client: Client, nodes: CacheFeed[Node], pods: CacheFeed[Pod]) -> None:
        self._client = client
        self._nodes = nodes
        self._pods = pods
        self._slots = asyncio.Semaphore(CONCURRENT_READS)

    async def read(self, names: Sequence[str]) -> dict[str, FreshNode]:
        """Nodes and their pods as they are now; a failure is written into the facts."""
        facts = await asyncio.gather(*map(self._read, names))
        return dict(zip(names, facts, strict=True))

    async def _read(self, name: str) -> FreshNode:
        async with self._slots:
            try:
                node = await self._node(name)
                listed = await self._client.list(PODS, field_selector=f"spec.nodeName={name}")
            except ApiError as error:
                return FreshNode(problem=str(error))
        for pod in listed.items:
            self._pods.record_write(pod)
        return FreshNode(node, listed.items)

    async def _node(self, name: str) -> Node | None:
        try:
            node = await self._client.get(NODES, name)
        except NotFoundError:
            return None
        self._nodes.record_write(node)
        return node
