"""The cluster on which controllers are compared: nodes of several types, less than half full; alike for a seed."""

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml
from live_cluster import AT_ONCE, REF, REPLICA_SETS, ZONES, node_name, until_served, write_node
from tests.live.control_plane import STAGES

from karpool.catalog.instance_types import InstanceType
from karpool.catalog.sources import open_catalog
from karpool.kube.client import Client
from karpool.kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from karpool.live import resources as r
from karpool.model import labels as names
from karpool.operator.kwok_node_class import KWOK_NODE_CLASSES

TYPES: Final = tuple(f"{name}-amd64-linux" for name in ("s-4x", "c-8x", "s-8x", "m-4x", "s-16x"))
SIZES: Final = ((50, 128), (100, 256), (100, 512), (250, 256), (250, 1024), (500, 1024))
"""What a pod may ask for: millicores and MiB."""
SET: Final = 20
"""Pods of one ReplicaSet."""
REGISTRATION: Final = 5
"""Seconds from the launch of an instance to its node."""
POD_START: Final = 2
"""Seconds until a pod runs that has a node."""
Json = dict[str, Any]


@dataclass(frozen=True)
class PlannedPod:
    """A pod, the ReplicaSet that it belongs to, and the node that it is bound to."""

    name: str
    owner: str
    node: str


@dataclass(frozen=True)
class Layout:
    """What is written: types by node, sizes by ReplicaSet, pods with their nodes."""

    nodes: dict[str, str]
    sizes: dict[str, tuple[int, int]]
    pods: tuple[PlannedPod, ...]


class NoRoomError(Exception):
    """So many pods do not fit on so few nodes."""


def layout(nodes: int, pods: int, seed: int = 0) -> Layout:
    """Pods on nodes that have room for them, chosen by chance."""
    random, catalog = Random(seed), open_catalog("kwok")
    types = {node_name(number): random.choice(TYPES) for number in range(nodes)}
    free = {name: _room(catalog.by_name[kind]) for name, kind in types.items()}
    sizes: dict[str, tuple[int, int]] = {}
    placed: list[PlannedPod] = []
    for number in range(pods):
        owner = f"web-{number // SET:04}"
        size = sizes.setdefault(owner, random.choice(SIZES))
        wanted = (*size, 1)
        fitting = [name for name, room in free.items() if all(a <= b for a, b in zip(wanted, room, strict=True))]
        if not fitting:
            raise NoRoomError(f"pod {number + 1} of {pods} fits on none of {nodes} nodes")
        node = random.choice(fitting)
        free[node] = [b - a for a, b in zip(wanted, free[node], strict=True)]
        placed.append(PlannedPod(f"{owner}-{number % SET:02}", owner, node))
    return Layout(types, sizes, tuple(placed))


def _room(kind: InstanceType) -> list[int]:
    amounts = kind.allocatable
    return [amounts["cpu"].milli, amounts["memory"].units // 2**20, amounts["pods"].units]


def stages(folder: Path) -> Path:
    """What kwok plays: as in the live tests, but pods take a moment to start."""
    documents = list(yaml.safe_load_all(STAGES.read_text(encoding="utf-8")))
    (runs,) = [document for document in documents if document["metadata"]["name"] == "pod-runs"]
    runs["spec"]["delay"] = {"durationMilliseconds": POD_START * 1000}
    path = folder / "stages.yaml"
    path.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    return path


class PeerCluster:
    """Writes a layout; only etcd and the API server are needed, and nobody else should run yet."""

    def __init__(self, client: Client, definitions: Path, planned: Layout, budget: str) -> None:
        self._client = client
        self._definitions = definitions
        self._planned = planned
        self._budget = budget
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def make(self) -> None:
        """Write everything, with Karpenter's own definitions."""
        await self._define()
        node_class = {"metadata": {"name": "default"}, "spec": {"nodeRegistrationDelay": f"{REGISTRATION}s"}}
        await self._client.create(KWOK_NODE_CLASSES, node_class)
        pool = await self._client.create(r.NODE_POOLS, node_pool(self._budget))
        kinds, catalog = self._planned.nodes, open_catalog("kwok")
        await self._all(
            write_node(self._client, name, node_labels(kind, number), catalog.by_name[kind], pool.metadata.uid)
            for number, (name, kind) in enumerate(kinds.items())
        )
        await self._all(self._replica_set(name, size) for name, size in self._planned.sizes.items())

    async def _all(self, work: Iterable[Awaitable[None]]) -> None:
        async def one(awaited: Awaitable[None]) -> None:
            async with self._slots:
                await awaited

        await asyncio.gather(*map(one, work))

    async def _define(self) -> None:
        for path in sorted(self._definitions.glob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
                await self._client.create(CUSTOM_RESOURCE_DEFINITIONS, document)
        for resource in (r.NODE_POOLS, r.NODE_CLAIMS, KWOK_NODE_CLASSES):
            await until_served(self._client, resource)

    async def _replica_set(self, name: str, size: tuple[int, int]) -> None:
        """A ReplicaSet and its pods, which are bound already."""
        own = [pod for pod in self._planned.pods if pod.owner == name]
        labels, spec = {"app": name}, pod_spec(size)
        template = {"metadata": {"labels": labels}, "spec": spec}
        whole = {"replicas": len(own), "selector": {"matchLabels": labels}, "template": template}
        made = await self._client.create(REPLICA_SETS, {"metadata": {"name": name}, "spec": whole}, namespace="default")
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": made.metadata.uid}
        for pod in own:
            metadata = {"name": pod.name, "labels": labels, "ownerReferences": [owner | {"controller": True}]}
            bound = {"metadata": metadata, "spec": spec | {"nodeName": pod.node}}
            await self._client.create(r.PODS, bound, namespace="default")


def node_labels(kind: str, number: int) -> dict[str, str]:
    """The first three are what the NodeClaim requires."""
    return {
        names.INSTANCE_TYPE: kind,
        names.ZONE: ZONES[number % len(ZONES)],
        names.CAPACITY_TYPE: "on-demand",
        names.NODEPOOL: "default",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }


def node_pool(budget: str) -> Json:
    """The only pool, without a status."""
    wanted = {"karpenter.sh/capacity-type": "on-demand", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()]
    spec = {
        "template": {"spec": {"requirements": requirements, "nodeClassRef": REF, "expireAfter": "Never"}},
        "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": budget}]},
    }
    return {"metadata": {"name": "default"}, "spec": spec}


def pod_spec(size: tuple[int, int]) -> Json:
    """A pod that asks for this much."""
    cpu, memory = size
    resources = {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}
    container = {"name": "web", "image": "web", "resources": resources}
    return {"terminationGracePeriodSeconds": 1, "containers": [container]}
