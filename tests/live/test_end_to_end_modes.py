"""Other modes of the controller on a real cluster: dry run, beside Karpenter, and with metrics."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from tests.live.control_plane import ControlPlane
from tests.live.fake_karpenter import karpenter
from tests.live.invariants import RuleMonitor, in_pool
from tests.live.programs import free_port
from tests.live.proxy import Proxy
from tests.live.trial import (
    DEPLOYMENTS,
    SETTINGS,
    Trial,
    budget,
    deployment,
    guarded_pod,
    journal,
    machines,
    play,
    pool,
    with_journal,
)

from karpool.catalog.pricing import PRICE_LABEL
from karpool.controller.observer import DecisionObserver
from karpool.disruption.command import Command
from karpool.kube.resources import EVENTS
from karpool.live import resources as r
from karpool.model.labels import DISRUPTED_TAINT, INSTANCE_TYPE, NODEPOOL
from karpool.model.nodepool import NodeClaim
from karpool.observability.serving import Address, Page
from karpool.operator.kwok_node_class import KWOK_NODE_CLASSES
from karpool.provisioning.provision import ProvisioningResult

BUDGETS = "karpool.sh/budgets"
TAINT = "karpool.sh/disrupted"
HASH = "karpenter.sh/nodepool-hash"
BESIDE_KARPENTER = replace(SETTINGS, provider="karpenter")
# Leases are renewed all the time by those who play the kubelets.
COMPARED = (r.PODS, r.NODES, r.NODE_CLAIMS, r.NODE_POOLS, EVENTS, DEPLOYMENTS, r.NAMESPACES, KWOK_NODE_CLASSES)


def test_a_dry_run_decides_and_writes_nothing(running_cluster: ControlPlane, tmp_path: Path) -> None:
    """Nodes that are empty and a pod that waits: the journal says what would be done, the cluster stays as it was."""
    path = tmp_path / "journal"
    metrics = Address("127.0.0.1", free_port())
    dry = with_journal(path, replace(SETTINGS, dry_run=True, metrics_address=metrics))

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(template={"spec": {"requirements": machines("c-2x")}}))
        await trial.make(pool("large", template={"spec": {"requirements": machines("c-8x")}}))
        task = trial.start()
        await trial.make(deployment("web", 2, **in_pool("default")))
        await trial.until_running(2)
        names = {node.name for node in await trial.until_nodes(2)}
        await trial.until_initialized()
        await trial.stop(task)
        await trial.scale("web", 0)
        await trial.make(deployment("waits", 1, **in_pool("large")))
        await trial.until_running(0)
        await trial.until("the scheduler has looked", lambda: _has_waiting_pod(trial))
        await asyncio.sleep(1)
        before = await _versions(trial)
        trial.start(dry)

        async def decided() -> bool:
            empty = any(set(line["nodes"]) == names for line in journal(path, "Decision"))
            return empty and bool(journal(path, "Provisioned"))

        await trial.until("it is decided", decided)
        await asyncio.sleep(2)
        assert await _versions(trial) == before
        assert {(line["method"], line["dryRun"]) for line in journal(path, "Decision")} == {("Emptiness", True)}
        assert not journal(path, "Begun")
        page = _series(await _page(metrics, "/metrics"))
        assert (page["karpool_dry_run"], page["karpool_leading"]) == (1, 0)
        (line,) = journal(path, "Provisioned")
        assert [new["instanceTypes"] for new in line["newNodes"]] == [["c-8x-amd64-linux"]]

    play(running_cluster, scenario)


def test_beside_karpenter_only_what_is_there_is_replaced(running_cluster: ControlPlane) -> None:
    """Budgets from the annotation, an own taint, no node for pods that wait, and no hash of its own making."""

    async def scenario(trial: Trial) -> None:
        await trial.make(_karpenters_pool(), budget("web", minAvailable=1), deployment("web", 2, **in_pool("default")))
        old = await _made_by_karpenter(trial)
        await trial.make(deployment("waits", 1, cpu="16"))
        trial.start()
        async with RuleMonitor(trial, healthy={"web": 1}, leaving={}) as monitor:
            await asyncio.sleep(2.5)
            assert [claim.name for claim in await trial.claims()] == [old.name]
            annotations = {BUDGETS: json.dumps([{"nodes": "1"}])}
            await trial.change("NodePool", "default", {"metadata": {"annotations": annotations}})
            new = await _replacement_of(trial, old)
            await asyncio.sleep(1)
            claims = {claim.name: claim for claim in await trial.claims()}
            assert claims.keys() == {old.name, new.name}
            assert claims[old.name].metadata.deletion_timestamp is None
            (node,) = await trial.nodes()
            keys = {taint.key for taint in node.spec.taints}
            assert TAINT in keys
            assert DISRUPTED_TAINT not in keys
            async with karpenter(trial):
                await trial.until("the old node is gone", lambda: _only(trial, new.name))
                await trial.until_running(2)
        assert not monitor.broken
        (claim,) = await trial.claims()
        assert claim.metadata.labels[INSTANCE_TYPE] == "c-4x-amd64-linux"
        assert HASH not in claim.metadata.annotations
        (made,) = (await trial.client.list(r.NODE_POOLS)).items
        assert HASH not in made.metadata.annotations

    play(running_cluster, scenario, BESIDE_KARPENTER)


def test_beside_karpenter_a_pod_that_no_watch_tells_of_saves_its_node(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(_karpenters_pool(), deployment("web", 2, **in_pool("default")))
        old = await _made_by_karpenter(trial)
        annotations = {BUDGETS: json.dumps([{"nodes": "1"}])}
        await trial.change("NodePool", "default", {"metadata": {"annotations": annotations}})
        async with Proxy(trial.target) as proxy:
            trial.start(target=proxy.target)
            new = await _replacement_of(trial, old)
            proxy.stalled.add("pods")
            (node,) = await trial.nodes()
            await trial.make(guarded_pod(node.name))
            async with karpenter(trial):

                async def blocked() -> bool:
                    told = await trial.events("DisruptionBlocked", node.name)
                    return any("Pod default/guarded has" in event.message for event in told)

                await trial.until("the command waits for the pod", blocked)
                await asyncio.sleep(1)
                assert not [write for write in proxy.writes if write.startswith("DELETE") and "nodeclaims" in write]
                proxy.stalled.clear()
                await trial.delete("Pod", "guarded")
                await trial.until("the old node is gone", lambda: _only(trial, new.name))

    play(running_cluster, scenario, BESIDE_KARPENTER)


class CommandPage(DecisionObserver):
    """An observer that is a page, too: it shows the commands that have started."""

    def __init__(self, address: Address) -> None:
        self.page = Page("/commands", address, self._answer)
        self._methods: list[str] = []
        self._requested = 0

    def pods_provisioned(self, result: ProvisioningResult) -> None:
        self._requested += len(result.claims)

    def command_started(self, command: Command, _identity: str) -> None:
        self._methods.append(str(command.method))

    async def _answer(self, _: web.Request) -> web.Response:
        return web.json_response({"requested": self._requested, "started": self._methods})


def test_a_page_of_the_caller_shows_what_its_observer_hears(running_cluster: ControlPlane) -> None:
    address = Address("127.0.0.1", free_port())
    commands = CommandPage(address)

    async def scenario(trial: Trial) -> None:
        await trial.make(pool())
        trial.start(observers=[commands], pages=[commands.page])
        await trial.make(deployment("web", 1))
        await trial.until_running(1)
        await trial.scale("web", 0)
        await trial.until_nodes(0)
        assert json.loads(await _page(address, "/commands")) == {"requested": 1, "started": ["Emptiness"]}

    play(running_cluster, scenario)


def test_metrics_and_probes_show_what_happens(running_cluster: ControlPlane) -> None:
    """Cost and decisions are on the page of metrics; the probes say that all is well."""
    metrics, health = (Address("127.0.0.1", free_port()) for _ in range(2))

    async def scenario(trial: Trial) -> None:
        await trial.make(pool())
        trial.start()
        await trial.make(deployment("web", 6))
        await trial.until_running(6)
        (large,) = await trial.until_nodes(1)
        await trial.scale("web", 1)
        await trial.until_running(1)
        await trial.until("a smaller node is there", lambda: _gone(trial, large.name))
        (small,) = await trial.nodes()
        price = float(small.metadata.labels[PRICE_LABEL])

        async def shown() -> bool:
            page = _series(await _page(metrics, "/metrics"))
            return abs(page['karpool_cluster_cost_dollars_per_hour{nodepool="default"}'] - price) < 1e-6

        await trial.until("the cost is that of the small node", shown)
        page = _series(await _page(metrics, "/metrics"))
        decisions = [name for name in page if name.startswith("karpool_voluntary_disruption_decisions_total")]
        assert any('decision="replace"' in name and page[name] == 1 for name in decisions)
        assert page["karpool_saved_dollars_per_hour_total"] > 0
        assert page["karpool_leading"] == 1
        assert page["karpool_decision_seconds_count"] > 0
        assert await _page(health, "/healthz") == await _page(health, "/readyz") == "ok\n"

    play(running_cluster, scenario, replace(SETTINGS, metrics_address=metrics, health_address=health))


async def _versions(trial: Trial) -> dict[tuple[str, str], str]:
    """The versions of all objects."""
    listed = {resource.plural: await trial.client.list(resource) for resource in COMPARED}
    return {
        (plural, obj.key): obj.metadata.resource_version for plural, objects in listed.items() for obj in objects.items
    }


async def _has_waiting_pod(trial: Trial) -> bool:
    pods = await trial.pods()
    return len(pods) == 1 and any(condition.type == "PodScheduled" for condition in pods[0].status.conditions)


def _karpenters_pool() -> dict[str, Any]:
    """A pool whose own budgets keep Karpenter from disrupting anything."""
    return pool(disruption={"consolidateAfter": "1s", "budgets": [{"nodes": "0"}]})


async def _made_by_karpenter(trial: Trial) -> NodeClaim:
    """A NodeClaim that Karpenter made, launched and initialized; it is too large, and pods run there."""
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    spec = {"requirements": machines("c-16x"), "nodeClassRef": ref, "resources": {"requests": {"cpu": "10"}}}
    metadata = {"name": "default-old", "labels": {NODEPOOL: "default"}}
    await trial.make({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec})
    async with karpenter(trial):
        await trial.until_running(2)
    (claim,) = await trial.claims()
    return claim


async def _replacement_of(trial: Trial, old: NodeClaim) -> NodeClaim:
    async def is_there() -> bool:
        return len(await trial.claims()) > 1

    await trial.until("a replacement is asked for", is_there)
    (new,) = [claim for claim in await trial.claims() if claim.name != old.name]
    return new


async def _only(trial: Trial, name: str) -> bool:
    objects = (*await trial.nodes(), *await trial.claims())
    return {obj.name for obj in objects} == {name}


async def _gone(trial: Trial, name: str) -> bool:
    return name not in {thing.name for thing in (*await trial.nodes(), *await trial.claims())}


async def _page(address: Address, path: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}{path}") as response:
        return await response.text()


def _series(page: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}
