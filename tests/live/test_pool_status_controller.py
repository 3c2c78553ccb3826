"""The status of NodePools as it is written on a real API server."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from tests.factories import node, node_claim
from tests.live import https
from tests.live.control_plane import ControlPlane

from karpool.controller.store import ClusterStore
from karpool.kube.client import Client
from karpool.kube.kubeconfig import find_target
from karpool.kube.resources import Unreadable
from karpool.live.crds import NAMES, definition
from karpool.live.resources import NODE_CLAIMS, NODE_POOLS, NODES
from karpool.model.nodepool import NodePool
from karpool.operator.pool_nodes import PoolNodes
from karpool.operator.pool_status_controller import PoolStatusController

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
REF = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "good"}


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A server that knows our kinds."""
    admin = https.Client(control_plane.kubeconfig())
    for name in NAMES:
        assert admin.post(DEFINITIONS, yaml.safe_load(definition(name))).status in (201, 409)
    https.eventually(lambda: all(admin.get(path).status == 200 for path in (POOLS, CLAIMS)))
    return control_plane


class Cluster:
    """One pool on the server, and a controller whose store is filled by hand."""

    def __init__(self, client: Client, admin: https.Client, name: str) -> None:
        self.client = client
        self.admin = admin
        self.name = name
        self.store = ClusterStore()
        self.classes = {"good"}
        self.writes = 0
        self.before_write: Callable[[Cluster], None] = lambda _: None
        self._asked = 0
        client.on_request = self._heard
        self.controller = PoolStatusController(
            client, self.store, PoolNodes(self.store), node_classes=self._class_ready, clock=self._clock
        )

    def _clock(self) -> datetime:
        """The time; it is asked for once before anything is read, and once between reading and writing a pool."""
        self._asked += 1
        if self._asked == 2:
            self.before_write(self)
        return datetime.now(UTC)

    def _heard(self, verb: str, _resource: str, _status: int, _seconds: float) -> None:
        self.writes += verb == "patch"

    def _class_ready(self, pool: NodePool) -> bool:
        return pool.spec.template.spec.node_class_ref.name in self.classes

    async def refresh(self) -> None:
        """Show the store what a watch would."""
        self.store.pools.put(await self.client.get(NODE_POOLS, self.name))
        for claim in (await self.client.list(NODE_CLAIMS)).items:
            self.store.claims.put(claim)
        for stored in (await self.client.list(NODES)).items:
            self.store.nodes.put(stored)

    async def kept(self) -> dict[str, Any]:
        """The status after the controller has come by."""
        await self.refresh()
        await self.controller.reconcile()
        return dict(self.admin.get(f"{POOLS}/{self.name}").body["status"])

    async def patch(self, patch: dict[str, Any], subresource: str = "") -> None:
        await self.client.merge_patch(NODE_POOLS, self.name, patch, subresource=subresource)


def on_a_server(plane: ControlPlane, name: str, scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    """Play a story with a pool of its own."""

    async def run() -> None:
        admin = https.Client(plane.kubeconfig())
        claim = {"nodeClassRef": REF, "requirements": []}
        made = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}}
        assert admin.post(POOLS, {**made, "spec": {"template": {"spec": claim}}}).status == 201
        try:
            async with Client(find_target(kubeconfig=plane.kubeconfig())) as client:
                await scenario(Cluster(client, admin, name))
        finally:
            assert admin.delete(f"{POOLS}/{name}").status == 200

    asyncio.run(run())


def statuses(status: dict[str, Any]) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in status["conditions"]}


def test_a_new_pool_gets_a_status_and_keeps_it_without_more_writes(plane: ControlPlane) -> None:
    async def scenario(cluster: Cluster) -> None:
        status = await cluster.kept()
        assert statuses(status) == {
            "ValidationSucceeded": "True",
            "NodeClassReady": "True",
            "Ready": "True",
            "NodeRegistrationHealthy": "Unknown",
        }
        assert status["nodes"] == 0
        assert status["resources"]["nodes"] == "0"
        for _ in range(3):
            assert await cluster.kept() == status
        assert cluster.writes == 1

    on_a_server(plane, "pools-new", scenario)


def test_a_pool_follows_its_node_class(plane: ControlPlane) -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.classes = set()
        assert statuses(await cluster.kept())["Ready"] == "False"
        cluster.classes = {"better"}
        assert statuses(await cluster.kept())["Ready"] == "False"
        await cluster.patch({"spec": {"template": {"spec": {"nodeClassRef": {"name": "better"}}}}})
        conditions = statuses(await cluster.kept())
        assert (conditions["NodeClassReady"], conditions["Ready"]) == ("True", "True")

    on_a_server(plane, "pools-class", scenario)


