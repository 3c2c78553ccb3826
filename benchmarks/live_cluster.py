"""A cluster for the live benchmark, written straight into the API server: nodes, claims, and pods bound to them."""

import asyncio
import itertools
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import yaml

from karpool.catalog.instance_types import InstanceType
from karpool.catalog.sources import open_catalog
from karpool.kube.client import Client
from karpool.kube.errors import ApiError
from karpool.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from karpool.live import crds
from karpool.live import resources as r
from karpool.model import labels as names
from karpool.model.workloads import ReplicaSet
from karpool.operator.kwok_node_class import KWOK_NODE_CLASSES
from karpool.operator.providers.kwok import PROVIDER
from karpool.wire.quantity import Quantity

AT_ONCE: Final = 64
REPLICA_SETS: Final = r.resource_of(ReplicaSet)
GROUP: Final = 5
"""Nodes that the pods of one ReplicaSet fill."""
HEARTBEAT: Final = 300.0
"""How often a kubelet writes the status of its node when nothing has changed, in seconds."""
TYPES: Final = ("c-4x-amd64-linux", "c-8x-amd64-linux", "c-16x-amd64-linux")
LARGEST: Final = TYPES[-1]
ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c")
REF: Final = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
READY: Final = ("Launched", "Registered", "Initialized")
Json = dict[str, Any]


class LiveCluster:
    """Nodes of one type, each so full that no pod of another fits."""

    def __init__(self, client: Client, nodes: int, pods: int) -> None:
        self.client = client
        self.nodes = nodes
        self.pods = pods
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._type = open_catalog("kwok").by_name[LARGEST]
        self._since = _now()

    async def make(self) -> None:
        """Write everything; only etcd and the API server are needed, and nobody else should run yet."""
        await self._definitions()
        await self.client.create(r.NAMESPACES, {"metadata": {"name": "karpool"}})
        await self.client.create(KWOK_NODE_CLASSES, {"metadata": {"name": "default"}})
        pool = await self.client.create(r.NODE_POOLS, _pool())
        await self._all(self._node(number, pool.metadata.uid) for number in range(self.nodes))
        await self._all(self._replica_set(first) for first in range(0, self.nodes, GROUP))

    async def settled(self) -> bool:
        """Whether every pod runs and no node has a taint; asked rarely, and not of the pods: there are many."""
        await asyncio.sleep(2)
        answer = await self.client.raw("GET", REPLICA_SETS.path("default"))
        sets = msgspec.json.decode(answer)["items"]
        if sum(one["status"].get("readyReplicas", 0) for one in sets) < self.nodes * self.pods:
            return False
        return not any(node.spec.taints for node in (await self.client.list(r.NODES)).items)

    async def heartbeats(self) -> None:
        """Write the status of each node every five minutes, one after the other, until cancelled."""
        for number in itertools.cycle(range(self.nodes)):
            beat = ready_condition("Ready", lastHeartbeatTime=_now(), lastTransitionTime=self._since)
            with suppress(ApiError):  # a node that is gone has no pulse
                await self.client.merge_patch(
                    r.NODES, node_name(number), {"status": {"conditions": [beat]}}, subresource="status"
                )
            await asyncio.sleep(HEARTBEAT / self.nodes)

    async def add_pod(self) -> None:
        """A pod that fits on no node."""
        pod = {"metadata": {"name": "waiting"}, "spec": pod_spec("7")}
        await self.client.create(r.PODS, pod, namespace="default")

    async def empty_nodes(self, count: int) -> set[str]:
        """Delete the pods of so many nodes, with what would make them anew; the names of those nodes."""
        chosen = range(0, min(count, self.nodes), GROUP)
        for first in chosen:
            await self.client.delete(REPLICA_SETS, f"web-{first}", namespace="default")
        return {node_name(number) for first in chosen for number in range(first, min(first + GROUP, self.nodes))}

    # -- how -----------------------------------------------------------------------------------------------------

    async def _all(self, work: Iterable[Awaitable[None]]) -> None:
        await asyncio.gather(*work)

    async def _made(self, resource: Resource[Any], thing: Json, namespace: str = "") -> Any:
        async with self._slots:
            return await self.client.create(resource, thing, namespace=namespace)

    async def _definitions(self) -> None:
        for document in yaml.safe_load_all(crds.definitions()):
            await self.client.create(CUSTOM_RESOURCE_DEFINITIONS, document)
        for resource in (r.NODE_POOLS, r.NODE_CLAIMS, KWOK_NODE_CLASSES):
            await until_served(self.client, resource)

    async def _node(self, number: int, pool_uid: str) -> None:
        async with self._slots:
            await write_node(self.client, node_name(number), self._labels(number), self._type, pool_uid)

    def _labels(self, number: int) -> dict[str, str]:
        return {
            names.INSTANCE_TYPE: LARGEST,
            names.ZONE: ZONES[number % len(ZONES)],
            names.CAPACITY_TYPE: "on-demand",
            names.NODEPOOL: "default",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
        }

    async def _replica_set(self, first: int) -> None:
        """A ReplicaSet and its pods, a share for each node."""
        name = f"web-{first}"
        filled = range(first, min(first + GROUP, self.nodes))
        template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(self._share())}
        spec = {
            "replicas": self.pods * len(filled),
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        }
        made = await self._made(REPLICA_SETS, {"metadata": {"name": name}, "spec": spec}, "default")
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": made.metadata.uid}
        metadata = {"labels": {"app": name}, "ownerReferences": [owner | {"controller": True}]}
        await self._all(
            self._pod(f"{name}-{number}-{share}", metadata, template["spec"], node_name(number))
            for number in filled
            for share in range(self.pods)
        )

    async def _pod(self, name: str, metadata: Json, spec: Json, node: str) -> None:
        pod = {"metadata": metadata | {"name": name}, "spec": spec | {"nodeName": node}}
        await self._made(r.PODS, pod, "default")

    def _share(self) -> str:
        """What each pod asks for, so that less than one more fits."""
        return f"{self._type.allocatable['cpu'].milli // self.pods}m"


