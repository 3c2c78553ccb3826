"""The controller on a real cluster: pending pods get nodes, or an Event that says why not."""

import asyncio
from pathlib import Path
from typing import Any

from tests.live.control_plane import ControlPlane
from tests.live.trial import Trial, deployment, journal, machines, play, pool, with_journal

from karpool.model.labels import NODEPOOL
from karpool.wire.objects import condition

STARTING = {"key": "example.com/starting", "effect": "NoSchedule"}


def test_pods_that_wait_get_nodes_and_nodes_that_are_not_needed_go(running_cluster: ControlPlane) -> None:
    """Pods pending, NodeClaims, nodes, pods running; Deployment gone, nodes empty, nodes gone."""

    async def scenario(trial: Trial) -> None:
        await trial.make(pool())
        trial.start()
        await trial.make(deployment("web", 6))
        pods = await trial.until_running(6)
        assert {pod.spec.node_name for pod in pods} == {node.name for node in await trial.nodes()}
        await trial.until_initialized()
        await trial.scale("web", 0)
        await trial.until_nodes(0)

    play(running_cluster, scenario)


def test_the_heavier_pool_comes_first_and_its_limits_spill_over(running_cluster: ControlPlane) -> None:
    """Four nodes are needed, the heavy pool may have two."""

    async def scenario(trial: Trial) -> None:
        small = {"template": {"spec": {"requirements": machines("c-2x")}}}
        await trial.make(pool("light", weight=1, **small), pool("heavy", weight=10, limits={"cpu": "4"}, **small))
        trial.start()
        await trial.make(deployment("web", 4, cpu="1.5"))
        await trial.until_running(4)
        pools = sorted(node.metadata.labels[NODEPOOL] for node in await trial.nodes())
        assert pools == ["heavy", "heavy", "light", "light"]

    play(running_cluster, scenario)


def test_a_node_with_startup_taints_is_awaited_and_has_room_for_daemons(running_cluster: ControlPlane) -> None:
    """Pods wait for the node whose startup taint somebody else removes; no second node is asked for meanwhile."""

    async def scenario(trial: Trial) -> None:
        await trial.make(_daemons("logs", cpu="500m"), pool(template={"spec": {"startupTaints": [STARTING]}}))
        trial.start()
        await trial.make(deployment("web", 1, cpu="1500m"))
        (node,) = await trial.until_nodes(1)
        await trial.until("the claim says what it waits for", lambda: _waits_for_startup(trial))
        await asyncio.sleep(2)
        assert [entry.name for entry in await trial.nodes()] == [node.name]
        assert [pod.metadata.labels["app"] for pod in await trial.running()] == ["logs"]
        await trial.change("Node", node.name, {"spec": {"taints": None}})
        pods = await trial.until_running(2)
        assert {pod.spec.node_name for pod in pods} == {node.name}
        assert node.metadata.labels["node.kubernetes.io/instance-type"] == "c-4x-amd64-linux"
        await trial.until_initialized()

    play(running_cluster, scenario)


def test_a_pod_that_no_node_can_take_is_told_why(running_cluster: ControlPlane, tmp_path: Path) -> None:
    """An event on the pod and a line in the journal carry the reason; other pods get their node."""

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(limits={"cpu": "8"}))
        trial.start()
        await trial.make(deployment("huge", 1, cpu="16"), deployment("web", 1))
        await trial.until_running(1)
        (huge,) = [pod for pod in await trial.pods() if pod.metadata.labels["app"] == "huge"]

        async def pod_has_event() -> bool:
            return bool(await trial.events("FailedScheduling", huge.name))

        await trial.until("the pod is told", pod_has_event)
        events = await trial.events("FailedScheduling", huge.name)
        lines = journal(tmp_path / "journal", "Provisioned")
        waiting = [pod for line in lines for pod in line["unschedulable"]]
        assert {pod["pod"] for pod in waiting} == {huge.key}
        assert {pod["reasons"][0]["message"] for pod in waiting} & {event.message for event in events}
        assert all("pool default: " in event.message and event.type == "Warning" for event in events)
        assert sum(len(line["newNodes"]) for line in lines) == 1

    play(running_cluster, scenario, with_journal(tmp_path / "journal"))


def _daemons(name: str, *, cpu: str) -> dict[str, Any]:
    """A DaemonSet that goes to every node, whatever its taints."""
    manifest = deployment(name, 1, cpu=cpu, memory="64Mi", tolerations=[{"operator": "Exists"}])
    del manifest["spec"]["replicas"]
    return manifest | {"kind": "DaemonSet"}


async def _waits_for_startup(trial: Trial) -> bool:
    (claim,) = await trial.claims()
    initialized = condition(claim.status.conditions, "Initialized")
    return initialized is not None and initialized.reason == "StartupTaintsExist"