def test_counters_follow_claims_and_nodes(plane: ControlPlane) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.kept()
        claim = node_claim("pools-one", pool=cluster.name, capacity={"cpu": "4", "memory": "16Gi"})
        cluster.store.claims.put(claim)
        status = await cluster.kept()
        assert (status["nodes"], status["resources"]["cpu"], status["resources"]["memory"]) == (1, "4", "16Gi")
        cluster.store.nodes.put(node("pools-one", pool=cluster.name, cpu="8", resources={"example.com/gpu": "2"}))
        status = await cluster.kept()
        assert (status["nodes"], status["resources"]["cpu"], status["resources"]["example.com/gpu"]) == (1, "8", "2")
        cluster.store.claims.remove("pools-one")
        cluster.store.nodes.remove("pools-one")
        status = await cluster.kept()
        assert (status["nodes"], status["resources"]["cpu"]) == (0, "0")
        assert "example.com/gpu" not in status["resources"]

    on_a_server(plane, "pools-counters", scenario)


def test_a_pool_that_nodes_cannot_join_says_so_and_stays_ready(plane: ControlPlane) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.kept()
        for name in ("x", "y"):
            claim = node_claim(name, pool=cluster.name, created=NOW - timedelta(minutes=20), deleted=NOW)
            cluster.store.claims.put(claim)
        conditions = statuses(await cluster.kept())
        assert (conditions["NodeRegistrationHealthy"], conditions["Ready"]) == ("False", "True")

    on_a_server(plane, "pools-health", scenario)


def test_conditions_of_others_survive_and_ours_are_mended(plane: ControlPlane) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.kept()
        theirs = {"type": "Theirs", "status": "True", "observedGeneration": 7}
        bare = {"type": "Ready", "status": "False"}
        await cluster.patch({"status": {"conditions": [theirs, bare]}}, "status")
        status = await cluster.kept()
        assert theirs in status["conditions"]
        assert statuses(status)["Ready"] == "True"
        assert all(entry["observedGeneration"] == 1 for entry in status["conditions"] if entry["type"] != "Theirs")

    on_a_server(plane, "pools-foreign", scenario)


def test_a_pool_that_changes_meanwhile_is_looked_at_again(plane: ControlPlane) -> None:
    def quick_hand(cluster: Cluster) -> None:
        place = f"{POOLS}/{cluster.name}"
        seen = cluster.admin.get(place).body
        seen["metadata"]["labels"] = {"quick": "hand"}
        assert cluster.admin.request("PUT", place, seen).status == 200

    async def scenario(cluster: Cluster) -> None:
        await cluster.refresh()
        cluster.before_write = quick_hand
        await cluster.controller.reconcile()
        pool = cluster.admin.get(f"{POOLS}/{cluster.name}").body
        assert cluster.writes == 2  # the one that came too late, and the one that looked again
        assert pool["metadata"]["labels"] == {"quick": "hand"}
        assert statuses(pool["status"])["Ready"] == "True"

    on_a_server(plane, "pools-conflict", scenario)


def test_a_pool_that_cannot_be_read_says_why_until_it_is_mended(plane: ControlPlane) -> None:
    async def scenario(cluster: Cluster) -> None:
        key = "karpool.sh/budgets"
        cluster.admin.get(POOLS)
        await cluster.refresh()
        lost: list[Unreadable] = []
        cluster.client.on_unreadable = lost.append
        path = NODE_POOLS.path(name=cluster.name)
        body = f'{{"metadata": {{"annotations": {{"{key}": "nonsense"}}}}}}'.encode()
        await cluster.client.raw("PATCH", path, body=body, content_type="application/merge-patch+json")
        for _ in range(3):
            await cluster.client.list(NODE_POOLS)
            cluster.controller.unreadable(lost[-1])
            await cluster.controller.reconcile()
        status = cluster.admin.get(f"{POOLS}/{cluster.name}").body["status"]
        message = next(entry["message"] for entry in status["conditions"] if entry["type"] == "ValidationSucceeded")
        assert (statuses(status)["ValidationSucceeded"], statuses(status)["Ready"]) == ("False", "False")
        assert key in message
        assert cluster.writes == 2
        await cluster.patch({"metadata": {"annotations": {key: None}}})
        assert statuses(await cluster.kept())["Ready"] == "True"

    on_a_server(plane, "pools-unreadable", scenario)