def node_name(number: int) -> str:
    """Names sort as numbers do."""
    return f"node-{number:05}"


async def until_served(client: Client, resource: Resource[Any]) -> None:
    """Wait until the API server knows a resource whose definition was just created."""
    while True:
        try:
            await client.raw("GET", resource.path())
            break
        except ApiError:
            await asyncio.sleep(0.1)


async def write_node(client: Client, name: str, labels: dict[str, str], kind: InstanceType, pool_uid: str) -> None:
    """Write a node that is ready, and the NodeClaim that it was launched for."""
    claim, node = node_objects(name, labels, kind, pool_uid)
    status = claim.pop("status")
    await client.create(r.NODE_CLAIMS, claim)
    await client.create(r.NODES, node)
    await client.merge_patch(r.NODE_CLAIMS, name, {"status": status}, subresource="status")


def node_objects(name: str, labels: dict[str, str], kind: InstanceType, pool_uid: str) -> tuple[Json, Json]:
    """A NodeClaim with its status, and the node that it was launched for."""
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": labels[names.NODEPOOL], "uid": pool_uid}
    finalizers = [names.TERMINATION_FINALIZER]
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    spec = {"nodeClassRef": REF, "requirements": requirements[:3], "expireAfter": "Never"}
    metadata = {"name": name, "labels": labels, "finalizers": finalizers, "ownerReferences": [owner]}
    amounts = {"capacity": _text(kind.capacity), "allocatable": _text(kind.allocatable)}
    status = amounts | {"providerID": PROVIDER + name, "nodeName": name, "conditions": [*map(ready_condition, READY)]}
    node = {
        "metadata": {"name": name, "labels": labels | _registered(name), "finalizers": finalizers},
        "spec": {"providerID": PROVIDER + name},
        "status": amounts | {"conditions": [ready_condition("Ready")]},
    }
    return {"metadata": metadata, "spec": spec, "status": status}, node


def _pool() -> Json:
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(TYPES)},
    ]
    spec = {
        "template": {"spec": {"requirements": requirements, "nodeClassRef": REF, "expireAfter": "Never"}},
        "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
    }
    return {"metadata": {"name": "default"}, "spec": spec}


def pod_spec(cpu: str) -> Json:
    """A pod that asks for so much of a processor."""
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    container = {"name": "web", "image": "web", "resources": resources}
    return {"terminationGracePeriodSeconds": 1, "containers": [container]}


def _registered(name: str) -> dict[str, str]:
    return {names.HOSTNAME: name, names.REGISTERED: "true", names.INITIALIZED: "true"}


def ready_condition(kind: str, **more: str) -> Json:
    """A condition that is true since now."""
    return {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": _now(), **more}


def _text(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
